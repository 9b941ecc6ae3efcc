"""The command line of `hakmem compare`."""

from __future__ import annotations

import json
import secrets
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand

from hakmem import __version__
from hakmem.bench import interrupts, machine, proof
from hakmem.bench.allocators import UnknownAllocator, configured_outside, pick
from hakmem.bench.compared import markdown, sentence, table
from hakmem.bench.comparison import JUDGED, MEASURES, Broken, Comparison, Program, Until
from hakmem.bench.model import OURS, Allocator, Kind, Run
from hakmem.bench.stats import Verdict

MADE, SHOWN_WORSE, USAGE, NOT_IN_FORCE, PROGRAM_FAILED, INTERRUPTED = 0, 1, 2, 3, 4, 130

HELP = "compare allocators, or settings, on a program of yours"
DESCRIPTION = """\
\b
Runs a program on two allocators or more, again and again in an order drawn by lot, and tells what
each costs: time, processor time, memory at the peak and on average, page faults. All are compared
with the first that is named. What is called better or worse is so whatever the noise; the whole run
says so wrongly once in 20 times.

\b
An allocator is hakmem, glibc (the system's), one that 'hakmem bench' knows, one with settings as in
hakmem+big_cache_bytes=16M or glibc+MALLOC_ARENA_MAX=1, or a library of yours as in mine=./mine.so.
Each is proved to be in force, in a first run that is not measured.

\b
Without --rounds or --seconds: at least 10 rounds, until all intervals are narrow (--precision), for
3 minutes or up to 30 rounds.
"""
EPILOG = """\
\b
examples:
  hakmem compare glibc hakmem -- ./your-program --its-option
  hakmem compare --rounds 20 --json runs.json hakmem jemalloc mimalloc2 -- python3 app.py
  hakmem compare hakmem hakmem+big_cache_bytes=16M -- ./your-program
  hakmem compare --prepare 'rm -rf out' --html report.html glibc hakmem -- make -C project
  hakmem compare --fail-if-worse --measures time,peak old=./old.so new=./new.so -- ./test

\b
exit status:
  0    compared; what the verdict is
  1    with --fail-if-worse: something was shown to be worse
  2    wrong usage, no such program or allocator; --setup or --prepare failed
  3    an allocator is not in force in the program
  4    the program failed on an allocator, or its output differs
  130  interrupted
"""


class _WithProgram(TyperCommand):
    """What stands behind -- is the program's, whatever it looks like."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["program"] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", "A B [C]...", "-- PROGRAM [ARG]..."]


app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.command(cls=_WithProgram, help=DESCRIPTION, epilog=EPILOG, short_help=HELP)
def compare(
    context: typer.Context,
    allocators: Annotated[list[str], typer.Argument(metavar="A B [C]...", show_default=False)],
    rounds: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="exactly so many runs on each")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", min=0, help="so long, or until narrow enough")
    ] = None,
    precision: Annotated[
        str, typer.Option(metavar="P", help="how narrow is enough: intervals of ratios +- this")
    ] = "1%",
    measures: Annotated[
        str, typer.Option(metavar="NAMES", help="what to judge; the fewer, the more is shown")
    ] = ",".join(JUDGED),
    timeout: Annotated[
        float,
        typer.Option(metavar="S", min=0.001, max=1e6, help="of one run, which then failed"),
    ] = 600.0,
    stdin: Annotated[
        Path | None, typer.Option(metavar="FILE", help="its standard input (empty)")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="add its standard output, at most 16 MiB of a run (thrown away)"
        ),
    ] = None,
    check_output: Annotated[
        bool, typer.Option("--check-output", help="its standard output must be always the same")
    ] = False,
    ignore_exit_status: Annotated[
        bool, typer.Option("--ignore-exit-status", help="one above 0 is no failure")
    ] = False,
    setup: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="run by sh once, before all")
    ] = None,
    prepare: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="run by sh before each run, not measured")
    ] = None,
    cd: Annotated[Path | None, typer.Option(metavar="DIR", help="where it runs")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="write every run, as JSON")
    ] = None,
    markdown_file: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="write the table")
    ] = None,
    html_file: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="write the table with plots, in one file"),
    ] = None,
    fail_if_worse: Annotated[
        bool, typer.Option("--fail-if-worse", help="exit with 1 if anything is shown worse")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="of the order of the runs (a new one)")
    ] = None,
) -> None:
    _, library = context.obj  # bin/hakmem, and the library beside it
    command: list[str] = context.meta["program"]
    if not command:
        _refuse("expected a program behind --, as in: hakmem compare glibc hakmem -- ls -l")
    files = {"--json": json_file, "--markdown": markdown_file, "--html": html_file}
    for option, path in (files | {"--output": output}).items():
        if path is not None and not path.absolute().parent.is_dir():
            _refuse(f"{option} {path}: there is no such folder")
    if stdin is not None and not stdin.is_file():
        _refuse(f"--stdin {stdin}: there is no such file")
    if cd is not None and not cd.is_dir():
        _refuse(f"--cd {cd}: there is no such folder")
    chosen = _measures(measures)
    until = Until(rounds, _precision(precision), seconds)
    program = Program(
        tuple(command),
        stdin=stdin,
        cwd=cd,
        setup=setup,
        prepare=prepare,
        timeout=timeout,
        ignore_status=ignore_exit_status,
        check_output=check_output,
        output=output,
    )
    console = Console(highlight=False)
    console.width = max(80, console.width)  # rather a broken line than a figure cut short
    comparison = Comparison(
        program,
        _allocators(allocators, library),
        chosen,
        secrets.randbits(32) if seed is None else seed,
    )
    status = _compared(comparison, until, console, fail_if_worse)
    _write(comparison, files)
    raise typer.Exit(status)


def _compared(comparison: Comparison, until: Until, console: Console, fail_if_worse: bool) -> int:
    """Runs it all and prints what came out; the exit status."""
    interrupted = False
    comparison.results.machine = machine.machine()
    comparison.results.settings |= {
        "command_line": ["hakmem", *sys.argv[3:]],
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "version": __version__,
    }
    noisy = machine.busy()
    left_out = configured_outside()
    # Redrawn seldom: what is measured may want every processor.
    with console.status("", refresh_per_second=1) as shown:

        def tell(run: Run) -> None:
            where = f"round {run.round + 1}, {run.allocator}"
            shown.update(escape(f"{where}: {run.seconds:.3g} s, {run.outcome}"))

        comparison.on_run = tell
        try:
            shown.update("a first run on each, to see that it is in force")
            with interrupts.in_order():
                comparison.prove()
                comparison.run(until)
        except (OSError, Broken) as error:
            _refuse(str(error))
        except proof.Unproved as error:
            print(f"hakmem compare: {error}", file=sys.stderr)
            raise typer.Exit(NOT_IN_FORCE) from None
        except KeyboardInterrupt:
            interrupted = comparison.results.interrupted = True
            comparison.stopped = "interrupted"
    judged = comparison.judged()
    if noisy:
        console.print(f"note: {noisy}\n", soft_wrap=True)
    if left_out:
        console.print(f"note: set here and left out of all runs: {', '.join(left_out)}\n")
    if judged:
        for name in comparison.compared:
            console.print(table(comparison, judged, name))
            console.print(escape(sentence(comparison, judged, name)) + "\n", soft_wrap=True)
    rounds = len({run.round for run in comparison.results.runs})
    console.print(f"{rounds} rounds; {comparison.stopped}.", soft_wrap=True)
    if judged and rounds < comparison.least_rounds:
        least = comparison.least_rounds
        console.print(
            f"note: to show anything of {len(judged)} ratios takes {least} rounds or more."
        )
    if judged and not any(measure == "pss" for _, measure in judged) and "pss" in comparison.judge:
        console.print("note: the runs were too short to average their memory over time.")
    for name, lost in comparison.unserved.items():
        console.print(
            escape(f"note: {name} is not in force in {len(lost)} of the programs started, "
                   f"such as {lost[0]}"), soft_wrap=True)  # fmt: skip
    for failure in comparison.failed:
        print(
            f"hakmem compare: the program failed on {failure.allocator}, in round"
            f" {failure.round + 1}: {failure.outcome}: {failure.detail}",
            file=sys.stderr,
        )
    if interrupted:
        return INTERRUPTED
    if comparison.failed:
        return PROGRAM_FAILED
    worse = any(each.verdict is Verdict.WORSE for each in judged.values())
    return SHOWN_WORSE if fail_if_worse and worse else MADE


def _write(comparison: Comparison, files: dict[str, Path | None]) -> None:
    texts = {
        "--json": lambda: json.dumps(comparison.results.to_json(), indent=1) + "\n",
        "--markdown": lambda: markdown(comparison, comparison.judged()),
        "--html": lambda: _page(comparison),
    }
    for option, path in files.items():
        if path is not None:
            try:
                path.write_text(texts[option](), encoding="utf-8")
            except OSError as error:
                _refuse(f"{option} {path}: {error.strerror}")


def _page(comparison: Comparison) -> str:
    from hakmem.bench.compare_page import html  # takes a second to load

    return html(comparison, comparison.judged())


# ---- what was asked for ----


def _refuse(why: str) -> NoReturn:
    print(f"hakmem compare: {why}", file=sys.stderr)
    raise typer.Exit(USAGE)


def _measures(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        _refuse(f"--measures: there is no {unknown[0]!r}, only {', '.join(MEASURES)}")
    return names


def _precision(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        _refuse(f"--precision {text}: expected a part of 1, as in 1% or 0.01")
    return value


def _allocators(words: list[str], library: Path) -> list[Allocator]:
    if len(words) < 2:
        _refuse("expected two allocators or more, as in: hakmem compare glibc hakmem -- ls -l")
    chosen: list[Allocator] = []
    for word in words:
        allocator = _allocator(word, library)
        times = 1 + sum(a.name.partition("#")[0] == allocator.name for a in chosen)
        # The same one twice: how much do runs differ by themselves?
        chosen.append(replace(allocator, name=f"{word}#{times}") if times > 1 else allocator)
    return chosen


def _allocator(word: str, library: Path) -> Allocator:
    """NAME, NAME=PATH, or NAME+VAR=VALUE+VAR=VALUE."""
    name, equals, path = word.partition("=")
    libs = [f"{OURS}={library.resolve()}"] if library.is_file() else []
    if equals and "+" not in name:
        word, libs = name, [f"{name}={Path(path).expanduser()}"]
    try:
        found, missing = pick(library.parent, libs, [word], say=_tell)
    except UnknownAllocator as error:
        _refuse(str(error).replace("with --lib NAME=PATH", "as NAME=PATH"))
    if missing:
        _refuse(f"{word}: {missing[0].why}")
    if found[0].kind is Kind.FLOOR:
        _refuse(f"{word} serves no program but the suite's own")
    return found[0]


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
