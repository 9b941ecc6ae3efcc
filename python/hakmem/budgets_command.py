"""What hakmem/look starts for a process that exceeded a budget of `hakmem run`: it says which, by
how much and which code did it, and with --leaks what was lost. With --junit it writes all budgets
of the run when the program has ended, or why they could not be checked."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hakmem import budgets, heap_profile, leaks, leaks_command, perf_map, symbols
from hakmem.budgets import Budget, Checked
from hakmem.heap_profile import NoProfile, Profile
from hakmem.leaks import LOST, THROUGH, WrongSuppression
from hakmem.outputs import CannotWrite
from hakmem.outputs import replace as write_file
from hakmem.profile_text import printable

HELP = DESCRIPTION = EPILOG = "Called by hakmem/look; not by users."
PEAK, ALLOCATED = (5,), (2,)  # bytes, and blocks: places in the figures of a stack
OPTIONS = ("--max-peak", "--max-leaked", "--max-allocations")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--status",
        type=int,
        help="exit status where a budget is exceeded; one more where something is lost, and two"
        " more for both",
    )
    parser.add_argument("--limits", help="peak, leaked, allocations; '-' where there is none")
    parser.add_argument("--name", help="hakmem run: PROGRAM (PID)")
    parser.add_argument("--program", action="store_true", help="it is the program of the run")
    parser.add_argument("--signal", type=int, help="that ended it")
    parser.add_argument("--error", help="why nothing of it can be checked; empty: it need not be")
    parser.add_argument("--leaks", action="store_true", help="also say what is lost")
    parser.add_argument("--output", help="a file for that")
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
    profile = _read(arguments.file) if arguments.error is None else None
    found = [] if profile is None else _budgets(profile, arguments)
    exceeded = [budget for budget in found if budget.exceeded]
    with suppress(BrokenPipeError):  # the status says it, too
        for budget in exceeded:
            print(printable(f"{arguments.name}: {budget.sentence()}"), flush=True)
    if arguments.junit is not None:
        _write_junit(found, arguments)
    if profile is not None and arguments.leaks and _tell_lost(profile, arguments):
        return int(arguments.status) + (2 if exceeded else 1)
    return int(arguments.status) if exceeded else 0


def _tell_lost(profile: Profile, arguments: argparse.Namespace) -> bool:
    """As `hakmem run --leaks` alone: of other processes than the program only if they lost any."""
    if not arguments.program and not any(one.leaks and one.leaks.lost[0] for one in profile.sites):
        return False
    parser = argparse.ArgumentParser()
    leaks_command.add_arguments(parser)
    words = [f"--status={arguments.status}", f"--name={arguments.name}"]
    words += [f"--suppressions={file}" for file in arguments.suppressions]
    words += [] if arguments.output is None else [f"--output={arguments.output}"]
    asked = parser.parse_args([*words, str(arguments.file)])
    return leaks_command.run(asked) == int(arguments.status)


def _read(file: Path) -> Profile:
    profile, notes = perf_map.with_made_here(heap_profile.read(file), file)
    for note in notes:
        print(f"hakmem run: {printable(note)}", file=sys.stderr)
    return profile


def _limits(arguments: argparse.Namespace) -> dict[str, int]:
    """By option."""
    words = zip(OPTIONS, arguments.limits.split(","), strict=True)
    return {option: int(word) for option, word in words if word != "-"}


def _budgets(profile: Profile, arguments: argparse.Namespace) -> list[Budget]:
    limits = _limits(arguments)
    peak, leaked, allocations = (limits.get(option) for option in OPTIONS)
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


# ---- JUnit ----


def _write_junit(found: list[Budget], arguments: argparse.Namespace) -> None:
    """When the program itself has ended, and anew whenever another process exceeds a budget or
    can't be checked."""
    name = arguments.name.removeprefix("hakmem run: ")
    error = arguments.error or ""
    if arguments.signal is not None:
        error += f"{'; ' if error else ''}ended by {_called(arguments.signal)}"
    one = Checked(name, arguments.program, tuple(found), error)
    with arguments.state.open("a+") as state:
        state.write(json.dumps(asdict(one)) + "\n")
        state.seek(0)
        processes = [_checked(json.loads(line)) for line in state]
    processes.sort(key=lambda one: not one.is_program)
    write_file(arguments.junit, budgets.junit(processes, list(_limits(arguments))))


def _called(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _checked(words: dict[str, Any]) -> Checked:
    some = (Budget(**one | {"sites": tuple(one["sites"])}) for one in words["budgets"])
    return Checked(words["name"], words["is_program"], tuple(some), words["error"])
