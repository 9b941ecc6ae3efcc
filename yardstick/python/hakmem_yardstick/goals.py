"""The goals, and which of them these runs reach."""

import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from hakmem_yardstick import stats
from hakmem_yardstick.model import Results, Row
from hakmem_yardstick.stats import Ratio

BEST = "best"
ITSELF = "itself"


@dataclass(frozen=True)
class Goal:
    """As goals.toml says it."""

    name: str
    measure: str
    at_most: float = 1.0
    not_worse: bool = False
    to: str = BEST
    rows: tuple[str, ...] = ()
    group: str = ""

    def wants(self, row: str, group: str) -> bool:
        if self.group and group != self.group:
            return False
        return not self.rows or row in self.rows


@dataclass(frozen=True)
class Verdict:
    goal: Goal
    rows: tuple[str, ...]
    """Those that were run and count."""
    of: int
    """So many there are."""
    ratio: Ratio

    @property
    def is_whole(self) -> bool:
        """A part of its rows says nothing of a goal for all of them."""
        return len(self.rows) == self.of

    @property
    def is_reached(self) -> bool | None:
        """None where there are too few rounds to tell."""
        if not self.ratio.is_known:
            return None
        if self.goal.not_worse:
            return not self.ratio.shown_worse
        return self.ratio.reached(self.goal.at_most)

    @property
    def is_missed(self) -> bool:
        """Shown to be, and not merely not shown to be reached."""
        if not self.ratio.is_known:
            return False
        return self.ratio.low > (1.0 if self.goal.not_worse else self.goal.at_most)


def _goal_of(record: dict[str, Any]) -> Goal:
    return Goal(**{**record, "rows": tuple(record.get("rows", ()))})


def read() -> list[Goal]:
    text = files("hakmem_yardstick").joinpath("goals.toml").read_text(encoding="utf-8")
    return [_goal_of(record) for record in tomllib.loads(text)["goal"]]


def verdicts(results: Results, ours: str) -> list[Verdict]:
    """On the goals for which there are runs."""
    found = []
    for goal in read():
        wanted = _rows(results, goal)
        mean = _mean(results, goal, wanted, ours)
        if mean is not None:
            of = len(goal.rows) or len(wanted) + _left_out(results, goal)
            found.append(Verdict(goal, mean.rows, of, mean.ratio))
    return found


def count(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """By group and measure, how many rows are judged by it: settings.rows_left_out has it of the
    rows that a session had not."""
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        group = counts.setdefault(row.group, {})
        for measure in row.judged:
            group[measure] = group.get(measure, 0) + 1
    return counts


def _left_out(results: Results, goal: Goal) -> int:
    groups = results.settings.get("rows_left_out", {})
    return sum(
        measures.get(goal.measure, 0)
        for group, measures in groups.items()
        if goal.group in ("", group)
    )


def _rows(results: Results, goal: Goal) -> tuple[str, ...]:
    return tuple(
        row.name
        for row in results.rows
        if goal.wants(row.name, row.group)
        # A goal for named rows may be about a measure that they aren't judged by elsewhere.
        and goal.measure in ([m.name for m in row.measures] if goal.rows else row.judged)
    )


def _mean(results: Results, goal: Goal, rows: tuple[str, ...], ours: str) -> stats.Mean | None:
    if goal.to == ITSELF:
        # A figure with its interval, as if to another that is 1.
        values = stats.values_of(results, rows[0], ours, goal.measure).values() if rows else ()
        ratio = stats.ratio_of(math.log(value) for value in values if value > 0)
        return stats.Mean(ratio, rows[:1]) if ratio is not None else None
    to = None if goal.to == BEST else goal.to
    return stats.geometric_mean(results, rows, ours, goal.measure, to=to)
