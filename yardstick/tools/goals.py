"""What hakmem must reach (goals.toml), and which of it a session of `hakmem bench` reaches."""

import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakmem_yardstick import stats
from hakmem_yardstick.model import Results
from hakmem_yardstick.sheet import BETTER, WORSE, Cell, Part, Sheet
from hakmem_yardstick.stats import Ratio
from hakmem_yardstick.words import ratio_text

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
    text = Path(__file__).with_name("goals.toml").read_text(encoding="utf-8")
    return [_goal_of(record) for record in tomllib.loads(text)["goal"]]


def verdicts(results: Results, ours: str) -> list[Verdict]:
    """On the goals for which there are runs."""
    found = []
    for goal in read():
        wanted = _rows(results, goal)
        mean = _mean(results, goal, wanted, ours)
        if mean is not None:
            of = len(goal.rows) or len(wanted)
            found.append(Verdict(goal, mean.rows, of, mean.ratio))
    return found


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


TEXT = (
    "Reached: the upper end of the 95% interval is at or below the goal. Missed: the lower end is"
    " above it. Otherwise these runs do not show it."
)


def part(results: Results, ours: str) -> Part:
    """Of a page."""
    rows = []
    for verdict in verdicts(results, ours):
        goal = verdict.goal
        to = {BEST: "the best peer", ITSELF: "itself"}.get(goal.to, goal.to)
        most = f"not worse than {to}" if goal.not_worse else f"{goal.at_most:g} of {to}"
        word = "reached" if verdict.is_reached else "missed" if verdict.is_missed else "not shown"
        style = {"reached": BETTER, "missed": WORSE}.get(word, "")
        count = f"{len(verdict.rows)} of {verdict.of}"
        ran = str(verdict.of) if verdict.is_whole else count
        name = f"{goal.name} ({goal.measure})"
        rows.append((name, ran, most, ratio_text(verdict.ratio), Cell(word, style)))
    heads = ("goal", "rows", "at most", "is", "")
    return Part("Goals", [TEXT], Sheet(heads, rows, left=(0, 2, 3, 4)), level=3)
