"""`hakmem sheet`: where a running process's memory went."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePath

from hakmem import look
from hakmem.look import CannotLook, Line, Sheet

HELP = "say where the memory of a running process went"
DESCRIPTION = HELP[0].upper() + HELP[1:] + "."
EPILOG = """\
Looks at a process that runs on hakmem, from outside: nothing has to be set before it starts, it is
not stopped, no code runs in it, and nothing in it changes. The lines add up to what the kernel says
is resident. Where a line could be less, it says how much would be left, and what does that.

All sizes are of resident memory. A live block counts with the size of its class, up to an eighth
more than was asked for. While the process works, its heap changes during the look, a few
milliseconds: what does not add up is told ("not explained").

examples:
  hakmem sheet 4711
  hakmem sheet 4711 --json | jq '.heap[] | select(.name == "holes").resident'

exit status:
  0  the sheet was written
  1  there is no hakmem in the process, or what it says makes no sense
  2  wrong usage, or no such process
  3  the process may not be read by you
"""
STATUS = {look.WITHOUT: 1, look.NONSENSE: 1, look.NO_RIGHT: 3}
NO_SUCH = 2
PARTS = 3  # named in the table, of each line
NAME_MOST = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="write JSON, sizes in bytes")
    parser.add_argument("pid", metavar="PID", help="a process that runs")


def run(arguments: argparse.Namespace) -> int:
    if not re.fullmatch("[0-9]{1,10}", arguments.pid):
        print(f"hakmem sheet: {arguments.pid}: expected a PID, as in 'pgrep'", file=sys.stderr)
        return NO_SUCH
    try:
        sheet = look.sheet(int(arguments.pid), arguments.library)
    except CannotLook as why:
        print(f"hakmem sheet: {why}", file=sys.stderr)
        return STATUS.get(why.status, NO_SUCH)
    text = json.dumps(sheet.json(), indent=2) if arguments.json else "\n".join(_text(sheet))
    with suppress(BrokenPipeError):
        print(text, flush=True)
    return 0


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f}"


def _text(sheet: Sheet) -> Iterator[str]:
    yield (
        f"{sheet.program} (PID {sheet.pid}), hakmem {sheet.version}: {_mib(sheet.resident)} MiB "
        f"resident, {_mib(sheet.live)} MiB in live blocks"
    )
    yield ""
    yield f"{'the heap':<36}{'MiB':>9}{'%':>6}{'could be':>10}  by"
    yield from _rows(sheet, sheet.heap)
    yield ""
    yield "not the heap"
    yield from _rows(sheet, sheet.others)
    yield ""
    yield f"{'in all':<36}{_mib(sheet.resident):>9}{'100':>6}{_kernel(sheet)}"


def _kernel(sheet: Sheet) -> str:
    if sheet.before == 0:
        return ""
    low, high = sorted((sheet.before, sheet.after))
    said = _mib(low) if _mib(low) == _mib(high) else f"{_mib(low)} to {_mib(high)}"
    return f"  (the kernel: {said})"


def _rows(sheet: Sheet, lines: tuple[Line, ...]) -> Iterator[str]:
    for line in lines:
        if line.resident == 0:
            continue
        share = 100 * line.resident / max(sheet.resident, 1)
        could = "" if line.could_be is None else _mib(line.could_be)
        after = line.how or ", ".join(
            f"{_short(name)} {_mib(size)}" for name, size in line.parts[:PARTS]
        )
        row = f"  {line.title:<34}{_mib(line.resident):>9}{share:>6.1f}{could:>10}  {after}"
        yield row.rstrip()


def _short(name: str) -> str:
    last = PurePath(name).name or name
    return last if len(last) <= NAME_MOST else last[: NAME_MOST - 1] + "…"
