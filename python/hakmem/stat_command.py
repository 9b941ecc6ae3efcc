"""`hakmem stat`: figures of running processes, for people and scripts."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from contextlib import suppress

from hakmem import look, metrics, rows
from hakmem.arguments import USAGE_ERROR, number
from hakmem.look import CannotLook
from hakmem.modules import NoModule

HELP = "show the memory figures of running processes, once or repeatedly"
DESCRIPTION = HELP[0].upper() + HELP[1:] + "."
EPILOG = """\
Without a PID, shows all processes that have loaded hakmem's library and that you may read. Sizes
are in MiB:

  RSS       resident memory
  IN USE    blocks in use
  FREE      free memory of the heap that is resident
  RETURN    of that, what 'hakmem purge' returns to the kernel
  FREED/s   bytes that the program freed, per second since the last line ('-' in the first)
  GROWTH/s  change of resident memory, per second

With --json, each look is one line: a list of objects with sizes in bytes. With --prometheus, the
output is what 'hakmem exporter' serves, in Prometheus' text format; it needs the Python module
prometheus_client.

Needs the same rights as a debugger, as 'hakmem sheet' does.

examples:
  hakmem stat
  hakmem stat 4711 --watch 5
  hakmem stat --prometheus | promtool check metrics
  hakmem stat --json 4711 | jq '.[0].returnable'

exit status:
  0  success
  1  a process does not use hakmem, or its heap can't be read
  2  wrong usage, or no such process
  3  no permission
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="write JSON; sizes are in bytes")
    form.add_argument(
        "--prometheus", action="store_true", help="write Prometheus' text format, once (no --watch)"
    )
    parser.add_argument(
        "--watch",
        metavar="SECONDS",
        type=number(float, 0.1, 1e6),
        help="look again after so many seconds, until interrupted or until all have ended",
    )
    parser.add_argument("pids", metavar="PID", nargs="*", help="a running process")


def run(arguments: argparse.Namespace) -> int:
    try:
        pids = look.read_pids(arguments.pids)
    except CannotLook as why:
        print(f"hakmem stat: {why}", file=sys.stderr)
        return why.status
    if arguments.prometheus:
        return _prometheus(arguments, pids)
    looks = rows.Looks(arguments.library)
    with suppress(BrokenPipeError, KeyboardInterrupt):
        status = _look(looks, pids, arguments.json, first=True)
        while arguments.watch and status == 0:
            time.sleep(arguments.watch)
            status = _look(looks, pids, arguments.json, first=False)
            if not looks.sheets:
                return 0  # all have ended
        return status
    return 0


def _prometheus(arguments: argparse.Namespace, pids: list[int]) -> int:
    if arguments.watch:
        print("hakmem stat: expected --prometheus or --watch, not both", file=sys.stderr)
        return USAGE_ERROR
    try:
        processes = metrics.Processes(arguments.library, pids)
        processes.look()
        said, _ = metrics.text(processes)
    except NoModule as why:
        print(f"hakmem stat: --prometheus {why}", file=sys.stderr)
        return why.status
    with suppress(BrokenPipeError):
        print(said.decode(), end="", flush=True)
    if not pids:
        return 0
    for why_not in processes.failed:
        print(f"hakmem stat: {why_not}", file=sys.stderr)
    return max((why_not.status for why_not in processes.failed), default=0)


def _look(looks: rows.Looks, pids: list[int], as_json: bool, first: bool) -> int:
    seen, failed = looks.again(pids or rows.on_hakmem())
    width = shutil.get_terminal_size().columns
    if as_json:
        print(json.dumps([row.json() for row in seen]), flush=True)
    elif seen or not pids:
        lines = [rows.header(width)] if first else []
        print("\n".join([*lines, *(rows.text(row, width) for row in seen)]), flush=True)
    if not pids:
        return 0  # those that ended meanwhile, or are others', were not asked for
    for why in failed if first else []:
        print(f"hakmem stat: {why}", file=sys.stderr)
    return max((why.status for why in failed), default=0) if first else 0
