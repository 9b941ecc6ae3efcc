"""The command line of `hakmem bench`."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import secrets
import shlex
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hakmem import __version__
from hakmem.bench import goals, interrupts, machine, parts
from hakmem.bench.allocators import UnknownAllocator, configured_outside
from hakmem.bench.model import OURS, Allocator, Kind, Results, Row, by_group, results_of
from hakmem.bench.progress import Display
from hakmem.bench.runner import Runner
from hakmem.bench.schedule import PLANS, Plan, included
from hakmem.bench.session import Session
from hakmem.bench.store import CannotStore, Store, default_folder, newest, told
from hakmem.bench.suite import CannotBuild, find

FAILED, USAGE, INTERRUPTED = 1, 2, 130

DESCRIPTION = """\
Compares hakmem with other allocators: runs each row (a benchmark with its parameters) on all of
them in turn, many times over, and prints what is better, worse, or not shown to differ. All runs,
the machine and the settings are written to a folder, with a report to look at.

Standard takes less than an hour: rows are repeated until the 95% interval of hakmem to the best
peer is within 2%, or the time is up. An interrupt (control-C) keeps what has finished.
"""
EPILOG = """\
examples:
  hakmem bench --quick                           the essence, in about 3 minutes
  hakmem bench                                   what decides, in less than an hour
  hakmem bench --only memory --vs glibc,jemalloc
  hakmem bench --rows 'mixed-*,pair-64' --rounds 5
  hakmem bench --quick --lib mine=./libmine.so   with an allocator of yours
  hakmem bench --full --out results              everything, in hours
  hakmem bench --resume results                  goes on where it was interrupted

exit status:
  0    all was run
  1    all was run, and hakmem itself failed on a row
  2    wrong usage, or it can't begin, or can't write what it found
  130  interrupted; what had finished is kept
"""


app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def unwrapped(text: str) -> str:
    """For click, which would fill the lines of what is indented."""
    return "\n\n".join(f"\b\n{part}" for part in text.strip().split("\n\n"))


@app.command(help=DESCRIPTION, epilog=unwrapped(EPILOG))
def bench(
    context: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="with --resume: the folder of the session"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="rows that show the essence, about 3 minutes")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="all rows, at least 6 rounds, however long it takes")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="GROUP",
            help=f"rows of this group alone, of {', '.join(parts.GROUPS)}; may be repeated",
        ),
    ] = None,
    rows: Annotated[
        list[str] | None,
        typer.Option("--rows", metavar="GLOBS", help="these rows alone, as in 'pair*,mixed-400'"),
    ] = None,
    vs: Annotated[
        list[str] | None,
        typer.Option(
            "--vs", metavar="NAMES", help="compare with these alone, as in glibc,jemalloc"
        ),
    ] = None,
    lib: Annotated[
        list[str] | None,
        typer.Option("--lib", metavar="NAME=PATH", help="one more allocator, from its library"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="where results go (hakmem-bench-DATE-TIME)"),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="go on with a session that was interrupted: DIR, or the newest here"
        ),
    ] = False,
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", metavar="N", min=1, help="exactly so many rounds of every row"),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", metavar="S", min=1, help="so long for all, with at least 3 rounds"
        ),
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(
            "--scale",
            metavar="F",
            help="so much of each row's work, as in 0.1; rows of memory and counts keep theirs",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="S",
            min=0.1,
            max=1e6,
            help="a run that takes longer counts as a hang",
        ),
    ] = None,
    list_rows: Annotated[
        bool, typer.Option("--list", help="print the rows that would be run, and run nothing")
    ] = False,
    show: Annotated[
        Path | None,
        typer.Option(
            "--show",
            metavar="FILE",
            help="print the tables of a results.json, and write its report beside it or to --out",
        ),
    ] = None,
) -> None:
    _, library = context.obj  # bin/hakmem, and the library beside it
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    console.width = max(80, console.width)  # rather a broken line than a figure cut short
    asked = (quick, full, only, rows, vs, lib, out, rounds, seconds, scale, timeout, list_rows)
    try:
        if show is not None:
            _show(show, out, console)
            return
        if resume:
            if any(asked):
                _refuse("--resume takes all settings from the session; give no others with it")
            session = _resumed(library, folder, console)
        else:
            if folder is not None:
                _refuse(f"unexpected {str(folder)!r}; with --resume it would be a session's folder")
            if quick and full:
                _refuse("--quick and --full exclude each other")
            plan = _plan(quick, full, rounds, seconds, scale, timeout)
            runners = parts.runners(find(library, partial(_say, console)))
            chosen = _rows(runners, plan.mode, only or [], _split(rows))
            if list_rows:
                _print_rows(chosen, console)
                return
            session = _begun(library, plan, chosen, runners, _split(vs), lib or [], out, console)
        status = session.go()
    except (CannotBuild, CannotStore, UnknownAllocator) as why:
        _refuse(str(why))
    raise typer.Exit(status)


def _refuse(why: str) -> NoReturn:
    typer.echo(f"hakmem bench: {why}", err=True)
    raise typer.Exit(USAGE)


def _show(file: Path, out: Path | None, console: Console) -> None:
    try:
        results = results_of(json.loads(file.read_text()))
    except OSError as error:
        _refuse(f"--show {file}: {error.strerror}")
    except (ValueError, KeyError, TypeError) as error:
        _refuse(f"--show {file}: not results of this hakmem ({error})")
    folder = out or file.parent
    with told(folder):
        for written in parts.show(results, folder, console):
            _say(console, f"written: {written}")


def _say(console: Console, text: str, style: str = "") -> None:
    """As it is: a path or a reason may hold what rich would take for a style."""
    console.print(text, style=style, markup=False, soft_wrap=True)


def _split(texts: list[str] | None) -> list[str]:
    return [word for text in texts or [] for word in text.split(",") if word]


def _plan(
    quick: bool,
    full: bool,
    rounds: int | None,
    seconds: float | None,
    scale: float | None,
    timeout: float | None,
) -> Plan:
    plan = PLANS["quick" if quick else "full" if full else "standard"]
    if rounds is not None:
        plan = replace(plan, least_rounds=rounds, most_rounds=rounds, seconds=None)
    if seconds is not None:
        plan = replace(plan, seconds=seconds, least_rounds=min(3, plan.least_rounds))
    if scale is not None:
        if not 0 < scale <= 1000:
            _refuse(f"--scale {scale:g}: expected a factor above 0, such as 0.1")
        plan = replace(plan, scale=scale)
    if timeout is not None:
        plan = replace(plan, timeout=timeout)
    return plan


def _rows(runners: Iterable[Runner], mode: str, only: list[str], globs: list[str]) -> list[Row]:
    """Rows named by a pattern are run whatever their tier."""
    rows = [row for runner in runners for row in runner.rows()]
    groups = by_group(rows)
    for group in only:
        if group not in groups:
            _refuse(f"--only {group}: there is no such group; the groups are {', '.join(groups)}")
    for glob in globs:
        if not fnmatch.filter([row.name for row in rows], glob):
            _refuse(f"--rows {glob}: no row is called so; 'hakmem bench --full --list' names them")
    chosen = [
        row
        for row in rows
        if (not only or row.group in only)
        and (any(fnmatch.fnmatchcase(row.name, glob) for glob in globs) or not globs)
        and (globs or included(row, mode))
    ]
    if not chosen:
        _refuse("no row is left; --full has those that a quick or standard run leaves out")
    return chosen


def _print_rows(rows: list[Row], console: Console) -> None:
    for group, members in by_group(rows).items():
        table = Table(title=f"{group} ({len(members)})", title_justify="left", box=None)
        for head in ("row", "tier", "threads", "judged by", "why"):
            table.add_column(head, overflow="fold")
        for row in members:
            judged = ", ".join(row.judged)
            table.add_row(row.name, row.tier, str(row.threads), judged, escape(row.why))
        console.print(table)


def _begun(
    library: Path,
    plan: Plan,
    rows: list[Row],
    runners: list[Runner],
    vs: list[str],
    libs: list[str],
    out: Path | None,
    console: Console,
) -> _Ready:
    suite = find(library, partial(_say, console))
    allocators, missing = parts.choose(library, suite, libs, vs, plan.mode, partial(_say, console))
    for absent in missing:
        if absent.name == OURS:
            _refuse(f"{OURS} can't be measured: {absent.why}")
        _say(console, f"left out: {absent.name} ({absent.why})", "yellow")
    if outside := configured_outside():
        told_of = f"runs are without {', '.join(outside)}; a setting goes with a name, as in "
        _say(console, f"{told_of}--vs hakmem+big_cache_bytes=16M", "yellow")
    now = datetime.now().astimezone()
    results = Results(rows, allocators, missing, machine=machine.machine())
    names = {row.name for row in rows}
    others = [row for runner in runners for row in runner.rows() if row.name not in names]
    results.settings = {
        "mode": plan.mode,
        "began": now.isoformat(timespec="seconds"),
        "version": __version__,
        "commit": _commit(library),
        "command": shlex.join(["hakmem", *sys.argv[3:]]),
        "plan": plan.to_json(),
        "seed": secrets.randbelow(1 << 31),
        "rows_left_out": goals.count(others),
    }
    store = Store(out or default_folder())
    store.create(results, _identity(allocators, suite))
    return _Ready(results, plan, store, runners, console)


def _resumed(library: Path, folder: Path | None, console: Console) -> _Ready:
    store = Store(folder or newest(Path.cwd()))
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
    if not any((folder / "python/hakmem/bench").is_dir() for folder in here.parents):
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
        if warning := machine.busy():
            self.results.machine["busy_at_start"] = warning
            display.warn(f"{warning}; figures will be noisy")
        by_group = {row.group: runner for runner in self.runners for row in runner.rows()}
        with display, interrupts.in_order():
            results = Session(self.results, by_group, self.plan, self.store, display).run()
        self.store.close()
        with told(self.store.folder):
            files = parts.show(results, self.store.folder, self.console)
        for file in [self.store.folder / "results.json", *files]:
            _say(self.console, f"written: {file}")
        if results.interrupted:
            where = shlex.quote(str(self.store.folder))
            _say(self.console, f"interrupted; go on with: hakmem bench --resume {where}")
            return INTERRUPTED
        ours = results.names(Kind.OURS)
        failed = any(not run.is_ok and run.allocator in ours for run in results.runs)
        return FAILED if failed else 0
