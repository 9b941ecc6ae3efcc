"""What `hakmem tune` does; hakmem/tune_command.py has its command line.

run
  Tuning.tune
    tune_record.record   the program, once
    _screened            candidates, by replay
    _fought              the best of them, by runs of the program
    verdict.best         whether one gains
    _fought              that one again, alone, perhaps with other input
    _write               the file of settings
  Tuning.check
"""

from __future__ import annotations

import argparse
import json
import secrets
import shlex
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hakmem import __version__, interrupts, variants
from hakmem.folders import Folder
from hakmem.hint import hint
from hakmem.outputs import replace as replace_file
from hakmem.recording import NoRecording
from hakmem.variants import split
from hakmem_yardstick import candidates, proof, replay, settings_file, verdict
from hakmem_yardstick.allocators import FOUR, installed
from hakmem_yardstick.asked import Asked, checked, others, output
from hakmem_yardstick.chosen import chosen, libraries, player
from hakmem_yardstick.compare_runs import ROW, Broken, Until, prepare
from hakmem_yardstick.duels import Duels
from hakmem_yardstick.estimate import duration
from hakmem_yardstick.halving import Screened, halved
from hakmem_yardstick.jobs import executor
from hakmem_yardstick.model import OURS, Allocator
from hakmem_yardstick.progress import Display
from hakmem_yardstick.replay import CannotReplay, Job
from hakmem_yardstick.service import Service
from hakmem_yardstick.settings_file import Settings
from hakmem_yardstick.sheet import Sheet, show
from hakmem_yardstick.subject import Program
from hakmem_yardstick.tune_record import record
from hakmem_yardstick.verdict import Answer

ANSWERED, NO_LONGER, PROGRAM_FAILED = 0, 1, 4
LETTERS = "ABCDEF"
FINALISTS = 4  # beside the base, and the base once more
OUTLIERS = 4  # rounds beyond those that show something if all are alike
MOST_ROUNDS = 40
REPLAY_SECONDS = 1.5  # a paced replay takes at most so long


def run(arguments: argparse.Namespace) -> int:
    console = Console(highlight=False)
    console.width = max(200, console.width)  # rather a broken line than a figure cut short
    try:
        with ExitStack() as stack, interrupts.in_order():
            return Tuning.of(arguments, console, stack).run()
    except (OSError, Broken, proof.Unproved, CannotReplay) as error:
        print(f"hakmem tune: {error}", file=sys.stderr)
        return PROGRAM_FAILED
    except interrupts.Interrupted as end:
        print("hakmem tune: interrupted", file=sys.stderr)
        return end.status


@dataclass
class Tuning:
    arguments: argparse.Namespace
    console: Console
    asked: Asked
    service: Service | None
    folder: Path
    settings: Settings | None
    """To be checked."""

    @classmethod
    def of(cls, arguments: argparse.Namespace, console: Console, stack: ExitStack) -> Tuning:
        wanted, settings = checked(arguments)
        service = None
        if wanted.load is not None:
            service = stack.enter_context(
                Service(wanted.load, wanted.ready, wanted.program.cwd, wanted.program.timeout)
            )
        folder = stack.enter_context(Folder("hakmem-tune-"))
        return cls(arguments, console, wanted, service, folder, settings)

    def run(self) -> int:
        return self._tune() if self.settings is None else self._check(self.settings)

    # ---- the whole ----

    def _tune(self) -> int:
        with executor(self.arguments.cluster):
            pass  # it is there: rather known before the program is recorded
        identity = settings_file.identity(self.asked.program.command)
        base = self._chosen([self.asked.base])[0]
        rivals = self._rivals()
        recording = self.arguments.recording or self._record()
        finalists = [one.allocator for one in self._screened(recording, base, rivals)]
        duels = self._fought(base, finalists, self.asked.program)
        self._show(duels)
        answer = verdict.best(duels, self.asked.least)
        confirmed = None
        following = "'hakmem profile' shows which code allocates; less of it gains more"
        if answer is not None:
            winner = next(one for one in finalists if one.name == answer.name)
            self._say(f"once more, {answer.name} alone")
            confirmed = self._fought(base, [winner], self.asked.held_out)
            self._show(confirmed)
        if answer is None or confirmed is None:
            self._tell_none(duels)
        elif not verdict.holds(confirmed, answer, self.asked.least):
            again = verdict.of(confirmed, answer.name, self.asked.least)
            self._say(
                f"keep {self._kept}: {answer.name} seemed to gain, but a second series of runs"
                f" does not show it ({again.text()})"
            )
        elif split(answer.name)[0] == OURS:
            path = output(self.arguments, self.asked)
            following = self._write(path, answer, confirmed, identity)
        else:
            self._tell_other(winner, verdict.of(confirmed, answer.name, self.asked.least))
        self._write_json(duels, confirmed)
        hint(following)
        return ANSWERED

    def _check(self, settings: Settings) -> int:
        program = self.asked.program
        self._say(f"running {shlex.join(program.command)}")
        for name in ("prepare", "ready", "load"):
            if self.asked.how[name] is not None:
                self._say(f"--{name} {self.asked.how[name]}")
        if settings_file.identity(program.command) != settings.identity:
            self._say("the program is another one than when the settings were measured")
        cpus = settings_file.cpus()
        if cpus != settings.cpus:
            self._say(f"then there were {settings.cpus} processors, now there are {cpus}")
        base = self._chosen([self.asked.base])[0]
        words = [f"{name}={value}" for name, value in settings.options.items()]
        own = self._chosen(["+".join([OURS, *words])])[0]
        duels = self._fought(base, [own], program)
        self._show(duels)
        self._write_json(duels, None)
        answer = verdict.of(duels, own.name, self.asked.least)
        if answer.gains and not answer.losses:
            self._say(f"the settings still gain: {answer.text()}")
            return ANSWERED
        lost = f"they lose: {answer.text()}" if answer.losses else "no gain is shown"
        self._say(f"{lost}; run 'hakmem tune' again, or go back to {self._kept}")
        return NO_LONGER

    # ---- its steps ----

    def _chosen(self, words: list[str]) -> list[Allocator]:
        variants.check(words, self.arguments.front)
        return chosen(words, self.arguments.library)

    def _rivals(self) -> list[Allocator]:
        words: list[str]
        if self.arguments.others is None:
            found, _ = installed(self.arguments.library.parent, FOUR)
            words = [one.name for one in found]
        else:
            words = others(self.arguments)
        own = candidates.names(self.asked.base, ())
        foreign = [word for word in dict.fromkeys(words) if word != self.asked.base]
        return [*chosen(own, self.arguments.library), *self._chosen(foreign)]

    def _record(self) -> Path:
        program = self.asked.program
        self._say(f"recording {shlex.join(program.command)}")
        prepare(program)
        front, library = self.arguments.front, self.arguments.library
        file, told = record(front, library, program, self.service, self.folder)
        self._say(told)
        return file

    def _screened(
        self, recording: Path, base: Allocator, rivals: list[Allocator]
    ) -> list[Screened]:
        with self._display() as display:
            display.step("reading the recording")
            try:
                ready = replay.prepared(recording.absolute(), None)
            except NoRecording as why:
                if self.arguments.recording is not None:
                    raise
                raise CannotReplay(
                    "nothing was recorded: the program does not use hakmem, or no heap;"
                    f" see 'hakmem doctor -- {shlex.join(self.asked.program.command)}'"
                ) from why
        speed = max(1.0, ready.times[-1] / REPLAY_SECONDS)

        def job(allocator: Allocator) -> Job:
            program = player(self.arguments.library)
            return Job(recording.absolute(), None, allocator, program, speed)

        cluster = self.arguments.cluster
        with (
            self._display() as display,
            executor(cluster, [recording.absolute(), *libraries([base, *rivals])]) as jobs,
        ):
            found = halved(
                base, rivals, FINALISTS, job, jobs, display.step, by_time=cluster is None
            )
        names = ", ".join(one.allocator.name for one in found) or "none"
        self._say(f"of {len(rivals)} candidates these are best by replay: {names}\n")
        return found

    def _fought(self, base: Allocator, others: list[Allocator], program: Program) -> Duels:
        noise = replace(base, name=f"{base.name}#2")
        seed = secrets.randbits(32) if self.arguments.seed is None else self.arguments.seed
        duels = Duels(
            program, [base, noise, *others], self.asked.measures, seed,
            figure=self.asked.figure, service=self.service,
        )  # fmt: skip
        with self._display() as display:
            display.step("a first run on each, to see that it is active")
            duels.prove()
            for name, why in duels.left_out.items():
                self._say(f"left out: {name}: {why}")
            began = time.monotonic()
            duels.on_run = lambda run: display.step(f"a first round: {run.allocator} is done")
            duels.run(Until(rounds=1))
            took = time.monotonic() - began
            self._refuse_failed(duels)
            # The first round says how many more there is time for.
            rounds = int(60 * self.arguments.minutes / max(took, 1e-3))
            rounds = max(duels.least_rounds + OUTLIERS, min(rounds, MOST_ROUNDS))
            if rounds * took > 90 * self.arguments.minutes:
                self._say(f"fewer than {rounds} rounds can show nothing: {duration(rounds * took)}")
            display.follow(duels)
            duels.run(Until(rounds=rounds))
        self._refuse_failed(duels)
        return duels

    def _refuse_failed(self, duels: Duels) -> None:
        """On the base: without it nothing can be compared."""
        for name in (duels.base, f"{duels.base}#2"):
            failure = duels.results.failure(ROW, name)
            if failure is not None:
                raise Broken(f"the program failed: {failure.detail or failure.outcome}")

    # ---- what is said ----

    def _display(self) -> Display:
        return Display(self.console, plain=False)

    @property
    def _kept(self) -> str:
        return "the defaults" if self.asked.base == OURS else self.asked.base

    def _say(self, line: str) -> None:
        self.console.print(escape(line), soft_wrap=True)

    def _show(self, duels: Duels) -> None:
        rows = []
        for letter, name in zip(LETTERS, [duels.base, *duels.compared], strict=False):
            again = name == f"{duels.base}#2"
            self._say(f"{letter}  {duels.base}, measured again" if again else f"{letter}  {name}")
            rows.append([letter, *(verdict.cell(duels, name, m) for m in self.asked.measures)])
        show(Sheet(["", *map(verdict.label, self.asked.measures)], rows), self.console)
        self._say(f"{duels.rounds} rounds; ratios to A, below 1 is better")
        for measure in duels.unmeasured:
            self._say(f"not compared: {verdict.label(measure)}, which too few runs have")
        self._say("")
        for run in duels.failed:
            self._say(f"the program failed on {run.allocator}: {run.detail or run.outcome}")

    def _tell_none(self, duels: Duels) -> None:
        trade = verdict.trade(duels, self.asked.least)
        if trade is not None:
            self._say(f"keep {self._kept}: no candidate gains without a loss")
            self._say(
                f"{trade.name} gains, at a price: {trade.text()};"
                f" --measures {','.join(trade.gains)} looks at the gain alone"
            )
            return
        shown = verdict.showable(duels, self.asked.least)
        found = f"; a difference of {shown} would mostly have been found" if shown else ""
        self._say(f"keep {self._kept}: no candidate gains{found}")

    def _tell_other(self, winner: Allocator, again: Answer) -> None:
        self._say(f"{winner.name} serves this program better: {again.text()}")
        words = [f"{name}={value}" for name, value in winner.environment.items()]
        if winner.library is not None:
            words.append(f"LD_PRELOAD={winner.library}")
        with_what = f"with {shlex.join(words)}" if words else "without hakmem"
        self._say(f"run it {with_what}")

    def _write(self, path: Path, answer: Answer, confirmed: Duels, identity: str) -> str:
        """And what to do next."""
        again = verdict.of(confirmed, answer.name, self.asked.least)
        settings = Settings(
            split(answer.name)[1],
            self.asked.base,
            self.asked.program.command,
            identity,
            settings_file.cpus(),
            self.asked.how,
            told=(
                f"by hakmem {__version__} on {time.strftime('%Y-%m-%d')}, in {confirmed.rounds}"
                f" rounds against {self.asked.base}, {again.text()}",
            ),
        )
        self._say(f"these settings gain: {answer.name}: {again.text()}")
        replace_file(path, settings.text().encode())
        self._say(f"written: {path}")
        use = shlex.join(["hakmem", "run", "--settings", str(path), *self.asked.program.command])
        return f"'{use}' uses them"

    def _write_json(self, duels: Duels, confirmed: Duels | None) -> None:
        if self.arguments.json is None:
            return
        facts = {"duels": duels.results.to_json()}
        if confirmed is not None:
            facts["confirmed"] = confirmed.results.to_json()
        replace_file(self.arguments.json, (json.dumps(facts, indent=1) + "\n").encode())
