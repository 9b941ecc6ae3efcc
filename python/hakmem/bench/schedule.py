"""The order of runs: which rows a round has, which allocator begins, when a row has had enough.

Rounds are outermost and allocators innermost, so the runs that a ratio pairs lie next to each other
in time, while the rounds of a row lie far apart: a disturbance of some seconds spoils one pair, not
a row. Each round begins with another allocator, so that none always follows the same one.

Decides from finished runs alone, so that a session that was interrupted goes on as it would have.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scipy import stats

from hakmem.bench.model import OURS, Allocator, Kind, Row, Run

TIERS = ("quick", "standard", "full")


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    mode: str
    """quick, standard or full: the rows up to that tier."""
    least_rounds: int
    most_rounds: int
    seconds: float | None
    """For all; None is as long as it takes."""
    precision: float
    """A row is repeated until the 95% interval is at most this much to either side."""
    timeout: float
    """Of a run, where nothing is known of the row yet."""
    scale: float
    """Of the rows' iterations."""

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @staticmethod
    def of(record: Mapping[str, Any]) -> Plan:
        return Plan(**{name: record[name] for name in Plan.__dataclass_fields__})


PLANS = {
    "quick": Plan("quick", 3, 20, 180.0, 0.02, 45.0, 0.5),
    "standard": Plan("standard", 3, 20, 55 * 60.0, 0.02, 120.0, 1.0),
    "full": Plan("full", 10, 40, None, 0.01, 600.0, 1.0),
}

_ENOUGH_SECONDS = 10.0
_ENOUGH_TIMES = 60.0
_SLOW_TIMES = 8.0
_SLOW_SECONDS = 2.0
# Of a round whose rows are yet unknown: a guess for the time left, no more.
_GUESS_SECONDS = 0.5


def included(row: Row, mode: str) -> bool:
    return TIERS.index(row.tier) <= TIERS.index(mode)


class Schedule:
    """Told of every finished run; says what comes next."""

    def __init__(self, plan: Plan, rows: list[Row], allocators: list[Allocator]) -> None:
        self.plan = plan
        self.rows = list(rows)
        self.allocators = allocators
        self.used = 0.0
        """Seconds, of all runs with what came between them."""
        self._runs: dict[tuple[str, str], dict[int, Run]] = {}
        self._failed: set[tuple[str, str]] = set()
        self._costs: dict[tuple[str, str], list[float]] = {}

    def add(self, run: Run) -> None:
        key = (run.row, run.allocator)
        cost = max(0.0, run.began + run.seconds - self.used)
        self.used = max(self.used, run.began + run.seconds)
        self._costs.setdefault(key, []).append(cost)
        self._runs.setdefault(key, {})[run.round] = run
        if not run.is_ok:
            self._failed.add(key)

    def drop(self, row: Row) -> None:
        """It can't be run here."""
        self.rows.remove(row)

    # ---- what comes next ----

    def round(self, number: int) -> list[Row]:
        """The rows of a round, counted from 0, decided when it begins; empty when all is done."""
        wanted = [row for row in self.rows if self._wants(row, number)]
        if number < self.plan.least_rounds or self.plan.seconds is None:
            return wanted
        # What of it fits into the time: first those begun, then those that know least.
        left = self.plan.seconds - self.used
        chosen = []
        for row in sorted(wanted, key=lambda row: self._urgency(row, number)):
            cost = self._cost(row, number)
            if cost <= left:
                chosen.append(row)
                left -= cost
        return [row for row in wanted if row in chosen]

    def order(self, row: Row, number: int) -> list[Allocator]:
        """Who runs it in this round, and in which order."""
        shift = number % len(self.allocators)
        turned = self.allocators[shift:] + self.allocators[:shift]
        return [
            allocator
            for allocator in turned
            if not self._has_failed(row, allocator)
            and not self._is_done(row, allocator, number)
            and not self._is_too_slow(row, allocator, number)
        ]

    def timeout(self, row: Row) -> float:
        """Generous, by what others took: a peer that is many times slower is a result."""
        took = self._medians(row)
        if not took:
            return self.plan.timeout
        return min(self.plan.timeout, max(_ENOUGH_SECONDS, _ENOUGH_TIMES * min(took.values())))

    def seconds_left(self, number: int, rows: Iterable[Row]) -> float:
        """To the end: of this round's rows yet to come, and of the rounds after it."""
        plan = self.plan
        left = sum(self._cost(row, number) for row in rows)
        a_round = sum(self._cost(row, number) for row in self.rows if not row.exact)
        sure = left + a_round * max(0, plan.least_rounds - number - 1)
        if plan.least_rounds == plan.most_rounds:
            return sure
        most = left + a_round * max(0, plan.most_rounds - number - 1)
        return most if plan.seconds is None else max(sure, min(most, plan.seconds - self.used))

    # ---- of one row ----

    def _wants(self, row: Row, number: int) -> bool:
        if not any(self._can(row, allocator, number) for allocator in self.allocators):
            return False
        if row.exact:
            return number == 0
        if number < self.plan.least_rounds:
            return True
        return number < self.plan.most_rounds and self.width(row, number) > self.plan.precision

    def _can(self, row: Row, allocator: Allocator, number: int) -> bool:
        return not self._has_failed(row, allocator) and not self._is_too_slow(
            row, allocator, number
        )

    def _has_failed(self, row: Row, allocator: Allocator) -> bool:
        if allocator.kind is Kind.FLOOR and row.needs_content:
            return True  # a floor keeps no content
        return (row.name, allocator.name) in self._failed

    def _is_done(self, row: Row, allocator: Allocator, number: int) -> bool:
        return number in self._runs.get((row.name, allocator.name), {})

    def _is_too_slow(self, row: Row, allocator: Allocator, number: int) -> bool:
        """Many times slower than the others: the least rounds say so, more are not worth theirs."""
        took = self._medians(row)
        own = took.pop(allocator.name, 0.0)
        return (
            number >= self.plan.least_rounds
            and len(took) > 0
            and own > _SLOW_SECONDS
            and own > _SLOW_TIMES * statistics.median(took.values())
        )

    def _medians(self, row: Row) -> dict[str, float]:
        """Seconds of its runs, by allocator."""
        found = {}
        for allocator in self.allocators:
            runs = self._runs.get((row.name, allocator.name), {}).values()
            seconds = [run.seconds for run in runs if run.is_ok]
            if seconds:
                found[allocator.name] = statistics.median(seconds)
        return found

    def _cost(self, row: Row, number: int) -> float:
        total = 0.0
        for allocator in self.order(row, number):
            costs = self._costs.get((row.name, allocator.name))
            total += statistics.fmean(costs) if costs else self._usual_cost()
        return total

    def _usual_cost(self) -> float:
        runs = sum(map(len, self._costs.values()))
        return self.used / runs if runs else _GUESS_SECONDS

    def _urgency(self, row: Row, number: int) -> tuple[bool, float]:
        begun = any(self._is_done(row, allocator, number) for allocator in self.allocators)
        return (not begun, -self.width(row, number))

    # ---- how much is known of it ----

    def width(self, row: Row, before: int) -> float:
        """The widest half of the 95% intervals of ours to the best peer, over judged measures, as a
        share, from the rounds before; infinite with less than three pairs. Without ours or a peer
        there is nothing to narrow: 0."""
        ours = self._values(row, OURS, before)
        peers = [
            values
            for allocator in self.allocators
            if allocator.kind is Kind.PEER and (values := self._values(row, allocator.name, before))
        ]
        if not ours or not peers:
            return 0.0
        return max((half_width(name, ours, peers) for name in row.judged), default=0.0)

    def _values(self, row: Row, allocator: str, before: int) -> dict[int, Mapping[str, float]]:
        if (row.name, allocator) in self._failed:
            return {}
        runs = self._runs.get((row.name, allocator), {})
        return {number: run.values for number, run in runs.items() if number < before}


def half_width(
    measure: str,
    ours: Mapping[int, Mapping[str, float]],
    peers: Iterable[Mapping[int, Mapping[str, float]]],
) -> float:
    """Of the paired ratio to the peer with the smallest median, by Student's t on logarithms."""

    def of(values: Mapping[int, Mapping[str, float]]) -> dict[int, float]:
        # A figure of 0 has no ratio, and no more rounds will give it one.
        return {number: v[measure] for number, v in values.items() if v.get(measure, 0.0) > 0}

    own = of(ours)
    others = [values for peer in peers if (values := of(peer))]
    if not own or not others:
        return 0.0
    best = min(others, key=lambda values: statistics.median(values.values()))
    logs = [math.log(own[number] / best[number]) for number in own.keys() & best.keys()]
    if len(logs) < 3:
        return math.inf
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    return math.expm1(float(stats.t.ppf(0.975, len(logs) - 1)) * error)
