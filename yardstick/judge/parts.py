"""What the judge looks at: rows, the figures that each part gives, and how often they are run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hakmem_yardstick import listing
from hakmem_yardstick.model import Row, included
from hakmem_yardstick.programs import Programs
from hakmem_yardstick.runner import Runner
from hakmem_yardstick.suite import Suite
from yardstick.judge.lives import JUDGED, LIFE, SERVICES
from yardstick.judge.replays import Replays
from yardstick.judge.works import WORKS

Figures = Mapping[str, Sequence[str]]
"""Measures by row."""


@dataclass(frozen=True)
class Part:
    name: str
    runner: Runner
    rows: Sequence[Row]
    lines: Mapping[str, Figures]
    """What is told, each a mean."""
    rounds: int
    scale: float
    is_secret: bool = False
    """Nobody is to see single rows of it: a mean of few is not told."""


@dataclass(frozen=True)
class Size:
    """How much is run: rounds of each part."""

    rows: int
    replays: int
    programs: int
    lives: int
    scale: float
    """Of the rows' and the programs' work; lives have all of theirs."""


FULL = Size(rows=8, replays=6, programs=6, lives=3, scale=0.3)
QUICK = Size(rows=2, replays=2, programs=1, lives=1, scale=0.1)


def parts(build: Path, cache: Path, size: Size) -> list[Part]:
    """`build` has the suite, the command and its player."""
    return [
        _rows(Suite(build / "bench"), "rows", lambda measure: measure == "peak", size),
        # Some have resident memory after a pause in the place of the peak, or beside it.
        _rows(Programs(), "programs of bench", lambda measure: measure not in TIME, size),
        _part("replays", Replays(cache, WORKS, build), ("time", "peak"), size.replays, 1.0),
        _part("programs", Programs(cache, WORKS), ("cpu", "faults", "peak"), size.programs, 0.7),
        _part("life", Programs(cache / "life", LIFE), JUDGED, size.lives, 1.0),
        _part("services", Programs(cache / "services", SERVICES), JUDGED, size.lives, 1.0),
    ]


def _part(name: str, runner: Runner, measures: Iterable[str], rounds: int, scale: float) -> Part:
    rows = runner.rows()
    lines = {measure: {row.name: [measure] for row in rows} for measure in measures}
    return Part(name, runner, rows, lines, rounds, scale)


TIME = ("time", "cpu")


def _rows(runner: Runner, name: str, memory: Callable[[str], bool], size: Size) -> Part:
    """The judging half. `memory` says of a measure whether it belongs to the line of that name."""
    half = listing.halves()
    rows = [
        row
        for row in runner.rows()
        if half[row.name] == listing.JUDGING and included(row, "standard")
    ]
    of: Mapping[str, Callable[[str], bool]] = {
        "time": lambda measure: measure in TIME,
        "memory": memory,
        "other": lambda measure: measure not in TIME and not memory(measure),
    }
    lines = {
        what: {row.name: own for row in rows if (own := [*filter(wanted, row.judged)])}
        for what, wanted in of.items()
    }
    return Part(name, runner, rows, lines, size.rows, size.scale, is_secret=True)
