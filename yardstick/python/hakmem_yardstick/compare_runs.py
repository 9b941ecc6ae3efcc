"""Runs a user's program on several allocators in turn, and judges what it cost.

Comparison
  prove       which malloc is active; this first run of each is not measured
  run         rounds until a stop rule is satisfied
    _one      one run
  judged      verdicts on what was measured
"""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hakmem_yardstick import proof, stats
from hakmem_yardstick.allocators import environment
from hakmem_yardstick.measure import Measured, measure
from hakmem_yardstick.model import Allocator, Results, Row, Run
from hakmem_yardstick.stats import Figures, Judged
from hakmem_yardstick.subject import ALL_MEASURES, JUDGED, Program

ROW = "program"
# Closer medians are called the same: start-up of a process, the kernel's batches of counting, and
# the pages that it maps around a fault.
RESOLUTION = {"s": 1e-4, "KiB": 64.0, "faults": 16.0, "figure": 0.0}

_FEWEST_ROUNDS = stats.LOOKS[0]
_SAMPLE_SECONDS = 0.02
_FEWEST_SAMPLES = 5  # for an average over time
_KEPT_BYTES = 1 << 24


class Broken(Exception):
    """The program, or what is run before it, failed."""


@dataclass(frozen=True)
class Until:
    """When there have been enough rounds."""

    rounds: int | None = None
    """Exactly so many."""
    precision: float = 0.01
    """All intervals reach at most so far; looked at after stats.LOOKS rounds."""
    seconds: float | None = None
    """So long, whatever the rounds."""
    patience: float = 180.0
    """Where neither rounds nor seconds are asked for: after so long, as few rounds as may be."""


@dataclass
class Comparison:
    program: Program
    allocators: Sequence[Allocator]
    """All are compared with the first."""
    judge: tuple[str, ...] = JUDGED
    seed: int = 0
    """Of the order of the runs."""
    on_run: Callable[[Run], None] = lambda run: None
    started: Callable[[int], None] = lambda pid: None
    """Is told the PID of each run."""
    results: Results = field(init=False)
    until: Until = field(init=False, default_factory=Until)
    stopped: str = field(init=False, default="")
    """Why there are no more rounds."""
    error: float = field(init=False, default=1 - stats.CONFIDENCE)
    """The chance of a verdict that is wrong, before looking at widths adds to it."""
    unserved: dict[str, list[str]] = field(init=False, default_factory=dict)
    """By allocator, the programs started on the way in which it is not active."""
    _first_output: bytes | None = field(init=False, default=None)
    _began: float = field(init=False, default_factory=time.monotonic)

    def __post_init__(self) -> None:
        row = Row(
            name=ROW,
            group="compare",
            family=ROW,
            why="",
            measures=tuple(ALL_MEASURES.values()),
            judged=self.judge,
            parameters={"command": list(self.program.command)},
        )
        self.results = Results([row], list(self.allocators))
        self.results.settings["seed"] = self.seed

    @property
    def base(self) -> str:
        return self.allocators[0].name

    @property
    def failed(self) -> list[Run]:
        """The first failure of each allocator that has one."""
        failures = [self.results.failure(ROW, allocator.name) for allocator in self.allocators]
        return [failure for failure in failures if failure is not None]

    @property
    def compared(self) -> list[str]:
        """With the first: the others on which the program did not fail."""
        failed = {run.allocator for run in self.failed}
        names = [allocator.name for allocator in self.allocators]
        return [] if self.base in failed else [name for name in names[1:] if name not in failed]

    def prove(self) -> None:
        """Raises proof.Unproved with the allocator's name before the reason."""
        if self.program.setup is not None:
            _shell("--setup", self.program.setup, self.program)
        for allocator in self.allocators:
            self._prove(allocator)

    def _prove(self, allocator: Allocator) -> None:
        prepare(self.program)
        try:
            findings = proof.prove(
                allocator,
                self.program.command,
                self._environment(allocator),
                timeout=self.program.timeout,
                stdin=self.program.stdin,
                cwd=self.program.cwd,
            )
        except proof.Unproved as why:
            raise proof.Unproved(f"{allocator.name} is not active: {why}") from None
        lost = [f"{f.program}: {f.why}" for f in findings if not f.in_force]
        if lost:
            self.unserved[allocator.name] = list(dict.fromkeys(lost))

    def run(self, until: Until) -> None:
        """Leaves out an allocator once the program has failed on it."""
        self.until = until
        by_name = {allocator.name: allocator for allocator in self.allocators}
        if until.rounds is None:
            self.error = stats.ERROR_AFTER_LOOKS
        if until.seconds is not None:
            self._began = time.monotonic()
        number = self.rounds
        while not self._is_enough(number, until):
            compared = self.compared
            if not compared:
                self.stopped = "the program failed"
                return
            order = stats.drawn_order([self.base, *compared], self.seed, ROW, number)
            for position, name in enumerate(order):
                self._one(by_name[name], number, position)
            number += 1

    @property
    def used(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    @property
    def seconds_left(self) -> float:
        """About, at most: narrow intervals may end it sooner."""
        rounds, until = max(self.rounds, 1), self.until
        a_round = self.used / rounds
        if until.rounds is not None:
            return max(0.0, until.rounds - rounds) * a_round
        if until.seconds is not None:
            return max(0.0, until.seconds - self.used)
        most = min(until.patience - self.used, (stats.LOOKS[-1] - rounds) * a_round)
        return max(0.0, most, (_FEWEST_ROUNDS - rounds) * a_round)

    def judged(self) -> dict[tuple[str, str], Judged]:
        """By allocator and measure, of all but the first; together they give a false alarm in one
        of 20 comparisons."""
        figures = {
            (name, measure): found
            for name in self.compared
            for measure in self.judge
            if (found := self.figures(name, measure)) is not None
        }
        return stats.judge(figures, self.error)

    @property
    def least_rounds(self) -> int:
        """Fewer can show nothing of so many ratios together, were all rounds alike."""
        return math.ceil(math.log2(2 * len(self.compared) * len(self.judge) / self.error))

    def figures(self, name: str, measure: str) -> Figures | None:
        a = stats.values_of(self.results, ROW, self.base, measure)
        b = stats.values_of(self.results, ROW, name, measure)
        both = sorted(a.keys() & b.keys())
        if not both:
            return None
        unit = ALL_MEASURES[measure].unit
        return Figures(
            tuple(a[number] for number in both),
            tuple(b[number] for number in both),
            stats.least(unit),
            RESOLUTION[unit],
        )

    # ---- one run ----

    @property
    def rounds(self) -> int:
        return len({run.round for run in self.results.runs})

    def _one(self, allocator: Allocator, number: int, position: int) -> None:
        prepare(self.program)
        began = self.used
        done = self._measured(allocator)
        outcome, detail = self._outcome(done)
        run = Run(
            row=ROW,
            allocator=allocator.name,
            round=number,
            position=position,
            began=began,
            seconds=done.seconds,
            outcome=outcome,
            detail=detail,
            values=self._values(done) if outcome == "ok" else {},
            series=done.series,
            raw={"status": done.status, "left_behind": done.left_behind},
        )
        self.results.runs.append(run)
        self.on_run(run)

    @property
    def keeps_output(self) -> bool:
        return self.program.check_output or self.program.output is not None

    def _measured(self, allocator: Allocator) -> Measured:
        return measure(
            self.program.command,
            self._environment(allocator),
            timeout=self.program.timeout,
            sample=_SAMPLE_SECONDS,
            stdin=self.program.stdin,
            cwd=self.program.cwd,
            keep_output=self.keeps_output,
            keep_bytes=_KEPT_BYTES,
            started=self.started,
        )

    def _outcome(self, done: Measured) -> tuple[str, str]:
        outcome, detail = done.outcome, done.detail
        if self.program.ignore_status and done.status > 0 and not done.timed_out:
            outcome, detail = "ok", ""
        if self.program.output is not None:
            try:
                with self.program.output.open("ab") as file:
                    file.write(done.output)
            except OSError as error:
                raise Broken(f"--output {self.program.output}: {error.strerror}") from None
        if self.program.check_output and outcome == "ok":
            if self._first_output is None:
                self._first_output = done.output
            elif done.output != self._first_output:
                return "output", _first_difference(self._first_output, done.output)
        return outcome, detail

    def _values(self, done: Measured) -> dict[str, float]:
        values = {
            "time": done.seconds,
            "cpu": done.cpu_seconds,
            "peak": float(done.peak_kib),
            "faults": float(done.minor_faults),
            "major-faults": float(done.major_faults),
        }
        if len(done.series) >= _FEWEST_SAMPLES:
            values["pss"] = done.pss_mean_kib
        return values

    def _environment(self, allocator: Allocator) -> Mapping[str, str]:
        return environment(allocator)

    # ---- the stop rule ----

    def _is_enough(self, rounds: int, until: Until) -> bool:
        """A rule that would look at the ratio itself, or at widths after every round, would stop
        where chance has been kind."""
        used = self.used
        if until.rounds is not None:
            self.stopped = f"as many rounds as asked for ({rounds})"
            return rounds >= until.rounds
        if until.seconds is not None and rounds > 0 and used >= until.seconds:
            self.stopped = f"the {until.seconds:g} seconds are up"
            return True
        if rounds in stats.LOOKS and self._is_narrow(until.precision):
            self.stopped = f"no interval reaches farther than {until.precision:.2g} of its ratio"
            return True
        if until.seconds is None and rounds >= _FEWEST_ROUNDS and used >= until.patience:
            self.stopped = f"the {until.patience:g} seconds are up; --seconds gives it more"
            return True
        self.stopped = f"{stats.LOOKS[-1]} rounds are the most; --rounds makes more"
        return rounds >= stats.LOOKS[-1]

    def _is_narrow(self, precision: float) -> bool:
        for name in self.compared:
            for judged in self.judge:
                known = stats.ratio(self.results, ROW, name, self.base, judged)
                middle = stats.median_of(self.results, ROW, self.base, judged)
                if known is None or middle is None:
                    continue
                matters = max(precision, RESOLUTION[ALL_MEASURES[judged].unit] / max(middle, 1e-9))
                if known.reach > matters:
                    return False
        return True


def prepare(program: Program) -> None:
    """What is to be done before each run. Raises Broken."""
    if program.prepare is not None:
        _shell("--prepare", program.prepare, program)


def _shell(option: str, command: str, program: Program) -> None:
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=program.cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.strip()[-300:]
        raise Broken(f"{option} {command!r}: exit status {done.returncode}: {said}")


def _first_difference(first: bytes, other: bytes) -> str:
    for number, (a, b) in enumerate(zip(first.splitlines(), other.splitlines(), strict=False), 1):
        if a != b:
            where = f"standard output differs from the first run's in line {number}"
            said, before = (line[:200].decode(errors="backslashreplace") for line in (b, a))
            return f"{where}: {said!r}, not {before!r}"
    return f"standard output has {len(other)} bytes, the first run's {len(first)}"
