"""The goals, and which of them these runs reach."""

import math
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Any

from hakmem.bench import stats
from hakmem.bench.model import Results
from hakmem.bench.stats import Ratio

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
        return not self.rows or any(fnmatchcase(row, pattern) for pattern in self.rows)


@dataclass(frozen=True)
class Verdict:
    goal: Goal
    rows: tuple[str, ...]
    """Those that were run and count."""
    ratio: Ratio

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
    text = files("hakmem.bench").joinpath("goals.toml").read_text(encoding="utf-8")
    return [_goal_of(record) for record in tomllib.loads(text)["goal"]]


def verdicts(results: Results, ours: str) -> list[Verdict]:
    """On the goals for which there are runs."""
    found = []
    for goal in read():
        rows = _rows(results, goal, ours)
        ratio = _ratio(results, goal, rows, ours) if rows else None
        if ratio is not None:
            found.append(Verdict(goal, rows, ratio))
    return found


def _rows(results: Results, goal: Goal, ours: str) -> tuple[str, ...]:
    return tuple(
        row.name
        for row in results.rows
        if goal.wants(row.name, row.group)
        # A goal for named rows may be about a measure that they aren't judged by elsewhere.
        and goal.measure in ([m.name for m in row.measures] if goal.rows else row.judged)
        and results.of(row.name, ours)
    )


def _ratio(results: Results, goal: Goal, rows: tuple[str, ...], ours: str) -> Ratio | None:
    if goal.to == ITSELF:
        # A figure with its interval, as if to another that is 1.
        values = stats.values_of(results, rows[0], ours, goal.measure).values()
        return stats.ratio_of(math.log(value) for value in values if value > 0)
    to = None if goal.to == BEST else goal.to
    mean = stats.geometric_mean(results, rows, ours, goal.measure, to=to)
    return mean.ratio if mean else None
