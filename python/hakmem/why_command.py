"""`hakmem why`: the sheet's first page, for who is on call."""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import suppress
from typing import Any

from hakmem import budgets, look, profile_text, why
from hakmem.arguments import number
from hakmem.hint import hint
from hakmem.look import WAITS, CannotLook, Sheet
from hakmem.profile_text import size
from hakmem.sites import Held, Seen, Sites

HELP = "say why a running process is so large, and what to do about it"
DESCRIPTION = (
    "Says why a process is so large: the three largest reasons, what to do about each, and what\n"
    "that would bring."
)
EPILOG = """\
Reads the process from outside, as 'hakmem sheet' does, which shows all of the figures. Shares are
of the resident memory (RSS). 'brings' is what can become less at most; it is missing where that is
not known.

With --try, free memory that hakmem keeps is returned at once, as 'hakmem purge' does, and the last
line says how much smaller the process is. That is harmless: the program is a little slower when it
needs the memory again.

With --seconds, it looks twice and says whether the blocks in use grew.

examples:
  hakmem why 4711
  hakmem why --try 4711
  hakmem why --seconds 60 4711
  hakmem why --json 4711 | jq '.reasons[0].name'

exit status:
  0  success
  1  the process does not use hakmem, or its heap can't be read
  2  wrong usage, or no such process
  3  no permission to read the process
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="write JSON; sizes are in bytes")
    parser.add_argument(
        "--try",
        dest="tries",
        action="store_true",
        help="return free memory, and say what it brought",
    )
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=number(float, 0, 1e6),
        help="look twice, so many seconds apart, and say what grew",
    )
    parser.add_argument("pid", metavar="PID", help="a running process")


def run(arguments: argparse.Namespace) -> int:
    try:
        pid = look.read_pid(arguments.pid)
        process = Sites(pid, arguments.library)
        before = None if arguments.seconds is None else look.sheet(pid, arguments.library)
        if before is not None:
            if before.requested is not None:
                process.look()
            time.sleep(arguments.seconds)
        sheet = look.sheet(pid, arguments.library)
        seen = process.look() if sheet.requested is not None else None
        found = why.why(sheet, why.threads_of(pid), _code(seen))
        more: dict[str, Any] = {}
        said: list[str] = []
        if before is not None:
            more["grown"] = sheet.live - before.live
            said.append(_grown(before, sheet, seen, arguments.seconds))
        if arguments.tries:
            more["tried"], line = _try(found, arguments)
            said.append(line)
    except CannotLook as wrong:
        print(f"hakmem why: {profile_text.printable(str(wrong))}", file=sys.stderr)
        return wrong.status
    text = "\n".join([*why.lines(found), *said])
    if arguments.json:
        text = json.dumps(found.json() | more, indent=2)
    with suppress(BrokenPipeError):
        print(text, flush=True)
    if not arguments.json and before is None:
        hint(
            f"'hakmem why --seconds 60 {pid}' says whether it grows; 'hakmem sheet {pid}' has all"
            " lines"
        )
    elif not arguments.json:
        hint(f"'hakmem profile {pid}' shows which code allocates")
    return 0


def _code(seen: Seen | None) -> list[str]:
    """The places that hold most, where a heap profile knows."""
    return [] if seen is None else [_place(one) for one in seen.largest(1)]


def _place(held: Held) -> str:
    return budgets.place(held.frames)


def _grown(before: Sheet, now: Sheet, seen: Seen | None, seconds: float) -> str:
    grown = now.live - before.live
    if grown <= 0:
        return f"In {_seconds(seconds)} the blocks in use did not grow."
    most = [] if seen is None else seen.grown(1)
    if most:
        by = f"most of it was allocated by {_place(most[0])} (estimate {size(most[0].grown)})"
    else:
        by = f"'hakmem profile {now.pid}' shows which code allocates"
    return f"In {_seconds(seconds)} the blocks in use grew by {size(grown)}; {by}."


def _try(found: why.Why, arguments: argparse.Namespace) -> tuple[dict[str, Any], str]:
    pid = found.sheet.pid
    if not any(reason.purge for reason in found.reasons):
        return {"purge": None}, "Tried nothing: hakmem keeps no free memory that could go back."
    try:
        look.purge(pid, arguments.library)
    except CannotLook as wrong:
        if wrong.status != look.STATUS[WAITS]:
            raise
        line = "Asked it to return free memory; it is idle, and does so when it works again."
        return {"purge": "waits"}, line
    after = look.sheet(pid, arguments.library)
    less = found.sheet.resident - after.resident
    line = (
        f"Tried 'hakmem purge {pid}': {size(less)} less, from {size(found.sheet.resident)} to "
        f"{size(after.resident)} resident."
    )
    return {"purge": "done", "resident": after.resident}, line


def _seconds(number: float) -> str:
    return f"{number:g} second{'' if number == 1 else 's'}"
