"""Judges a change by work that nobody tuned hakmem for: yardstick/docs/judge.md.

    python -m yardstick.judge [OPTION]... BEFORE [AFTER]

BEFORE and AFTER are files (libhakmem.so), commits of this repository, which are built, or `tree`,
the files as they are, which AFTER is where it is not named. Settings may follow, as in
tree+keep_bytes=0. build/release must be built: it has the benchmarks.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "yardstick/python"))

from rich.console import Console

from hakmem import interrupts
from hakmem.arguments import WrongUse
from hakmem.folders import Folder
from hakmem_yardstick import machine
from hakmem_yardstick.chosen import chosen
from hakmem_yardstick.estimate import duration
from hakmem_yardstick.model import OURS, Allocator, Kind, Results
from hakmem_yardstick.progress import Display
from hakmem_yardstick.schedule import Plan
from hakmem_yardstick.session import Session
from hakmem_yardstick.sheet import show
from hakmem_yardstick.store import Store
from yardstick.judge import builds, place, verdicts
from yardstick.judge.parts import FULL, QUICK, Part, parts
from yardstick.judge.verdicts import AFTER, BEFORE, Line

FAILED, USAGE = 1, 2
TIMEOUT = 300.0


@dataclass
class Told:
    """What came out of all parts."""

    lines: list[Line] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    """Rows that can't be run here, by part and row, and why."""
    failed: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    """By part."""


def judge(
    wanted: Sequence[Part], allocators: Sequence[Allocator], seed: int, console: Console
) -> Told:
    told = Told()
    for part in wanted:
        began = time.monotonic()
        results = _run(part, allocators, seed, console)
        told.lines += verdicts.lines(part, results, seed)
        for row, why in results.settings.get("unavailable", {}).items():
            told.missing[f"{part.name}: {row}"] = why
        for run in results.runs:
            if not run.is_ok:
                told.failed[f"{part.name}: {run.row} on {run.allocator}"] = (
                    f"{run.outcome}: {run.detail}"
                )
        told.seconds[part.name] = round(time.monotonic() - began, 1)
    return told


def _run(part: Part, allocators: Sequence[Allocator], seed: int, console: Console) -> Results:
    plan = Plan("judge", part.rounds, part.rounds, None, 0.0, TIMEOUT, part.scale)
    results = Results(list(part.rows), list(allocators))
    results.settings = {"seed": seed, "plan": plan.to_json()}
    runners = {row.group: part.runner for row in part.rows}
    # What a session keeps of each row is for nobody.
    with Folder("hakmem-judge-") as folder, Display(console) as display:
        store = Store(folder)
        store.create(results, {})
        session = Session(results, runners, plan, store, display)
        session.run()
        store.close()
    if session.interrupted is not None:
        raise session.interrupted
    return results


def _allocators(before: str, after: str, folder: Path) -> tuple[list[Allocator], list[str]]:
    found = [builds.library(word) for word in (before, after)]
    copies = builds.side_by_side(found[0][0], found[1][0], folder)
    made = []
    for word, copy, name in ((before, copies[0], BEFORE), (after, copies[1], AFTER)):
        settings = word[len(word.partition("+")[0]) :]
        (allocator,) = chosen([OURS + settings], copy)
        kind = Kind.OURS if name == AFTER else Kind.PEER
        made.append(replace(allocator, name=name, kind=kind))
    return made, [called for _, called in found]


def _say(told: Told, names: Sequence[str], console: Console) -> None:
    def say(text: str = "") -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    say()
    show(verdicts.sheet(told.lines), console)
    say()
    for row, why in told.missing.items():
        say(f"left out: {row}: {why}")
    for row, why in told.failed.items():
        say(f"failed: {row}: {why}")
    say("\n" + verdicts.paragraph(names[0], names[1], told.lines))


def _arguments() -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        "make judge", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("before", metavar="BEFORE")
    add("after", metavar="AFTER", nargs="?", default=builds.TREE)
    add("--quick", action="store_true", help="a first look, in 10 minutes")
    add("--only", metavar="PARTS", default="", help="these parts alone, as in 'life,services'")
    add("--rows", metavar="N", type=int, help="so many rows of each part, drawn by lot")
    add("--rounds", metavar="N", type=int, help="so many rounds of each part")
    add("--build", metavar="DIR", type=Path, default=builds.ROOT / "build" / "release")
    add("--json", metavar="FILE", type=Path, help="write it all there")
    add("--seed", metavar="N", type=int, help="of the order of the runs")
    return parser.parse_args()


def _chosen(arguments: argparse.Namespace, seed: int) -> list[Part]:
    """Raises WrongUse."""
    size = QUICK if arguments.quick else FULL
    wanted = parts(arguments.build, place.folder(), size)
    names = [name for name in arguments.only.split(",") if name]
    known = [part.name for part in wanted]
    if unknown := [name for name in names if name not in known]:
        raise WrongUse(f"--only {unknown[0]}: expected some of {','.join(known)}")
    wanted = [part for part in wanted if not names or part.name in names]
    if arguments.rounds is not None:
        wanted = [replace(part, rounds=arguments.rounds) for part in wanted]
    if arguments.rows is None:
        return wanted
    return [
        replace(part, rows=Random(seed).sample(part.rows, min(arguments.rows, len(part.rows))))
        for part in wanted
    ]


def main() -> int:
    arguments = _arguments()
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    busy = machine.busy()
    if busy:
        console.print(f"the machine is busy ({busy}): times will be noisy", markup=False)
    try:
        with Folder("hakmem-judged-") as folder, interrupts.in_order():
            wanted = _chosen(arguments, seed)
            allocators, names = _allocators(arguments.before, arguments.after, folder)
            told = judge(wanted, allocators, seed, console)
    except (WrongUse, builds.CannotBuild) as why:
        print(f"judge: {why}", file=sys.stderr)
        return USAGE
    except interrupts.Interrupted as end:
        print("judge: interrupted", file=sys.stderr)
        return end.status
    _say(told, names, console)
    took = sum(told.seconds.values())
    console.print(f"\nseed {seed}; {duration(took)}", markup=False)
    if arguments.json is not None:
        text = {
            "before": names[0],
            "after": names[1],
            "date": datetime.now().astimezone().isoformat(timespec="seconds"),
            "seed": seed,
            "busy": busy,
            "machine": machine.machine(),
            "lines": [line.to_json() for line in told.lines],
            "paragraph": verdicts.paragraph(names[0], names[1], told.lines),
            **{name: getattr(told, name) for name in ("missing", "failed", "seconds")},
        }
        arguments.json.write_text(json.dumps(text, indent=1) + "\n")
    return FAILED if told.failed else 0


if __name__ == "__main__":
    sys.exit(main())
