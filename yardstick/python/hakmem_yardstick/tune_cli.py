"""What `hakmem tune` does; hakmem/tune_command.py has its command line.

run
  _record          the program, once
  _screened        candidates, by replay
  _fought          the best of them, by runs of the program
  verdict.best     whether one gains
  _fought          that one again, alone, perhaps with other input
  _write           the file of settings
"""

from __future__ import annotations

import argparse
import json
import math
import re
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hakmem import __version__
from hakmem.arguments import WrongUse
from hakmem.outputs import replace as replace_file
from hakmem.variants import split
from hakmem_yardstick import candidates, interrupts, proof, replay, settings_file, verdict
from hakmem_yardstick.allocators import FOUR, installed
from hakmem_yardstick.chosen import chosen, player
from hakmem_yardstick.compare_runs import ALL_MEASURES, FIGURE, ROW, Broken, Program, Until
from hakmem_yardstick.duels import Duels, Figure, ratings
from hakmem_yardstick.halving import Screened, halved
from hakmem_yardstick.jobs import executor
from hakmem_yardstick.model import OURS, Allocator
from hakmem_yardstick.replay import CannotReplay, Job
from hakmem_yardstick.service import Service
from hakmem_yardstick.settings_file import Settings
from hakmem_yardstick.verdict import Answer

ANSWERED, NO_LONGER, PROGRAM_FAILED, INTERRUPTED = 0, 1, 4, 130
LETTERS = "ABCDEF"
FINALISTS = 4  # beside the base, and the base once more
OUTLIERS = 4  # rounds beyond those that show something if all are alike
MOST_ROUNDS = 40
REPLAY_SECONDS = 1.5  # a paced replay takes at most so long


class _Failed(Exception):
    """The program failed."""


def run(arguments: argparse.Namespace) -> int:
    console = Console(highlight=False)
    console.width = max(200, console.width)  # rather a broken line than a figure cut short
    try:
        with ExitStack() as stack, interrupts.in_order():
            tuning = Tuning.of(arguments, console, stack)
            return tuning.check() if arguments.check is not None else tuning.tune()
    except (OSError, Broken, _Failed, proof.Unproved, CannotReplay) as error:
        print(f"hakmem tune: {error}", file=sys.stderr)
        return PROGRAM_FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


@dataclass
class Tuning:
    arguments: argparse.Namespace
    console: Console
    program: Program
    service: Service | None
    figure: Figure | None
    measures: tuple[str, ...]
    least: float
    folder: Path
    settings: Settings | None
    """To be checked."""

    @classmethod
    def of(cls, arguments: argparse.Namespace, console: Console, stack: ExitStack) -> Tuning:
        settings = None
        if arguments.check is not None:
            settings = settings_file.read(arguments.check)
            arguments.behind = list(settings.command)
            for name, value in (settings.how or {}).items():
                path = name in ("stdin", "cd") and value is not None
                setattr(arguments, name, Path(str(value)) if path else value)
            arguments.base = settings.base
        if split(arguments.base)[0] != OURS:
            raise WrongUse(f"--base {arguments.base}: expected hakmem, with settings or without")
        program = Program(
            tuple(arguments.behind),
            stdin=arguments.stdin,
            cwd=arguments.cd,
            prepare=arguments.prepare,
            timeout=arguments.timeout,
        )
        figure = _figure(arguments)
        service = None
        if arguments.load is not None:
            service = stack.enter_context(
                Service(arguments.load, arguments.ready, arguments.cd, arguments.timeout)
            )
        elif arguments.ready is not None:
            raise WrongUse("--ready is for --load")
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hakmem-tune-")))
        return cls(
            *(arguments, console, program, service, figure),
            *(_measures(arguments), _part("--least", arguments.least), folder, settings),
        )

    # ---- the whole ----

    def tune(self) -> int:
        output = self.arguments.output or Path(f"{Path(self.program.command[0]).name}.settings")
        if not output.absolute().parent.is_dir():
            raise WrongUse(f"-o {output}: there is no such folder")
        identity = settings_file.identity(self.program.command, self.program.cwd)
        base = chosen([self.arguments.base], self.arguments.library)[0]
        rivals = self._candidates()
        recording = self.arguments.recording or self._record()
        finalists = self._screened(recording, base, rivals)
        duels = self._fought(base, [one.allocator for one in finalists[1:]], self.program)
        self._show(duels)
        answer = verdict.best(duels, self.least)
        confirmed = None
        if answer is not None:
            confirmed = self._confirmed(base, answer)
        for line in self._told(duels, answer, confirmed):
            self.console.print(escape(line), soft_wrap=True)
        if self.arguments.json is not None:
            _write_json(self.arguments.json, duels, confirmed)
        if (
            answer is not None
            and confirmed is not None
            and verdict.holds(confirmed, answer, self.least)
        ):
            self._write(output, answer, confirmed, identity)
        return ANSWERED

    def check(self) -> int:
        assert self.settings is not None
        now = settings_file.identity(self.program.command, self.program.cwd)
        if now != self.settings.identity:
            self.console.print("the program is another one than when the settings were measured")
        if settings_file.cpus() != self.settings.cpus:
            self.console.print(
                f"then there were {self.settings.cpus} processors, now there are"
                f" {settings_file.cpus()}"
            )
        base = chosen([self.arguments.base], self.arguments.library)[0]
        words = [f"{name}={value}" for name, value in self.settings.options.items()]
        own = chosen(["+".join([OURS, *words])], self.arguments.library)[0]
        duels = self._fought(base, [own], self.program)
        self._show(duels)
        answer = verdict.of(duels, own.name, self.least)
        if answer.gains and not answer.losses:
            self.console.print(escape(f"the settings still gain: {answer.text()}"), soft_wrap=True)
            return ANSWERED
        lost = f"they lose: {answer.text()}" if answer.losses else "no gain is shown"
        self.console.print(
            escape(f"{lost}; run 'hakmem tune' again, or go back to the defaults"), soft_wrap=True
        )
        return NO_LONGER

    # ---- its steps ----

    def _candidates(self) -> list[Allocator]:
        words: list[str]
        if self.arguments.others is None:
            found, _ = installed(self.arguments.library.parent, FOUR)
            words = [one.name for one in found]
        elif self.arguments.others == "none":
            words = []
        else:
            words = [word for word in self.arguments.others.split(",") if word]
        return chosen(candidates.names(self.arguments.base, words), self.arguments.library)

    def _record(self) -> Path:
        file = self.folder / "recording"
        command = ["/bin/sh", str(self.arguments.front), "record", "-o", str(file), "--"]
        self.console.print(escape(f"recording {shlex.join(self.program.command)}"), soft_wrap=True)
        if self.program.prepare is not None:
            subprocess.run(["sh", "-c", self.program.prepare], cwd=self.program.cwd, check=True)
        with (self.program.stdin or Path("/dev/null")).open("rb") as stdin:
            started = subprocess.Popen(
                [*command, *self.program.command],
                stdin=stdin,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=self.program.cwd,
                text=True,
            )
            if self.service is not None:
                self.service.library = None
                self.service.started(started.pid)
            try:
                _, said = started.communicate(timeout=10 * self.program.timeout)
            except subprocess.TimeoutExpired:
                started.kill()
                raise _Failed("the program took too long while it was recorded") from None
            if self.service is not None:
                self.service.answer_now()
                failure = self.service.answer.failure
                if failure:
                    raise _Failed(f"while it was recorded: {failure}")
        allowed = (0, 128 + signal.SIGTERM) if self.service is not None else (0,)
        last = said.strip().splitlines()[-1] if said.strip() else ""
        if started.returncode not in allowed:
            raise _Failed(f"the program failed: exit status {started.returncode}: {last}")
        self.console.print(escape(last.partition(": ")[2]), soft_wrap=True)
        return file

    def _screened(
        self, recording: Path, base: Allocator, rivals: list[Allocator]
    ) -> list[Screened]:
        with self.console.status("reading the recording", refresh_per_second=1):
            ready = replay.prepared(recording.absolute(), None)
        speed = max(1.0, ready.times[-1] / REPLAY_SECONDS)

        def job(allocator: Allocator) -> Job:
            program = player(self.arguments.library)
            return Job(recording.absolute(), None, allocator, program, speed)

        with (
            self.console.status("", refresh_per_second=1) as status,
            executor(self.arguments.cluster) as jobs,
        ):
            found = halved(base, rivals, FINALISTS, job, jobs, lambda text: status.update(text))
        names = ", ".join(one.allocator.name for one in found[1:])
        self.console.print(
            escape(f"of {len(rivals)} candidates these are best by replay: {names}\n"),
            soft_wrap=True,
        )
        return found

    def _fought(self, base: Allocator, others: list[Allocator], program: Program) -> Duels:
        noise = replace(base, name=f"{base.name}#2")
        seed = secrets.randbits(32) if self.arguments.seed is None else self.arguments.seed
        duels = Duels(
            program, [base, noise, *others], self.measures, seed,
            figure=self.figure, service=self.service,
        )  # fmt: skip
        with self.console.status("a first run on each", refresh_per_second=1) as status:
            duels.on_run = lambda run: status.update(
                escape(f"round {run.round + 1}, {run.allocator}: {run.seconds:.3g} s")
            )
            began = time.monotonic()
            duels.prove()
            duels.run(Until(rounds=1))
            took = time.monotonic() - began
            self._refuse_failed(duels)
            # The first round says how many more there is time for.
            rounds = int(60 * self.arguments.minutes / max(took, 1e-3))
            duels.go_on(max(duels.least_rounds + OUTLIERS, min(rounds, MOST_ROUNDS)))
        self._refuse_failed(duels)
        return duels

    def _refuse_failed(self, duels: Duels) -> None:
        """On the base: without it nothing can be compared."""
        failure = duels.results.failure(ROW, duels.base)
        if failure is not None:
            raise _Failed(f"the program failed: {failure.outcome}: {failure.detail}")

    def _confirmed(self, base: Allocator, answer: Answer) -> Duels:
        program = self.program
        if self.arguments.held_out is not None:
            program = replace(program, command=tuple(shlex.split(self.arguments.held_out)))
        winner = chosen([answer.name], self.arguments.library)[0]
        self.console.print(escape(f"once more, {answer.name} alone"), soft_wrap=True)
        duels = self._fought(base, [winner], program)
        self._show(duels)
        return duels

    # ---- what is said ----

    def _show(self, duels: Duels) -> None:
        measure = self.measures[0]
        names = [duels.base, *duels.compared]
        rated = ratings(duels, names, measure)
        made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        made.add_column("")
        for each in self.measures:
            made.add_column(verdict.label(each), justify="right", no_wrap=True)
        made.add_column(f"rating by {verdict.label(measure)}", justify="right", no_wrap=True)
        for letter, name in zip(LETTERS, names, strict=False):
            said = f"{duels.base}, once more" if name == f"{duels.base}#2" else name
            self.console.print(escape(f"{letter}  {said}"), soft_wrap=True)
            cells = [verdict.cell(duels, name, each) for each in self.measures]
            one = rated.get(name)
            rating = "" if one is None else f"{one.value:+.0f} ({one.low:+.0f} to {one.high:+.0f})"
            made.add_row(letter, *cells, rating if name != duels.base else "0")
        self.console.print(made)
        rounds = len({run.round for run in duels.results.runs})
        self.console.print(f"{rounds} rounds; ratios to A, below 1 is better\n")
        for run in duels.failed:
            self.console.print(
                escape(f"the program failed on {run.allocator}: {run.outcome}: {run.detail}"),
                soft_wrap=True,
            )

    def _told(self, duels: Duels, answer: Answer | None, confirmed: Duels | None) -> list[str]:
        if answer is None or confirmed is None:
            trade = verdict.trade(duels, self.least)
            if trade is not None:
                return [
                    "keep the defaults: no candidate gains without a loss",
                    f"{trade.name} gains, at a price: {trade.text()};"
                    f" --measures {','.join(trade.gains)} looks at the gain alone",
                ]
            shown = verdict.showable(duels)
            found = f"; a difference of {shown} would mostly have been found" if shown else ""
            return [f"keep the defaults: no candidate gains{found}"]
        again = verdict.of(confirmed, answer.name, self.least)
        if not verdict.holds(confirmed, answer, self.least):
            return [
                f"keep the defaults: {answer.name} seemed to gain, but a second series of runs"
                f" does not show it ({again.text()})"
            ]
        if split(answer.name)[0] != OURS:
            library = chosen([answer.name], self.arguments.library)[0].library
            how = f"LD_PRELOAD={library}" if library is not None else "without hakmem"
            return [f"{answer.name} serves this program better: {again.text()}", f"run it {how}"]
        return [f"these settings gain: {answer.name}: {again.text()}"]

    def _write(self, path: Path, answer: Answer, confirmed: Duels, identity: str) -> None:
        name, options = split(answer.name)
        if name != OURS:
            return
        again = verdict.of(confirmed, answer.name, self.least)
        rounds = len({run.round for run in confirmed.results.runs})
        kept = ("load", "ready", "figure", "more_is_better", "measures", "cd", "stdin", "prepare")
        how = {name: getattr(self.arguments, name) for name in kept}
        settings = Settings(
            options,
            self.arguments.base,
            self.program.command,
            identity,
            settings_file.cpus(),
            told=(
                f"by hakmem {__version__} on {time.strftime('%Y-%m-%d')}, in {rounds} rounds"
                f" against {self.arguments.base}, {again.text()}",
            ),
            how={name: str(v) if isinstance(v, Path) else v for name, v in how.items()},
        )
        replace_file(path, settings.text().encode())
        self.console.print(
            escape(f"{path}: use it with 'hakmem run --settings {path} --"
                   f" {shlex.join(self.program.command)}'"), soft_wrap=True)  # fmt: skip


def _measures(arguments: argparse.Namespace) -> tuple[str, ...]:
    first = "time" if arguments.figure is None else FIGURE
    if arguments.measures is None:
        return (first, "cpu", "peak", "pss")
    names = tuple(dict.fromkeys(arguments.measures.split(",")))
    unknown = [name for name in names if name not in ALL_MEASURES]
    if unknown:
        raise WrongUse(f"--measures: there is no {unknown[0]!r}, only {', '.join(ALL_MEASURES)}")
    if FIGURE in names and arguments.figure is None:
        raise WrongUse("--measures figure needs --figure")
    return names


def _figure(arguments: argparse.Namespace) -> Figure | None:
    if arguments.figure is None:
        return None
    try:
        pattern = re.compile(arguments.figure)
    except re.error as error:
        raise WrongUse(f"--figure {arguments.figure!r}: {error}") from error
    if pattern.groups < 1:
        raise WrongUse(f"--figure {arguments.figure!r}: has no group, as in 'rate: ([0-9.]+)'")
    return Figure(pattern, arguments.more_is_better)


def _part(option: str, text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise WrongUse(f"{option} {text}: expected a part of 1, as in 2% or 0.02")
    return value


def _write_json(path: Path, duels: Duels, confirmed: Duels | None) -> None:
    facts = {"duels": duels.results.to_json()}
    if confirmed is not None:
        facts["confirmed"] = confirmed.results.to_json()
    replace_file(path, (json.dumps(facts, indent=1) + "\n").encode())
