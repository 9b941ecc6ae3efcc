"""The command line: what to run, how often, and where the figures go."""

import argparse
import shutil
import sys
from fnmatch import fnmatch
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bench.seed.report import markdown, plot, tables
from bench.seed.report.allocators import OURS, Kind, UnknownAllocator, choose
from bench.seed.report.child import Row, list_rows
from bench.seed.report.rounds import Plan, Results, load, measure

_BUILD = Path(__file__).resolve().parents[3] / "build" / "release"
_QUICK_ROUNDS, _QUICK_SCALE = 3, 0.2


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run.py",
        description="Runs the rows of `seed` over several allocators, interleaved, and compares.",
    )
    add = parser.add_argument
    add("--rows", type=_names, default=[], metavar="A,B*", help="rows or groups, with wildcards")
    add("--vs", type=_names, default=[], metavar="A,B", help="peers and floors to run beside ours")
    add("--rounds", type=int, metavar="N", help="runs of each row with each allocator (5)")
    add("--quick", action="store_true", help="3 rounds of a fifth of the work")
    add("--scale", type=float, metavar="F", help="multiply every row's iterations")
    add("--json", type=Path, metavar="FILE", help="write all runs to FILE, after every round")
    add("--show", type=Path, metavar="FILE", help="print the tables of an earlier --json; no runs")
    add("--plot", type=Path, metavar="FILE.svg", help="draw rows; means to FILE-frontier.svg")
    add("--markdown", type=Path, metavar="FILE.md", help="write the tables as Markdown")
    add(
        "--lib",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help=f"where an allocator lies, or one more peer; a bare PATH is {OURS}'s",
    )
    add("--build", type=Path, default=_BUILD, metavar="DIR", help="build folder (build/release)")
    add("--timeout", type=float, default=60.0, metavar="S", help="seconds that a run may take (60)")
    add("--no-check", action="store_true", help="leave out the short runs that verify content")
    add("--list", action="store_true", help="list the rows")
    return parser


def _chosen(rows: list[Row], patterns: list[str]) -> list[Row]:
    if not patterns:
        return rows
    for pattern in patterns:
        if not any(fnmatch(r.row, pattern) or fnmatch(r.group, pattern) for r in rows):
            raise UnknownAllocator(f"--rows: no row or group is called {pattern}")
    return [r for r in rows if any(fnmatch(r.row, p) or fnmatch(r.group, p) for p in patterns)]


def _run(plan: Plan, file: Path | None) -> Results:
    floors = sum(a.kind is Kind.FLOOR for a in plan.allocators)
    steps = plan.rounds * len(plan.allocators)
    if plan.check:
        steps += len(plan.allocators) - floors
    console = Console(stderr=True)
    last = ""

    def save(results: Results) -> None:
        if file is not None:
            results.save(file)

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=steps * len(plan.rows))
        bar.update(task, completed=-1)

        def progress(what: str) -> None:
            nonlocal last
            bar.update(task, description=f"{what:44}", advance=1)
            phase = what.split("  ")[0]
            if not console.is_terminal and phase != last:
                console.print(phase, highlight=False)
            last = phase

        results = measure(plan, progress, save)
    save(results)
    return results


def _unwritable(arguments: argparse.Namespace) -> str | None:
    """What would keep a file from being written, told before the runs rather than after."""
    if arguments.plot is not None and arguments.plot.suffix != ".svg":
        return f"--plot writes .svg, not {arguments.plot}"
    for file in (arguments.plot, arguments.markdown):
        if file is not None and not file.absolute().parent.is_dir():
            return f"there is no folder for {file}"
    return None


def _write(results: Results, arguments: argparse.Namespace) -> None:
    """The files asked for beside the tables."""
    if not results.runs:
        return
    written: list[Path] = []
    if arguments.plot is not None:
        written += plot.write(results, arguments.plot)
    if arguments.markdown is not None:
        arguments.markdown.write_text(markdown.page(results))
        written.append(arguments.markdown)
    for file in written:
        print(f"written: {file}", file=sys.stderr)


def main() -> int:
    parser = _parser()
    arguments = parser.parse_args()
    if (fault := _unwritable(arguments)) is not None:
        parser.error(fault)
    width = shutil.get_terminal_size((0, 0)).columns
    # A pipe has no width; figures cut to 80 columns would be of no use in a log.
    console = Console(width=max(width, 200)) if not sys.stdout.isatty() else Console()

    if arguments.show is not None:
        results = load(arguments.show)
        tables.print_all(results, console)
        _write(results, arguments)
        return 0

    seed = arguments.build / "bench" / "seed"
    if not seed.is_file():
        print(f"{seed} is not there: build it first (`make build`)", file=sys.stderr)
        return 2
    try:
        rows = _chosen(list_rows(seed), arguments.rows)
        allocators, missing = choose(arguments.build, arguments.lib, arguments.vs)
    except UnknownAllocator as error:
        print(error, file=sys.stderr)
        return 2
    if arguments.list:
        for row in rows:
            console.print(f"{row.row:18} {row.group:10} {row.why}", highlight=False)
        return 0
    for name in missing:
        print(f"{name} is not there and is left out", file=sys.stderr)

    plan = Plan(
        seed=seed.resolve(),
        rows=rows,
        allocators=allocators,
        rounds=arguments.rounds or (_QUICK_ROUNDS if arguments.quick else 5),
        scale=arguments.scale or (_QUICK_SCALE if arguments.quick else 1.0),
        timeout=arguments.timeout,
        check=not arguments.no_check,
    )
    results = _run(plan, arguments.json)
    tables.print_all(results, console)
    _write(results, arguments)
    failed = [key for key in results.failures if key[1] not in results.names(Kind.FLOOR)]
    return 130 if results.interrupted else int(bool(failed))
