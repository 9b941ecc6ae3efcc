"""`hakmem top`: a live view of processes on hakmem."""

from __future__ import annotations

import argparse
import curses
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from hakmem import interrupts, look, once, rows, sheet_command, sites
from hakmem.arguments import number
from hakmem.look import CannotLook
from hakmem.sites import Seen, Sites

HELP = "show the processes that run on hakmem, live or once"
DESCRIPTION = HELP[0].upper() + HELP[1:] + "."
EPILOG = """\
Without a PID, shows all processes that have loaded hakmem's library and that you may read; those
that start later appear. If standard output is not a terminal, or TERM is not known, prints one
table and ends. With --once, it does so anywhere. Sizes are in MiB:

  RSS       resident memory
  IN USE    blocks in use
  FREE      free memory of the heap that is resident
  RETURN    of that, what 'hakmem purge' returns to the kernel
  FREED/s   bytes that the program freed, per second since the last look ('-' at the first)
  GROWTH/s  change of resident memory, per second

With --json, each look is one line: a list of objects with sizes in bytes.

keys:
  up, down, j, k   select a process
  Enter            its sheet, size classes and threads ('hakmem sheet --classes --threads');
                   up, down: scroll; Enter or Esc: back
  a                the code that holds most of its memory, and whose memory grew most since this
                   view was first opened ('hakmem sheet --sites'); for blocks that were allocated
                   while a heap profile was on; a, Enter or Esc: back
  p                have it return its free memory ('hakmem purge')
  c                turn its compaction off or on ('hakmem set PID compact=...')
  s                sort by the next column
  Ctrl-L           draw the screen anew
  q                quit

Needs the same rights as a debugger, as 'hakmem sheet' does.

examples:
  hakmem top
  hakmem top $(pgrep redis-server)
  hakmem top --once --every 5 4711
  hakmem top --json 4711 | jq '.[0].returnable'
  hakmem top --prometheus | promtool check metrics

exit status:
  0  success
  1  a process does not use hakmem, or its heap can't be read
  2  wrong usage, or no such process
  3  no permission
"""
SORTED_BY: tuple[tuple[str, Callable[[rows.Row], float]], ...] = (
    ("RSS", lambda row: -row.resident),
    ("IN USE", lambda row: -row.live),
    ("FREE", lambda row: -row.free),
    ("RETURN", lambda row: -row.returnable),
    ("FREED/s", lambda row: -(row.freed or 0)),
    ("GROWTH/s", lambda row: -(row.grown or 0)),
    ("PID", lambda row: row.pid),
)
SITES = 10
ESCAPE = 27
REDRAW = 12  # Ctrl-L


def add_arguments(parser: argparse.ArgumentParser) -> None:
    once.add_arguments(parser)
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=number(float, 0.1, 3600),
        default=2.0,
        help="between looks (default: 2)",
    )
    parser.add_argument("pids", metavar="PID", nargs="*", help="a running process")


@dataclass
class View:
    arguments: argparse.Namespace
    pids: list[int]
    looks: rows.Looks
    table: list[rows.Row] = field(default_factory=list)
    failed: list[CannotLook] = field(default_factory=list)
    selected: int = 0  # a PID
    inside: bool = False  # its sheet is shown
    first: int = 0  # of its lines
    code: bool = False  # its sites are shown instead
    seen: Seen | None = None  # these
    processes: dict[int, Sites] = field(default_factory=dict)
    sort: int = 0
    said: str = ""  # in the last line
    compact: dict[int, bool] = field(default_factory=dict)

    def look(self) -> None:
        self.table, self.failed = self.looks.again(self.pids or rows.on_hakmem())
        self._order()
        if self.inside and self.code:
            self._look_at_sites()

    def _look_at_sites(self) -> None:
        pid = self.selected
        process = self.processes.setdefault(pid, Sites(pid, self.arguments.library))
        try:
            self.seen = process.look()
        except CannotLook as why:
            self.said = str(why)

    def _sites(self) -> Iterator[str]:
        sheet = self.looks.sheets[self.selected]
        yield next(sheet_command.lines(sheet))
        yield ""
        if self.seen is not None and self.seen.pid == self.selected:
            yield from sites.lines(self.seen, sheet, SITES)

    def _order(self) -> None:
        self.table.sort(key=SORTED_BY[self.sort][1])
        if self.selected not in self.looks.sheets:
            self.selected = self.table[0].pid if self.table else 0
            self.inside = False

    def lines(self, width: int) -> list[str]:
        if self.inside and self.selected in self.looks.sheets:
            sheet = self.looks.sheets[self.selected]
            parts = (sheet_command.lines, sheet_command.classes, sheet_command.threads)
            lines = [line for part in parts for line in (*part(sheet), "")][:-1]
            if self.code:
                lines = list(self._sites())
            self.first = max(0, min(self.first, len(lines) - 1))
            return lines[self.first :]
        total = sum(row.resident for row in self.table)
        head = (
            f"processes on hakmem: {len(self.table)}, {rows.size(total)} MiB resident together; "
            f"by {SORTED_BY[self.sort][0]}"
        )
        return [head, "", rows.header(width), *(rows.text(row, width) for row in self.table)]

    def at(self) -> int:
        """The line of the selected process."""
        return 3 + next((i for i, row in enumerate(self.table) if row.pid == self.selected), 0)

    # ---- keys ----

    def press(self, key: int) -> bool:
        """False to end."""
        self.said = ""
        if key in (ord("q"), ord("Q")):
            return False
        if key in (curses.KEY_UP, ord("k"), curses.KEY_DOWN, ord("j")):
            step = -1 if key in (curses.KEY_UP, ord("k")) else 1
            if self.inside:
                self.first += step
            else:
                self._move(step)
        elif key in (curses.KEY_ENTER, ord("\n"), ord("\r")):
            self.inside = not self.inside and bool(self.table)
            self.code, self.first = False, 0
        elif key == ord("a") and self.table:
            self.inside = self.code = not (self.inside and self.code)
            self.first = 0
            if self.code:
                self._look_at_sites()
        elif key == ESCAPE:
            self.inside = False
        elif key == ord("s"):
            self.sort = (self.sort + 1) % len(SORTED_BY)
            self._order()
        elif key in (ord("p"), ord("c")) and self.selected:
            self._order_given(chr(key))
        return True

    def _move(self, step: int) -> None:
        pids = [row.pid for row in self.table]
        if self.selected in pids:
            at = pids.index(self.selected) + step
            self.selected = pids[max(0, min(at, len(pids) - 1))]

    def _order_given(self, key: str) -> None:
        library, pid = self.arguments.library, self.selected
        try:
            if key == "p":
                self.said = f"{pid}: {rows.size(look.purge(pid, library))} MiB returned"
            else:
                on = not self.compact.get(pid, True)
                look.change(pid, library, "compact", int(on))
                self.compact[pid] = on
                self.said = f"{pid}: compact={'on' if on else 'off'}"
        except CannotLook as why:
            self.said = str(why)


def run(arguments: argparse.Namespace) -> int:
    if once.wanted(arguments):
        return once.run(arguments)
    try:
        pids = look.read_pids(arguments.pids)
    except CannotLook as why:
        print(f"hakmem top: {why}", file=sys.stderr)
        return why.status
    view = View(arguments, pids, rows.Looks(arguments.library))
    view.look()
    failed = view.failed if pids else []  # else they ended meanwhile, or are others'
    for one in failed:
        print(f"hakmem top: {one}", file=sys.stderr)
    status = max((one.status for one in failed), default=0)
    if pids and not view.table:
        return status
    if not (sys.stdout.isatty() and sys.stdin.isatty()):
        return _print(view) or status
    os.environ.setdefault("ESCDELAY", "25")
    with suppress(interrupts.Interrupted), interrupts.in_order():  # else curses ends with 1
        try:
            curses.wrapper(_show, view)
        except curses.error:
            return _print(view)
    return 0


def _print(view: View) -> int:
    with suppress(BrokenPipeError):
        print("\n".join(line.rstrip() for line in view.lines(100)), flush=True)
    return 0


def _show(screen: curses.window, view: View) -> None:
    with suppress(curses.error):
        curses.curs_set(0)
    screen.timeout(100)
    due = 0.0
    while True:
        if time.monotonic() >= due:
            view.look()
            due = time.monotonic() + view.arguments.seconds
            _draw(screen, view)
        key = screen.getch()
        if key == curses.KEY_RESIZE:
            _draw(screen, view)
        elif key != -1:
            if key == REDRAW:
                screen.clear()
            elif not view.press(key):
                return
            _draw(screen, view)


def _draw(screen: curses.window, view: View) -> None:
    height, width = screen.getmaxyx()
    screen.erase()
    lines = view.lines(width)
    at = -1 if view.inside else view.at()
    first = max(0, at - (height - 3)) if at >= 0 else 0
    head = 3 if not view.inside else 0
    shown = lines[:head] + lines[head + first :] if first else lines
    for y, line in enumerate(shown[: height - 1]):
        chosen = at >= 0 and y == at - first and bool(view.table)
        with suppress(curses.error):
            screen.addnstr(y, 0, line, width - 1, curses.A_REVERSE if chosen else 0)
    keys = "Enter: sheet  a: code  s: sort  up, down: select"
    if view.inside:
        keys = "Enter: back  a: code  up, down: scroll"
    last = view.said or f"{keys}  p: purge  c: compaction  q: quit"
    with suppress(curses.error):
        screen.addnstr(height - 1, 0, last, width - 1, curses.A_BOLD)
    screen.refresh()
