"""What `hakmem compare` does; compare_command.py has its command line."""

from __future__ import annotations

import argparse
import json
import secrets
import shlex
import sys
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.markup import escape

from hakmem import __version__, interrupts
from hakmem.arguments import WrongUse
from hakmem.hint import hint
from hakmem_yardstick import machine, proof
from hakmem_yardstick.allocators import configured_outside
from hakmem_yardstick.chosen import chosen
from hakmem_yardstick.compare_asked import asked
from hakmem_yardstick.compare_runs import Broken, Comparison, Until
from hakmem_yardstick.compare_text import html, markdown, sentence, sheet
from hakmem_yardstick.progress import Display
from hakmem_yardstick.sheet import show
from hakmem_yardstick.stats import Verdict

MADE, SHOWN_WORSE, USAGE, NOT_ACTIVE, PROGRAM_FAILED = 0, 1, 2, 3, 4


def run(arguments: argparse.Namespace) -> int:
    try:
        return _run(arguments)
    except WrongUse as why:
        print(f"hakmem compare: {why}", file=sys.stderr)
        return USAGE


def _run(arguments: argparse.Namespace) -> int:
    files = {
        "--json": arguments.json,
        "--markdown": arguments.markdown,
        "--html": arguments.html,
    }
    wanted = asked(arguments)
    until = Until(arguments.rounds, wanted.precision, arguments.seconds)
    console = Console(highlight=False)
    console.width = max(80, console.width)  # rather a broken line than a figure cut short
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    allocators = chosen(arguments.allocators, arguments.library)
    comparison = Comparison(wanted.program, allocators, wanted.judged, seed)
    status = _run_and_print(comparison, until, console, arguments.fail_if_worse)
    if status != NOT_ACTIVE:
        _write(comparison, files)
    if status in (MADE, SHOWN_WORSE):
        hint(_next(comparison, arguments.html))
    return status


def _run_and_print(
    comparison: Comparison, until: Until, console: Console, fail_if_worse: bool
) -> int:
    """Runs it all and prints what came out; the exit status."""
    interrupted: interrupts.Interrupted | None = None
    comparison.results.machine = machine.machine()
    comparison.results.settings |= {
        "command_line": ["hakmem", *sys.argv[3:]],
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "version": __version__,
    }
    noisy = machine.busy()
    left_out = configured_outside()
    with Display(console, plain=False) as display:
        display.follow(comparison)
        try:
            display.step("a first run on each, to see that it is active")
            with interrupts.in_order():
                comparison.prove()
                comparison.run(until)
        except (OSError, Broken) as error:
            _refuse(str(error))
        except proof.Unproved as error:
            print(f"hakmem compare: {error}", file=sys.stderr)
            return NOT_ACTIVE
        except interrupts.Interrupted as end:
            interrupted = end
            comparison.results.interrupted = True
            comparison.stopped = "interrupted"
    judged = comparison.judged()
    if noisy:
        console.print(f"note: measured on a busy machine ({noisy})\n", soft_wrap=True)
    if left_out:
        console.print(f"note: set here and left out of all runs: {', '.join(left_out)}\n")
    if judged:
        for name in comparison.compared:
            show(sheet(comparison, judged, name), console)
            console.print(escape(sentence(comparison, judged, name)) + "\n", soft_wrap=True)
    rounds = comparison.rounds
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
            escape(f"note: {name} is not active in {len(lost)} of the programs started, "
                   f"such as {lost[0]}"), soft_wrap=True)  # fmt: skip
    for failure in comparison.failed:
        print(
            f"hakmem compare: the program failed on {failure.allocator}, in round"
            f" {failure.round + 1}: {failure.outcome}: {failure.detail}",
            file=sys.stderr,
        )
    if interrupted is not None:
        return interrupted.status
    if comparison.failed:
        return PROGRAM_FAILED
    worse = any(each.verdict is Verdict.WORSE for each in judged.values())
    return SHOWN_WORSE if fail_if_worse and worse else MADE


def _write(comparison: Comparison, files: dict[str, Path | None]) -> None:
    texts = {
        "--json": lambda: json.dumps(comparison.results.to_json(), indent=1) + "\n",
        "--markdown": lambda: markdown(comparison, comparison.judged()),
        "--html": lambda: html(comparison, comparison.judged()),
    }
    for option, path in files.items():
        if path is not None:
            try:
                path.write_text(texts[option](), encoding="utf-8")
            except OSError as error:
                _refuse(f"{option} {path}: {error.strerror}")


def _next(comparison: Comparison, page: Path | None) -> str:
    if page is not None:
        return f"open {page} in a browser"
    if comparison.rounds < comparison.least_rounds:
        return f"--rounds {comparison.least_rounds} or more give a verdict"
    command = shlex.join(comparison.program.command)
    return f"'hakmem tune -- {command}' looks for settings that serve it better"


def _refuse(why: str) -> NoReturn:
    raise WrongUse(why)
