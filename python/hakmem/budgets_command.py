"""What hakmem/look starts for a process that exceeded a budget of `hakmem run`: it says which, by
how much and which code did it. With --junit it writes all budgets of the run when the program has
ended."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

from hakmem import budgets, heap_profile, leaks, perf_map, symbols
from hakmem.budgets import Budget
from hakmem.heap_profile import NoProfile, Profile
from hakmem.leaks import LOST, THROUGH, WrongSuppression
from hakmem.outputs import CannotWrite
from hakmem.outputs import replace as write_file
from hakmem.profile_text import printable

HELP = DESCRIPTION = EPILOG = "Called by hakmem/look; not by users."
PEAK, ALLOCATED = (5,), (2,)  # bytes, and blocks: places in the figures of a stack


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--status", type=int, help="exit status where a budget is exceeded")
    parser.add_argument("--limits", help="peak, leaked, allocations; '-' where there is none")
    parser.add_argument("--name", help="hakmem run: PROGRAM (PID)")
    parser.add_argument("--program", action="store_true", help="it is the program of the run")
    parser.add_argument("--state", type=Path, help="what was said of earlier processes")
    parser.add_argument("--junit", type=Path)
    parser.add_argument("--suppressions", type=Path, action="append", default=[])
    parser.add_argument("file", type=Path, help="the heap profile of all blocks of the process")


def run(arguments: argparse.Namespace) -> int:
    try:
        return _run(arguments)
    except (NoProfile, WrongSuppression, CannotWrite) as why:
        print(f"hakmem run: {printable(str(why))}", file=sys.stderr)
        return why.status


def _run(arguments: argparse.Namespace) -> int:
    found = list(_budgets(_read(arguments.file), arguments))
    exceeded = [budget for budget in found if budget.exceeded]
    for budget in exceeded:
        print(printable(f"{arguments.name}: {budget.sentence()}"), flush=True)
    if arguments.junit is not None:
        _write_junit(found, arguments)
    return int(arguments.status) if exceeded else 0


def _read(file: Path) -> Profile:
    profile, notes = perf_map.with_made_here(heap_profile.read(file), file)
    for note in notes:
        print(f"hakmem run: {printable(note)}", file=sys.stderr)
    return profile


def _budgets(profile: Profile, arguments: argparse.Namespace) -> list[Budget]:
    peak, leaked, allocations = (
        None if word == "-" else int(word) for word in arguments.limits.split(",")
    )
    found = []
    named = None
    if peak is not None or allocations is not None:
        named = symbols.named(profile, servers=False)
    if named is not None and peak is not None:
        sites = budgets.largest(named.stacks, PEAK, True)
        found.append(Budget("--max-peak", peak, profile.most or 0, True, sites))
    if leaked is not None:
        found.append(_leaked(profile, leaked, arguments))
    if named is not None and allocations is not None:
        sites = budgets.largest(named.stacks, ALLOCATED, False)
        used = profile.allocated or 0
        forked = used < sum(site.figures[2] for site in profile.sites)
        note = "with those of its parent before the fork " if forked else ""
        found.append(Budget("--max-allocations", allocations, used, False, sites, note))
    return found


def _leaked(profile: Profile, limit: int, arguments: argparse.Namespace) -> Budget:
    known = [one for file in arguments.suppressions for one in leaks.read_suppressions(file)]
    lost = leaks.find(profile, known, reachable=False, servers=False).lost
    used = sum(leaks.total(lost, at)[1] for at in (LOST, THROUGH))
    sites = budgets.largest(lost, (LOST + 1, THROUGH + 1), True)
    return Budget("--max-leaked", limit, int(used), True, sites)


def _write_junit(found: list[Budget], arguments: argparse.Namespace) -> None:
    """When the program itself has ended, and anew whenever another process exceeds a budget."""
    name = arguments.name.removeprefix("hakmem run: ")
    with arguments.state.open("a+") as state:
        state.write(json.dumps([arguments.program, name, [asdict(one) for one in found]]) + "\n")
        state.seek(0)
        processes = [json.loads(line) for line in state]
    processes.sort(key=lambda one: not one[0])
    read = [(name, [_budget(one) for one in of_it]) for _, name, of_it in processes]
    write_file(arguments.junit, budgets.junit(read))


def _budget(words: dict[str, object]) -> Budget:
    budget = Budget(**words)  # type: ignore[arg-type]
    return replace(budget, sites=tuple(budget.sites))
