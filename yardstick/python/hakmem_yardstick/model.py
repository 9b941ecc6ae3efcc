"""What all parts of the yardstick speak of: allocators, rows, runs, and the results with them.

All measures are such that smaller is better, so a ratio below 1 always means better.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from hakmem import bench_command

SCHEMA = 1
OURS = "hakmem"
SYSTEM = "glibc"
GROUPS: tuple[str, ...] = bench_command.GROUPS
"""Of rows."""
TIERS = ("quick", "standard", "full")


class Kind(StrEnum):
    OURS = "ours"
    PEER = "peer"


@dataclass(frozen=True)
class Allocator:
    """One that rows are run on: a library, perhaps with settings of its own."""

    name: str
    """As in tables: "jemalloc", "hakmem+keep_bytes=16M"."""
    kind: Kind
    library: Path | None = None
    """To be preloaded; None for the C library's own malloc."""
    version: str = ""
    """Its own: "5.3.0"."""
    origin: str = ""
    """Where it was got: "Debian libjemalloc2 5.3.0-1", "crate rpmalloc-sys 0.2.3"."""
    note: str = ""
    """What a reader must know: that it is old, that it was built in a special way."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Set for its runs besides LD_PRELOAD."""


@dataclass(frozen=True)
class Missing:
    """A peer that was wanted and can't be had here."""

    name: str
    why: str


@dataclass(frozen=True)
class Measure:
    """One kind of figure; smaller is better."""

    name: str
    """In Run.values: "time", "cpu", "peak", "pss", "faults", "resident-10s", "instructions"."""
    unit: str
    """"ns", "s", "KiB", "ratio", or what is counted."""
    help: str = ""


@dataclass(frozen=True)
class Row:
    """One benchmark with all its parameters."""

    name: str
    """Of its own in the whole suite: "mixed-8192"."""
    group: str
    """seed, micro, threads, stress, memory, tail, programs, counts."""
    family: str
    """Rows that differ in one parameter; plots draw a line through them."""
    why: str
    measures: tuple[Measure, ...]
    """All that a run of it gives."""
    judged: tuple[str, ...]
    """The measures that tables, means and the stop rule look at."""
    tier: str = "standard"
    """The smallest run that includes it: quick, standard or full."""
    threads: int = 1
    needs_content: bool = False
    """It reads what it wrote, so it needs no run that checks content."""
    exact: bool = False
    """Its figures repeat exactly: one run is enough."""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One run of one row on one allocator, in processes of its own; or why it has no figures."""

    row: str
    allocator: str
    round: int
    position: int
    """Among the runs of its row and round, in the order they were made."""
    began: float
    """Seconds since the session began."""
    seconds: float
    """Whole run, from fork to exit."""
    outcome: str = "ok"
    """"ok", or the word for its cell: SIGSEGV, hang, content, exit 3, not active."""
    detail: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    """By the measure's name."""
    series: tuple[tuple[float, float], ...] = ()
    """Resident KiB (PSS) by seconds since the run began, where it was sampled."""
    raw: Mapping[str, Any] = field(default_factory=dict)
    """What the program itself printed."""

    @property
    def is_ok(self) -> bool:
        return self.outcome == "ok"


@dataclass
class Results:
    """A whole session; `to_json` is the file that is written, `results_of` reads it."""

    rows: list[Row]
    allocators: list[Allocator]
    missing: list[Missing] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=dict)
    """Processor, processors, memory, kernel, C library, compiler, THP, governor."""
    settings: dict[str, Any] = field(default_factory=dict)
    """The command line, mode, date, hakmem's version and commit, scale, limits."""
    interrupted: bool = False
    _cells: dict[tuple[str, str], list[Run]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """By row and allocator, those of the first `_indexed` runs."""
    _indexed: int = field(default=0, init=False, repr=False, compare=False)

    def names(self, *kinds: Kind) -> list[str]:
        return [a.name for a in self.allocators if not kinds or a.kind in kinds]

    def row(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)

    def runs_of(self, row: str, allocator: str) -> list[Run]:
        if self._indexed > len(self.runs):
            self._cells, self._indexed = {}, 0
        for run in self.runs[self._indexed :]:
            self._cells.setdefault((run.row, run.allocator), []).append(run)
        self._indexed = len(self.runs)
        return self._cells.get((row, allocator), [])

    def of(self, row: str, allocator: str) -> dict[int, Run]:
        """Its finished runs by round."""
        return {run.round: run for run in self.runs_of(row, allocator) if run.is_ok}

    def failure(self, row: str, allocator: str) -> Run | None:
        """The first run that has no figures."""
        return next((run for run in self.runs_of(row, allocator) if not run.is_ok), None)

    def to_json(self) -> dict[str, Any]:
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        return {"schema": SCHEMA} | {name: _plain(value) for name, value in own.items()}


def _plain(value: Any) -> Any:
    """As JSON has it, with keys of its own kind."""
    return json.loads(json.dumps(value, default=lambda one: asdict(one) if is_dataclass(one)
                                 and not isinstance(one, type) else str(one)))  # fmt: skip


def run_of(record: Mapping[str, Any]) -> Run:
    known = _known(Run, record)
    known["series"] = tuple((at, kib) for at, kib in known.get("series", ()))
    return Run(**known)


def results_of(record: Mapping[str, Any]) -> Results:
    """From `to_json`; raises ValueError for another schema."""
    if record.get("schema") != SCHEMA:
        raise ValueError(f"schema {record.get('schema')!r}; this hakmem reads {SCHEMA}")
    return Results(
        rows=[_row_of(row) for row in record["rows"]],
        allocators=[_allocator_of(a) for a in record["allocators"]],
        missing=[Missing(**_known(Missing, m)) for m in record["missing"]],
        runs=[run_of(run) for run in record["runs"]],
        machine=dict(record["machine"]),
        settings=dict(record["settings"]),
        interrupted=bool(record["interrupted"]),
    )


def _row_of(record: Mapping[str, Any]) -> Row:
    known = _known(Row, record)
    known["measures"] = tuple(Measure(**_known(Measure, m)) for m in known["measures"])
    known["judged"] = tuple(known["judged"])
    return Row(**known)


def _allocator_of(record: Mapping[str, Any]) -> Allocator:
    known = _known(Allocator, record)
    known["kind"] = Kind(known["kind"])
    known["library"] = Path(known["library"]) if known["library"] else None
    return Allocator(**known)


def _known(kind: type, record: Mapping[str, Any]) -> dict[str, Any]:
    names = {f.name for f in fields(kind)}
    return {key: value for key, value in record.items() if key in names}


def included(row: Row, mode: str) -> bool:
    return TIERS.index(row.tier) <= TIERS.index(mode)


def by_group(rows: Iterable[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return groups
