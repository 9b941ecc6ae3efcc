"""`hakmem top --once`: figures of running processes, for people and scripts."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from contextlib import suppress

from hakmem import interrupts, look, metrics, rows
from hakmem.arguments import USAGE_ERROR, number
from hakmem.hint import hint
from hakmem.look import CannotLook
from hakmem.modules import NoModule


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="print one table, and end")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the same as JSON; sizes are in bytes")
    form.add_argument(
        "--prometheus",
        action="store_true",
        help="the same in Prometheus' text format, as 'hakmem exporter' serves it; needs the Python"
        " module prometheus_client",
    )
    parser.add_argument(
        "--every",
        "--watch",
        metavar="SECONDS",
        type=number(float, 0.1, 1e6),
        help="with --once or --json: print again after so many seconds, until interrupted or until"
        " all have ended",
    )


def wanted(arguments: argparse.Namespace) -> bool:
    return bool(
        arguments.once or arguments.json or arguments.prometheus or arguments.every is not None
    )


def run(arguments: argparse.Namespace) -> int:
    """`hakmem top` with --once or what implies it."""
    try:
        pids = look.read_pids(arguments.pids)
    except CannotLook as why:
        print(f"hakmem top: {why}", file=sys.stderr)
        return why.status
    if arguments.prometheus:
        return _prometheus(arguments, pids)
    looks = rows.Looks(arguments.library)
    with suppress(BrokenPipeError):
        if not arguments.every:
            status = _look(looks, pids, arguments.json, first=True)
            if not arguments.json:
                hint("'hakmem why PID' says why one of them is so large")
            return status
        with suppress(interrupts.Interrupted), interrupts.in_order():
            status = _look(looks, pids, arguments.json, first=True)
            while status == 0:
                time.sleep(arguments.every)
                status = _look(looks, pids, arguments.json, first=False)
                if not looks.sheets:
                    return 0  # all have ended
            return status
    return 0


def _prometheus(arguments: argparse.Namespace, pids: list[int]) -> int:
    if arguments.every:
        print("hakmem top: expected --prometheus or --every, not both", file=sys.stderr)
        return USAGE_ERROR
    try:
        processes = metrics.Processes(arguments.library, pids)
        processes.look()
        said, _ = metrics.text(processes)
    except NoModule as why:
        print(f"hakmem top: --prometheus {why}", file=sys.stderr)
        return why.status
    with suppress(BrokenPipeError):
        print(said.decode(), end="", flush=True)
    if not pids:
        return 0
    for why_not in processes.failed:
        print(f"hakmem top: {why_not}", file=sys.stderr)
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
        print(f"hakmem top: {why}", file=sys.stderr)
    return max((why.status for why in failed), default=0) if first else 0
