"""What a report says, worked out once: tables, Markdown and HTML only set it.

Every figure comes from stats, of the runs alone, and each cell keeps the values it was made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from hakmem_yardstick import stats
from hakmem_yardstick.model import (
    OURS,
    SYSTEM,
    Allocator,
    Kind,
    Measure,
    Results,
    Row,
    Run,
    by_group,
)
from hakmem_yardstick.stats import Ratio
from hakmem_yardstick.units import Scale, scale_for

# Beyond these a row is named in the lists of what stands out.
_TIME_APART, _ELSE_APART = 1.05, 1.10

GROUPS = {
    "seed": "Seed set",
    "micro": "Micro",
    "threads": "Across threads",
    "stress": "Stress",
    "memory": "Memory",
    "tail": "Tail",
    "programs": "Real programs",
    "counts": "Counts",
}


class Standing(StrEnum):
    """Where one stands to another, as far as the runs show it."""

    BETTER = "better"
    WORSE = "worse"
    LEVEL = "level"
    """The interval holds 1."""
    UNKNOWN = "unknown"
    """Too few rounds for an interval."""


def standing(ratio: Ratio) -> Standing:
    if not ratio.is_known:
        return Standing.UNKNOWN
    if ratio.shown_better:
        return Standing.BETTER
    return Standing.WORSE if ratio.shown_worse else Standing.LEVEL


@dataclass(frozen=True)
class Against:
    """Ours to another, in one measure."""

    other: str
    ratio: Ratio
    standing: Standing


@dataclass(frozen=True)
class Cell:
    """One allocator in one row: its median, or the word for why there is none."""

    row: str
    allocator: str
    measure: str
    value: float | None
    text: str
    spread: float | None
    """Half the distance between the quartiles, as a part of the median."""
    by_round: tuple[tuple[int, float], ...]
    note: int | None = None
    """The footnote that tells of its failed runs."""
    is_best_peer: bool = False


@dataclass(frozen=True)
class Line:
    row: Row
    scale: Scale
    cells: tuple[Cell, ...]
    to_best: Against | None
    to_system: Against | None


@dataclass(frozen=True)
class Table:
    """A group's rows in one measure."""

    group: str
    measure: Measure
    allocators: tuple[Allocator, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.group}-{self.measure.name}"

    @property
    def title(self) -> str:
        return f"{group_title(self.group)}: {measure_title(self.measure)}"


@dataclass(frozen=True)
class Means:
    """Geometric means over some rows, of each allocator to the best peer of each row."""

    scope: str
    measure: Measure
    rows: tuple[str, ...]
    to_best: dict[str, stats.Mean]
    to_system: stats.Mean | None
    """Of ours."""
    standings: dict[Standing, int]
    """Of ours to the best peer, by row."""

    @property
    def title(self) -> str:
        return measure_title(self.measure)


@dataclass(frozen=True)
class Apart:
    """A row in which ours stands out, for better or worse."""

    measure: Measure
    line: Line

    @property
    def title(self) -> str:
        return measure_title(self.measure)

    @property
    def ratio(self) -> float:
        """To the best peer; to the system's where there is no other."""
        against = self.line.to_best or self.line.to_system
        return against.ratio.value if against else 1.0


def group_title(group: str) -> str:
    return GROUPS.get(group, group.capitalize())


_MEASURE_TITLES = {"time": "time", "peak": "peak memory", "pss": "mean memory", "cpu": "CPU time"}


def measure_title(measure: Measure) -> str:
    return _MEASURE_TITLES.get(measure.name, measure.name.replace("-", " "))


@dataclass
class Content:
    """All of a report. `ours` is None where the session ran no hakmem."""

    results: Results

    @cached_property
    def ours(self) -> str | None:
        own = self.results.names(Kind.OURS)
        return OURS if OURS in own else next(iter(own), None)

    @cached_property
    def rounds(self) -> int:
        return max((run.round for run in self.results.runs), default=-1) + 1

    @cached_property
    def groups(self) -> dict[str, list[Row]]:
        ran = {run.row for run in self.results.runs}
        found = by_group(row for row in self.results.rows if row.name in ran)
        order = [*GROUPS, *(group for group in found if group not in GROUPS)]
        return {group: found[group] for group in order if group in found}

    @cached_property
    def rows(self) -> list[Row]:
        return [row for rows in self.groups.values() for row in rows]

    @cached_property
    def allocators(self) -> tuple[Allocator, ...]:
        """Ours, then the peers, each as the session had them."""
        return tuple(sorted(self.results.allocators, key=lambda a: a.kind is not Kind.OURS))

    @cached_property
    def tables(self) -> list[Table]:
        return [
            _table(self, group, measure, having)
            for group, rows in self.groups.items()
            for measure, having in _by_measure(rows)
        ]

    @cached_property
    def means(self) -> list[Means]:
        wide = [(m, rows) for m, rows in _by_measure(self.rows) if m.name in ("time", "peak")]
        scopes = [("all rows", m, rows) for m, rows in wide] if len(self.groups) > 1 else []
        scopes += [
            (group_title(group), measure, having)
            for group, rows in self.groups.items()
            for measure, having in _by_measure(rows)
        ]
        return [_means(self, scope, measure, rows) for scope, measure, rows in scopes]

    @cached_property
    def losses(self) -> list[Apart]:
        """Slower than the system's malloc, or well behind the best peer."""
        return sorted((a for a in self._apart() if _is_loss(a)), key=lambda a: -a.ratio)

    @cached_property
    def wins(self) -> list[Apart]:
        """As far before the best peer, and shown to be before it."""
        return sorted((a for a in self._apart() if _is_win(a)), key=lambda a: a.ratio)

    @property
    def has_verdicts(self) -> bool:
        """Whether any row had the rounds that a win takes."""
        against = (apart.line.to_best for apart in self._apart())
        return any(a is not None and a.standing is not Standing.UNKNOWN for a in against)

    def _apart(self) -> Iterator[Apart]:
        for table in self.tables:
            yield from (Apart(table.measure, line) for line in table.lines)

    def to_best(self, row: Row, measure: str) -> Against | None:
        if self.ours is None:
            return None
        best = stats.ratio_to_best(self.results, row.name, self.ours, measure)
        return Against(best.peer, best.ratio, standing(best.ratio)) if best else None

    def to_system(self, row: Row, measure: str) -> Against | None:
        if self.ours is None or SYSTEM not in self.results.names():
            return None
        ratio = stats.ratio(self.results, row.name, self.ours, SYSTEM, measure)
        return Against(SYSTEM, ratio, standing(ratio)) if ratio else None

    @cached_property
    def frontier(self) -> list[stats.Point]:
        return stats.frontier(self.results)

    @property
    def failures(self) -> int:
        return sum(not run.is_ok for run in self.results.runs)


def _limit(measure: Measure) -> float:
    return _TIME_APART if measure.name == "time" else _ELSE_APART


def _is_loss(apart: Apart) -> bool:
    best, system = apart.line.to_best, apart.line.to_system
    if best is not None and best.ratio.value > _limit(apart.measure):
        return True
    slower = system is not None and system.standing is Standing.WORSE
    return slower and apart.measure.name == "time"


def _is_win(apart: Apart) -> bool:
    best = apart.line.to_best
    if best is None or best.standing is not Standing.BETTER:
        return False
    return best.ratio.value < 1 / _limit(apart.measure)


def _by_measure(rows: list[Row]) -> list[tuple[Measure, list[Row]]]:
    """What the rows are judged by, and which by it. Of one name, whatever the unit: ratios have
    none, and each row of a table tells its own."""
    found: dict[str, tuple[Measure, list[Row]]] = {}
    for row in rows:
        for measure in row.measures:
            if measure.name in row.judged:
                found.setdefault(measure.name, (measure, []))[1].append(row)
    return list(found.values())


def _failed_text(runs: list[Run], row: Row, name: str) -> str:
    failed = [run for run in runs if not run.is_ok]
    words = ", ".join(dict.fromkeys(run.outcome for run in failed))
    some = f"{len(failed)} of {len(runs)} runs" if len(failed) < len(runs) else "all runs"
    detail = next((run.detail.strip() for run in failed if run.detail.strip()), "")
    return f"{row.name} on {name}, {some}: {words}" + (f" ({detail})" if detail else "")


def _table(content: Content, group: str, measure: Measure, rows: list[Row]) -> Table:
    notes: list[str] = []
    lines = [_line(content, row, measure.name, notes) for row in rows]
    return Table(group, measure, content.allocators, tuple(lines), tuple(notes))


def _line(content: Content, row: Row, measure: str, notes: list[str]) -> Line:
    results = content.results
    names = [a.name for a in content.allocators]
    medians = {name: stats.median_of(results, row.name, name, measure) for name in names}
    best = stats.best_peer(results, row.name, measure)
    unit = next(m.unit for m in row.measures if m.name == measure)
    scale = scale_for(unit, [value for value in medians.values() if value is not None])

    def cell(name: str) -> Cell:
        runs = results.runs_of(row.name, name)
        failure = results.failure(row.name, name)
        note = None
        if failure is not None:
            notes.append(_failed_text(runs, row, name))
            note = len(notes)
        by_round = tuple(
            (number, run.values[measure])
            for number, run in sorted(results.of(row.name, name).items())
            if measure in run.values
        )
        value = medians[name]
        spread = None
        if value is None:
            text = failure.outcome if failure is not None else "not run"
        else:
            text = scale.text(value)
            around = stats.spread_of(results, row.name, name, measure)
            if around is not None and around.runs > 1 and value > 0:
                spread = (around.high - around.low) / 2 / value
        return Cell(row.name, name, measure, value, text, spread, by_round, note, name == best)

    return Line(
        row,
        scale,
        tuple(cell(name) for name in names),
        content.to_best(row, measure),
        content.to_system(row, measure),
    )


def _means(content: Content, scope: str, measure: Measure, rows: list[Row]) -> Means:
    names = [row.name for row in rows]
    to_best: dict[str, stats.Mean] = {}
    for allocator in content.allocators:
        mean = stats.geometric_mean(content.results, names, allocator.name, measure.name)
        if mean is not None:
            to_best[allocator.name] = mean
    to_system = None
    standings = dict.fromkeys(Standing, 0)
    if content.ours is not None:
        if SYSTEM in content.results.names():
            to_system = stats.geometric_mean(
                content.results, names, content.ours, measure.name, to=SYSTEM
            )
        for row in rows:
            against = content.to_best(row, measure.name)
            if against is not None:
                standings[against.standing] += 1
    return Means(scope, measure, tuple(names), to_best, to_system, standings)
