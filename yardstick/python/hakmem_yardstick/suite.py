"""The rows of the suite: small programs in C (yardstick/suite), one row a process.

In a clone the suite lies beside the library that was built. An installed hakmem carries its source,
and builds it when it is first wanted.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hakmem import __version__
from hakmem_yardstick.allocators import environment
from hakmem_yardstick.estimate import SUITE_SECONDS, Preparation
from hakmem_yardstick.measure import Measured, measure
from hakmem_yardstick.model import Allocator, Measure, Row, Run
from hakmem_yardstick.peers.cache import user_folder, wiped_environment
from hakmem_yardstick.peers.proof import is_in_force
from hakmem_yardstick.runner import Outcome

TIME = Measure("time", "ns", "wall-clock time of an operation")
CPU = Measure("cpu", "ns", "processor time of an operation, of all threads together")
PEAK = Measure("peak", "KiB", "resident memory at its peak since the row began")
RESIDENT = Measure("resident", "KiB", "resident memory after the last free")
FAULTS = Measure("faults", "faults", "page faults that needed no disk, in the measured part")
PSS = Measure("pss", "KiB", "resident memory on average over time, sampled from outside")
_COMMON = (TIME, CPU, PEAK, RESIDENT, FAULTS)

_SECONDS_BETWEEN_SAMPLES = 0.01
# Whose rows count seconds and MiB, or quantiles of all calls: a part of one would be another row.
_UNSCALED_GROUPS = ("memory", "tail")
_CHECK_SCALE = 0.02

# A run of one thread that waited for its core more than this share of the time is run again,
# twice at most; and of all runs not more than a share, lest a busy machine make a plan endless.
_WAITED = 0.05
_AGAIN = 2
_MOST_AGAIN = 0.2

# Exit statuses of the program (yardstick/suite/suite.h), as words for cells.
EXITS = {2: "usage", 3: "no memory", 4: "content", 5: "system"}


class CannotBuild(Exception):
    """The suite is not there and can't be made, and what to do."""


_HERE = Path(__file__).resolve().parent
_INSTALLED_SOURCES = _HERE / "sources"


def find(library: Path, progress: Callable[[str], None]) -> Path:
    """The folder with the suite, built now if it must be.

    library   ours, beside which a clone has bench/
    """
    beside = library.parent / "bench"
    if (beside / "suite").is_file():
        return beside
    if not _INSTALLED_SOURCES.is_dir():
        raise CannotBuild(f"no suite at {beside / 'suite'}: build it with 'make build'")
    return build(_INSTALLED_SOURCES, user_folder(), progress)


def preparation(library: Path) -> Preparation | None:
    """What `find` has yet to do."""
    if (library.parent / "bench" / "suite").is_file() or not _INSTALLED_SOURCES.is_dir():
        return None
    if (_folder(_INSTALLED_SOURCES, user_folder()) / "built").exists():
        return None
    return Preparation("building the benchmarks", SUITE_SECONDS)


def _folder(sources: Path, cache: Path) -> Path:
    """Named after the version and the very sources."""
    text = hashlib.sha256()
    for file in sorted(p for p in sources.rglob("*") if p.is_file()):
        text.update(f"{file.relative_to(sources)}\n".encode() + file.read_bytes())
    return cache / f"{__version__}-{text.hexdigest()[:12]}"


def build(sources: Path, cache: Path, progress: Callable[[str], None]) -> Path:
    """By CMake, once."""
    folder = _folder(sources, cache)
    done = folder / "built"
    if done.exists():
        return folder / "bench"
    missing = [name for name in ("cmake", "cc") if shutil.which(name) is None]
    if missing:
        raise CannotBuild(
            f"the suite is compiled at first use, and there is no {' and no '.join(missing)}; "
            "Debian: apt-get install cmake gcc libc6-dev make"
        )
    progress(f"building the suite in {folder}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another hakmem may be at it
            if not done.exists():
                _compile(sources, folder)
                done.touch()
    except OSError as error:
        where = error.filename or folder
        raise CannotBuild(f"the suite can't be built in {where}: {error.strerror}") from None
    return folder / "bench"


def _compile(sources: Path, folder: Path) -> None:
    log = folder / "log"
    with log.open("w") as out:
        for words in (
            ["cmake", "-S", str(sources), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release"],
            ["cmake", "--build", str(folder), "--parallel", str(os.cpu_count() or 1)],
        ):
            made = subprocess.run(
                words, env=wiped_environment(), stdout=out, stderr=out, stdin=subprocess.DEVNULL
            )
            if made.returncode:
                last = " ".join(log.read_text(errors="replace").split())[-300:]
                raise CannotBuild(f"the suite can't be built ({log}): {last}")


def _row_of(record: dict[str, Any]) -> Row:
    judged = tuple(record["judged"].split())
    sampled = (PSS,) if record["sampled"] else ()
    measures = (*_COMMON, *sampled)
    known = {measure.name for measure in measures}
    return Row(
        name=record["row"],
        group=record["group"],
        family=record["family"],
        why=record["why"],
        # The units of figures of its own come with the first run: see with_figures.
        measures=(*measures, *(Measure(name, "") for name in judged if name not in known)),
        judged=judged,
        tier=record["tier"],
        threads=record["parameters"]["threads"],
        needs_content=record["needs_content"],
        parameters=record["parameters"],
    )


def with_figures(row: Row, runs: Iterable[Run]) -> Row:
    """The row with all measures that its runs gave, and their units."""
    figures = next((run.raw["figures"] for run in runs if run.raw.get("figures")), None)
    if figures is None:
        return row
    own = {name: Measure(name, figure["unit"]) for name, figure in figures.items()}
    kept = tuple(measure for measure in row.measures if measure.name not in own)
    return replace(row, measures=(*kept, *own.values()))


class Suite:
    """Runs rows of the C suite."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "suite"
        self._checked: set[tuple[str, str]] = set()
        self._runs = 0
        self._again = 0

    def rows(self) -> list[Row]:
        listed = subprocess.run(
            [self.program, "--list-json"], check=True, capture_output=True, text=True, timeout=30
        )
        return [_row_of(json.loads(line)) for line in listed.stdout.splitlines()]

    def prepare(self, row: Row) -> None:
        """There is nothing to make: rows draw their numbers themselves."""

    def run(self, row: Row, allocator: Allocator, *, scale: float, timeout: float) -> Outcome:
        """The first one of a row on an allocator comes behind a short run that checks content."""
        if (failed := self._fails_check(row, allocator, timeout)) is not None:
            return failed
        scaled = scale != 1.0 and row.group not in _UNSCALED_GROUPS
        options = ["--scale", str(scale)] if scaled else []
        return self._undisturbed(row, allocator, options, timeout)

    def _fails_check(self, row: Row, allocator: Allocator, timeout: float) -> Outcome | None:
        key = (row.name, allocator.name)
        if key not in self._checked:
            if not row.needs_content and not row.parameters.get("check"):  # else it checks itself
                options = ["--scale", str(_CHECK_SCALE), "--check", "1"]
                checked = self._once(row, allocator, options, timeout, False)
                if checked.outcome != "ok":
                    return replace(checked, detail=f"content check: {checked.detail}")
            self._checked.add(key)
        return None

    def _undisturbed(
        self, row: Row, allocator: Allocator, options: list[str], timeout: float
    ) -> Outcome:
        sampled = any(measure.name == PSS.name for measure in row.measures)
        best: Outcome | None = None
        attempts = 0
        self._runs += 1
        while True:
            attempts += 1
            outcome = self._once(row, allocator, options, timeout, sampled)
            if outcome.outcome != "ok":
                return outcome
            if best is None or _waited(row, outcome) < _waited(row, best):
                best = outcome
            waited = _waited(row, best)
            spent = self._again >= _AGAIN + _MOST_AGAIN * self._runs
            if waited <= _WAITED or attempts > _AGAIN or spent:
                return replace(
                    best, raw={**best.raw, "attempts": attempts, "waited": round(waited, 4)}
                )
            self._again += 1

    def _once(
        self,
        row: Row,
        allocator: Allocator,
        options: list[str],
        timeout: float,
        sampled: bool,
    ) -> Outcome:
        measured = measure(
            [self.program, row.name, *options],
            environment(allocator),
            timeout=timeout,
            sample=_SECONDS_BETWEEN_SAMPLES if sampled else None,
        )
        outcome = _outcome_of(measured, allocator)
        if outcome.outcome == "ok" and sampled:
            values = {**outcome.values, PSS.name: round(measured.pss_mean_kib, 1)}
            return replace(outcome, values=values, series=measured.series)
        return outcome


def _waited(row: Row, outcome: Outcome) -> float:
    """Share of the measured part that it stood without a core. Nothing is known of threads, which
    wait for each other, and of a row that sleeps by itself."""
    raw = outcome.raw
    sleeps = raw["voluntary_switches"] > raw["involuntary_switches"]
    if row.threads > 1 or sleeps or raw["seconds"] <= 0:
        return 0.0
    return max(0.0, 1.0 - float(raw["cpu_seconds"]) / float(raw["seconds"]))


def _outcome_of(measured: Measured, allocator: Allocator) -> Outcome:
    if measured.outcome != "ok":
        word = measured.outcome
        if not measured.timed_out:
            word = EXITS.get(measured.status, word)
        return Outcome(word, measured.detail, measured.seconds)
    try:
        record = json.loads(measured.stdout)
        values = _values_of(record)
        reported = record["allocator"]
    except (ValueError, KeyError, TypeError) as error:
        said = " ".join(measured.stderr.split())[-300:]
        detail = f"printed no line of figures ({error!r}): {said}"
        return Outcome("no figures", detail, measured.seconds)
    if not is_in_force(allocator, reported):
        meant = allocator.library or "the C library"
        detail = f"malloc came from {reported}, not from {meant}"
        return Outcome("not active", detail, measured.seconds, raw=record)
    return Outcome(seconds=measured.seconds, values=values, raw=record)


def _values_of(record: dict[str, Any]) -> dict[str, float]:
    values = {
        PEAK.name: float(record["peak_rss_kib"]),
        RESIDENT.name: float(record["rss_end_kib"]),
        FAULTS.name: float(record["minor_faults"]),
    }
    operations = int(record["operations"])
    if operations > 0:
        values[TIME.name] = float(record["seconds"]) / operations * 1e9
        values[CPU.name] = float(record["cpu_seconds"]) / operations * 1e9
    for name, figure in record["figures"].items():
        values[name] = float(figure["value"])
    return values
