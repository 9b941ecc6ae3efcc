"""What `hakmem bench` does; bench_command.py has its command line."""

from __future__ import annotations

import argparse
import hashlib
import secrets
import shlex
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console

from hakmem import __version__, interrupts
from hakmem.arguments import WrongUse
from hakmem.hint import hint
from hakmem_yardstick import bench_asked, estimate, machine, parts
from hakmem_yardstick.allocators import UnknownAllocator, configured_outside
from hakmem_yardstick.head import conditions
from hakmem_yardstick.listing import chosen, mode_of, split
from hakmem_yardstick.model import OURS, Allocator, Kind, Results
from hakmem_yardstick.progress import Display
from hakmem_yardstick.runner import Runner
from hakmem_yardstick.schedule import PLANS, Plan
from hakmem_yardstick.session import Session
from hakmem_yardstick.store import CannotStore, Store, default_folder, told
from hakmem_yardstick.suite import CannotBuild, find

FAILED, USAGE = 1, 2


def run(arguments: argparse.Namespace) -> int:
    library = arguments.library  # the one beside bin/hakmem
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    console.width = max(80, console.width)  # rather a broken line than a figure cut short
    try:
        bench_asked.check(arguments)
        if arguments.show is not None:
            _show(arguments.show, arguments.out, console)
            return 0
        if arguments.resume:
            session = _resumed(library, arguments.folder, console)
        else:
            session = _begun(arguments, console)
        return session.go()
    except (CannotBuild, CannotStore, UnknownAllocator, WrongUse) as why:
        print(f"hakmem bench: {why}", file=sys.stderr)
        return USAGE


def _refuse(why: str) -> NoReturn:
    raise WrongUse(why)


def _show(file: Path, out: Path | None, console: Console) -> None:
    results = bench_asked.results(file)
    folder = out or file.parent
    with told(folder):
        for written in parts.show(results, folder, console):
            _say(console, f"written: {written}")
    hint(f"open {folder / 'report.html'} in a browser")


def _say(console: Console, text: str, style: str = "") -> None:
    """As it is: a path or a reason may hold what rich would take for a style."""
    console.print(text, style=style, markup=False, soft_wrap=True)


def _plan(arguments: argparse.Namespace) -> Plan:
    plan = PLANS[mode_of(arguments)]
    if arguments.rounds is not None:
        count = arguments.rounds
        plan = replace(plan, least_rounds=count, most_rounds=count, seconds=None)
    if arguments.seconds is not None:
        plan = replace(plan, seconds=arguments.seconds, least_rounds=min(3, plan.least_rounds))
    if arguments.scale is not None:
        plan = replace(plan, scale=arguments.scale)
    if arguments.timeout is not None:
        plan = replace(plan, timeout=arguments.timeout)
    return plan


def _begun(arguments: argparse.Namespace, console: Console) -> _Ready:
    plan, library = _plan(arguments), arguments.library
    libs, vs, say = arguments.lib or [], split(arguments.vs), partial(_say, console)
    busy = machine.busy()  # building would make it so
    preparations = parts.preparations(library, libs, vs, plan.mode)
    for sentence in estimate.sentences(preparations, plan.seconds, busy):
        say(sentence)
    suite = find(library, say)
    runners = parts.runners(suite)
    rows = chosen([row for runner in runners for row in runner.rows()], arguments)
    allocators, missing = parts.choose(library, suite, libs, vs, plan.mode, say)
    for absent in missing:
        if absent.name == OURS:
            _refuse(f"{OURS} can't be measured: {absent.why}")
        _say(console, f"left out: {absent.name} ({absent.why})", "yellow")
    if outside := configured_outside():
        told_of = f"runs are without {', '.join(outside)}; a setting goes with a name, as in "
        _say(console, f"{told_of}--vs hakmem+keep_bytes=16M", "yellow")
    now = datetime.now().astimezone()
    results = Results(rows, allocators, missing, machine=_machine(busy))
    results.settings = {
        "mode": plan.mode,
        "began": now.isoformat(timespec="seconds"),
        "version": __version__,
        "commit": _commit(library),
        "command": shlex.join(["hakmem", *sys.argv[3:]]),
        "plan": plan.to_json(),
        "seed": secrets.randbelow(1 << 31),
    }
    store = Store(arguments.out or default_folder())
    store.create(results, _identity(allocators, suite))
    return _Ready(results, plan, store, runners, console)


def _machine(busy: str) -> dict[str, Any]:
    told = {"busy_at_start": f"measured on a busy machine: {busy} at the start"} if busy else {}
    return machine.machine() | told


def _resumed(library: Path, folder: str | None, console: Console) -> _Ready:
    store = bench_asked.session(folder)
    results, before = store.resume()
    suite = find(library, partial(_say, console))
    now = _identity(results.allocators, suite)
    changed = [name for name in before if before[name] != now.get(name)]
    if changed:
        told = "; ".join(f"{name} was {before[name]}, is {now.get(name)}" for name in changed)
        raise CannotStore(f"{store.folder} can't go on, its figures would be mixed: {told}")
    plan = Plan.of(results.settings["plan"])
    _say(console, f"going on with {store.folder}: {len(results.runs)} runs are done")
    return _Ready(results, plan, store, parts.runners(suite), console)


def _identity(allocators: Iterable[Allocator], suite: Path) -> dict[str, str]:
    """What must not change within a session."""
    here = machine.machine()
    found = {name: str(here[name]) for name in machine.SAME}
    found["the suite"] = _digest(suite / "suite")
    for allocator in allocators:
        if allocator.library is not None:
            found[allocator.name] = _digest(allocator.library)
    return found


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except OSError as error:
        return f"{file}: {error.strerror}"


def _commit(library: Path) -> str:
    """Of the clone that the library was built in; empty elsewhere, also within another project's
    clone."""
    here = library.resolve().parent
    if not any((folder / "yardstick/python/hakmem_yardstick").is_dir() for folder in here.parents):
        return ""
    git = ["git", "-C", str(here)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
        state = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True)
    except OSError:
        return ""
    return head.stdout.strip() + (" and changes" if state.stdout.strip() else "")


@dataclass(frozen=True)
class _Ready:
    """A session that is about to begin, or to go on."""

    results: Results
    plan: Plan
    store: Store
    runners: list[Runner]
    console: Console

    def go(self) -> int:
        """Runs it, shows what it gave, and returns the exit status."""
        display = Display(self.console)
        by_group = {row.group: runner for runner in self.runners for row in runner.rows()}
        with display, interrupts.in_order():
            session = Session(self.results, by_group, self.plan, self.store, display)
            results = session.run()
        self.store.close()
        with told(self.store.folder):
            files = parts.show(results, self.store.folder, self.console)
        for file in [self.store.folder / "results.json", *files]:
            _say(self.console, f"written: {file}")
        for condition in conditions(results):
            _say(self.console, condition, "yellow")
        if session.interrupted is not None:
            where = shlex.quote(str(self.store.folder))
            _say(self.console, f"interrupted; go on with: hakmem bench --resume {where}")
            return session.interrupted.status
        hint(f"open {self.store.folder / 'report.html'} in a browser")
        ours = results.names(Kind.OURS)
        failed = any(not run.is_ok and run.allocator in ours for run in results.runs)
        return FAILED if failed else 0
