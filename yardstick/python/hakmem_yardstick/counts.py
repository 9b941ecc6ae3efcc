"""Counts: what a row executes for one operation, under callgrind: figures that repeat exactly.

A row of the suite is run twice, shorter and longer. The longer run begins with the very operations
of the shorter one, so the difference is what its last operations took, on a warm heap.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hakmem import callgrind
from hakmem.folders import Folder
from hakmem_yardstick.measure import ending
from hakmem_yardstick.model import Allocator, Measure, Row
from hakmem_yardstick.peers.proof import is_in_force
from hakmem_yardstick.runner import Outcome, Unavailable
from hakmem_yardstick.suite import EXITS

MEASURES = (
    Measure("instructions", "instructions", "a call, by the allocator and what it calls"),
    Measure("branches", "branches", "a call, conditional, of the allocator and what it calls"),
    Measure("mispredicts", "branches", "a call, of these, by callgrind's predictor"),
    Measure("data-refs", "accesses", "a call, loads and stores of the allocator and what it calls"),
    Measure("d1-misses", "misses", "a call, first-level cache, the row's own accesses too"),
    Measure("ll-misses", "misses", "a call, last-level cache, the row's own accesses too"),
)
# What is never 0, so that there is a ratio.
JUDGED = ("instructions", "branches", "data-refs")

# One machine for all: figures don't depend on the processor that they are taken on.
CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64")

# clock_start and clock_stop stand around what a row measures (yardstick/suite/measure.c).
BEGIN, END = "clock_start", "clock_stop"

_VALGRINDS_LINE = re.compile(r"(==|--)\d+\1")


@dataclass(frozen=True)
class Work:
    """A row of the suite, and how many of its iterations are run."""

    row: str
    before: int
    """The iterations that only warm the heap."""
    counted: int
    why: str
    tier: str = "standard"
    needs_content: bool = False

    @property
    def name(self) -> str:
        return f"count-{self.row}"


WORKS = (
    Work("pair-64", 2_000, 100_000, "the shortest way through malloc and free", "quick"),
    Work("pair-random", 20_480, 102_400, "sizes that no branch predictor knows", "quick"),
    Work("mixed-400", 50_000, 200_000, "a small heap: caches of classes run empty and full"),
    Work("mixed-8192", 100_000, 200_000, "a larger heap: refills, flushes, slabs", "quick"),
    Work("replace-8192", 50_000, 100_000, "free at random, take at once"),
    Work("mixed-8k", 50_000, 200_000, "medium sizes"),
    Work("fifo-1000-64", 20, 100, "bursts deeper than a thread's cache, in order"),
    Work("lifo-1000-64", 20, 100, "the same, unwound like a stack"),
    Work("random-1000-64", 20, 100, "the same, in any order"),
    Work("batch-random", 10, 10, "many classes at once, far deeper than a thread's cache"),
    Work("large-64k", 20_000, 60_000, "runs of pages: a heap that comes and goes"),
    Work("large-mixed", 20_000, 60_000, "runs that are split and joined"),
    Work("pair-1m", 1_000, 20_000, "one large block, kept for the next"),
    Work("calloc-64", 2_000, 100_000, "small and cleared", needs_content=True),
    Work("calloc-1k", 2_000, 50_000, "cleared: with the C library's memset", needs_content=True),
    Work("realloc-step-16-of-8", 20_000, 100_000, "buffers that grow by appending",
         needs_content=True),
    Work("aligned-64-200", 2_000, 100_000, "a cache line's alignment", needs_content=True),
)  # fmt: skip


class CountFailed(Exception):
    """A run without figures: the word for its cell, and why."""

    def __init__(self, outcome: str, detail: str) -> None:
        super().__init__(f"{outcome}: {detail}")
        self.outcome, self.detail = outcome, detail


@dataclass(frozen=True)
class Counted:
    """Of the measured part of one run."""

    objects: Mapping[str, Counter[str]]
    """Events by the file whose code they happened in."""
    operations: int
    checksum: str

    def since(self, shorter: Counted) -> Counted:
        objects = {name: Counter(events) for name, events in self.objects.items()}
        for name, events in shorter.objects.items():
            objects.setdefault(name, Counter()).subtract(events)
        return Counted(objects, self.operations - shorter.operations, self.checksum)

    def values(self, leave_out: Collection[str]) -> dict[str, float]:
        """By the measures' names; what is executed in files of these names is no allocator's."""
        allocator: Counter[str] = Counter()
        everywhere: Counter[str] = Counter()
        for name, events in self.objects.items():
            everywhere.update(events)
            if Path(name).name not in leave_out:
                allocator.update(events)
        numbers = {
            "instructions": allocator["Ir"],
            "branches": allocator["Bc"],
            "mispredicts": allocator["Bcm"],
            "data-refs": allocator["Dr"] + allocator["Dw"],
            "d1-misses": everywhere["D1mr"] + everywhere["D1mw"],
            "ll-misses": everywhere["DLmr"] + everywhere["DLmw"],
        }
        # Predictors and caches may make a hair more of the same operations in the shorter run.
        return {name: max(0, number) / self.operations for name, number in numbers.items()}


class Counts:
    """The group, as a Runner."""

    def __init__(self, suite: Path) -> None:
        self.suite = suite.resolve()
        self.clock = self.suite.with_name("libstill_clock.so")
        self._processors = itertools.cycle(sorted(os.sched_getaffinity(0)))

    def rows(self) -> list[Row]:
        return [
            Row(
                name=work.name,
                group="counts",
                family="counts",
                why=work.why,
                measures=MEASURES,
                judged=JUDGED,
                tier=work.tier,
                needs_content=work.needs_content,
                exact=True,
                parameters={"row": work.row, "before": work.before, "counted": work.counted},
            )
            for work in WORKS
        ]

    def prepare(self, row: Row) -> None:
        for tool in ("valgrind", "taskset"):
            if shutil.which(tool) is None:
                raise Unavailable(f"{tool} is not installed")
        if not self.suite.is_file():
            raise Unavailable(f"no suite at {self.suite}")

    def run(self, row: Row, allocator: Allocator, *, scale: float, timeout: float) -> Outcome:
        """`scale` changes nothing: figures of another number of operations can't be compared."""
        work = next(work for work in WORKS if work.name == row.name)
        began = time.monotonic()
        try:
            counted = self.count(work, allocator, timeout=timeout)
        except CountFailed as failed:
            return Outcome(failed.outcome, failed.detail, time.monotonic() - began)
        return Outcome(
            seconds=time.monotonic() - began,
            values=counted.values(leave_out=[self.suite.name, self.clock.name]),
            raw={
                "operations": counted.operations,
                "checksum": counted.checksum,
                "events": {name: dict(events) for name, events in counted.objects.items()},
            },
        )

    def count(self, work: Work, allocator: Allocator, *, timeout: float) -> Counted:
        """What the counted iterations took; raises CountFailed."""
        until = time.monotonic() + timeout
        shorter = self._once(work, work.before, allocator, timeout)
        longer = self._once(
            work, work.before + work.counted, allocator, max(1.0, until - time.monotonic())
        )
        return longer.since(shorter)

    def _once(self, work: Work, iterations: int, allocator: Allocator, timeout: float) -> Counted:
        with Folder("hakmem-counts-") as made:
            folder = made.resolve()
            out = folder / "profile"
            suite, preloaded = _at_hand(folder, self.suite, allocator.library, self.clock)
            # One processor, as allocators make as much of some things as there are; not always the
            # same one, for callers that run several at once.
            line = ["taskset", "--cpu-list", str(next(self._processors))]
            line += callgrind.command(
                out,
                "--cache-sim=yes",
                "--branch-sim=yes",
                *CACHES,
                f"--dump-after={BEGIN}",
                f"--dump-before={END}",
            )
            line += [suite, work.row, "--iterations", str(iterations)]
            try:
                done = subprocess.run(
                    line,
                    env=environment(allocator, preloaded),
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=timeout,
                )
            except subprocess.TimeoutExpired:
                raise CountFailed("hang", f"no end after {timeout:.0f} s under valgrind") from None
            _raise_for_exit(done)
            told = json.loads(done.stdout)
            if not is_in_force(allocator, str(folder / told["allocator"])):
                raise CountFailed("not active", f"malloc came from {told['allocator']}")
            objects = _by_object(_measured_part(out))
            if str(self.suite) not in objects:
                raise callgrind.Misread(f"nothing ran in {self.suite}, only in {list(objects)}")
        return Counted(objects, int(told["operations"]), told["checksum"])


def _at_hand(folder: Path, *files: Path | None) -> tuple[str, list[str]]:
    """Links to these in the folder, as names that a program started there finds: how long the real
    paths are would tell in the counts, as the loader keeps them in blocks of the allocator's."""
    names = []
    for file in files:
        if file is not None:
            (folder / file.name).symlink_to(file.resolve())
            names.append(f"./{file.name}")
    return names[0], names[1:]


def environment(allocator: Allocator, preloaded: Sequence[str]) -> dict[str, str]:
    """The same on every machine, since a program's surroundings lie on its stack. Names are
    settled at the start: the loader's work at a first call is not the allocator's. One of the
    preloaded is a clock that stands still, or what is done by the time of day would depend on the
    machine's speed."""
    settled = {"LC_ALL": "C", "PATH": "/usr/bin:/bin", "LD_BIND_NOW": "1"}
    settled["LD_PRELOAD"] = ":".join(preloaded)
    return {**settled, **allocator.environment}


def _measured_part(out: Path) -> str:
    """Callgrind writes a file at each border; the one written at its end is the measured part."""
    for part in sorted(out.parent.glob(f"{out.name}.*")):
        text = part.read_text()
        if f"\ndesc: Trigger: --dump-before={END}\n" in text:
            return text
    raise callgrind.Misread(f"no part of the profile ends before {END}")


def _raise_for_exit(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode == 0:
        return
    own = [line for line in done.stderr.splitlines() if not _VALGRINDS_LINE.match(line)]
    said = " ".join(" ".join(own).split())[:300] or "it said nothing"
    outcome = EXITS.get(done.returncode) or ending(done.returncode)
    raise CountFailed(outcome, f"under valgrind: {said}")


def _by_object(profile: str) -> dict[str, Counter[str]]:
    objects: dict[str, Counter[str]] = {}
    for entry in callgrind.entries(profile):
        if entry.calls is None:
            objects.setdefault(entry.object, Counter()).update(entry.costs)
    return objects
