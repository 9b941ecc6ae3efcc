"""The order of runs: which rows a round has, in which order allocators run them, and when a row has
had enough.

Rounds are outermost and allocators innermost, so the runs that a ratio pairs lie next to each other
in time, while the rounds of a row lie far apart: a disturbance of some seconds spoils one pair, not
a row. Who goes first is drawn by lot, for each row and round: none always follows the same one, and
what being first costs falls on all alike, which the intervals suppose (stats.py).

Decides from finished runs and the session's seed alone, so that a session that was interrupted goes
on as it would have.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hakmem_yardstick import stats
from hakmem_yardstick.model import OURS, Allocator, Results, Row, Run

GIVEN_UP = "given up"
"""The outcome of a run that was not made, because the allocator hangs on everything."""


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
    """A row is repeated until the 95% interval reaches at most so far to either side; stats.LOOKS
    has the rounds after which that is looked at."""
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
    "quick": Plan("quick", 6, 30, 180.0, 0.02, 45.0, 0.3),
    "standard": Plan("standard", 3, 30, 50 * 60.0, 0.02, 120.0, 0.5),
    "full": Plan("full", 6, 30, None, 0.02, 600.0, 0.5),
}

_ENOUGH_SECONDS = 10.0
_ENOUGH_TIMES = 60.0
_SLOW_TIMES = 8.0
_SLOW_SECONDS = 2.0
# One that is slow and takes a larger share of the time for all than this is run only once; without
# a limit for all, each that is slow.
_SLOW_SHARE = 1 / 200
_MOST_HANGS = 3
# Of a round whose rows are yet unknown: a guess for the time left, no more.
_GUESS_SECONDS = 0.5


class Schedule:
    """Told of every finished run; says what comes next."""

    def __init__(self, plan: Plan, results: Results, seed: int) -> None:
        self.plan = plan
        self.rows = list(results.rows)
        self.used = 0.0
        """Seconds, of all runs with what came between them."""
        self._results = results
        self._seed = seed
        self._allocators = results.allocators
        self._runs: dict[tuple[str, str], dict[int, Run]] = {}
        self._failed: set[tuple[str, str]] = set()
        self._costs: dict[tuple[str, str], list[float]] = {}
        self._medians_of: dict[str, dict[str, float]] = {}
        """By row; without those that a run came to since."""
        self._narrow: dict[tuple[str, int], bool] = {}
        for run in results.runs:
            self.add(run)

    def add(self, run: Run) -> None:
        key = (run.row, run.allocator)
        cost = max(0.0, run.began + run.seconds - self.used)
        self.used = max(self.used, run.began + run.seconds)
        self._costs.setdefault(key, []).append(cost)
        self._runs.setdefault(key, {})[run.round] = run
        self._medians_of.pop(run.row, None)
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
        # What of it fits into the time. A row is carried on only if it can be carried as far as an
        # interval: cheap ones first, so that as many as possible have one.
        left = self.plan.seconds - self.used
        known = self._known_before(number)
        chosen = []
        for row in sorted(wanted, key=lambda row: self._urgency(row, number, known)):
            missing = stats.FEWEST_ROUNDS - number - 1
            cost = self._cost(row, self.order(row, number)) + max(0, missing) * self._round_cost(
                row
            )
            if cost <= left:
                chosen.append(row)
                left -= cost
        return [row for row in wanted if row in chosen]

    def order(self, row: Row, number: int) -> list[Allocator]:
        """Who has yet to run it in this round, and in which order."""
        by_name = {allocator.name: allocator for allocator in self._allocators}
        drawn = stats.drawn_order(list(by_name), self._seed, row.name, number)
        return [
            by_name[name]
            for name in drawn
            if self._can(row, by_name[name], number)
            and not self._is_done(row, by_name[name], number)
        ]

    def timeout(self, row: Row) -> float:
        """Generous, by what others took: a peer that is many times slower is a result."""
        took = self._medians(row)
        if not took:
            return self.plan.timeout
        return min(self.plan.timeout, max(_ENOUGH_SECONDS, _ENOUGH_TIMES * min(took.values())))

    def hung_always(self, allocator: Allocator) -> list[str]:
        """The rows that it hung on, if they are some and it fared no other way on any: each took
        long, and the next would hang too."""
        tried = {
            row: {run.outcome for run in runs.values()}
            for (row, name), runs in self._runs.items()
            if name == allocator.name
        }
        hung = [row for row, outcomes in tried.items() if "hang" in outcomes]
        fared = [row for row, outcomes in tried.items() if outcomes - {"hang", GIVEN_UP}]
        return hung if len(hung) >= _MOST_HANGS and not fared else []

    def seconds_left(self, number: int, rows: Iterable[Row]) -> float:
        """To the end: of this round's rows yet to come, and of the rounds after it."""
        plan = self.plan
        left = sum(self._cost(row, self.order(row, number)) for row in rows)
        a_round = sum(self._round_cost(row) for row in self.rows if not row.exact)
        sure = left + a_round * max(0, plan.least_rounds - number - 1)
        if plan.least_rounds == plan.most_rounds:
            return sure
        most = left + a_round * max(0, plan.most_rounds - number - 1)
        return most if plan.seconds is None else max(sure, min(most, plan.seconds - self.used))

    # ---- of one row ----

    def _wants(self, row: Row, number: int) -> bool:
        if not any(self._can(row, allocator, number) for allocator in self._allocators):
            return False
        if row.exact:
            return number == 0
        if number < self.plan.least_rounds:
            return True
        if number >= self.plan.most_rounds or (row.name, OURS) in self._failed:
            return False
        return not any(self._is_narrow(row, look) for look in stats.LOOKS if look <= number)

    def _can(self, row: Row, allocator: Allocator, number: int) -> bool:
        return not self._has_failed(row, allocator) and not self._is_too_slow(
            row, allocator, number
        )

    def _has_failed(self, row: Row, allocator: Allocator) -> bool:
        return (row.name, allocator.name) in self._failed

    def _is_done(self, row: Row, allocator: Allocator, number: int) -> bool:
        return number in self._runs.get((row.name, allocator.name), {})

    def _is_too_slow(self, row: Row, allocator: Allocator, number: int) -> bool:
        """Many times slower than the others: few rounds say so, more are not worth their time."""
        took = self._medians(row)
        own = took.get(allocator.name, 0.0)
        all_seconds = self.plan.seconds
        once = all_seconds is None or own > _SLOW_SHARE * all_seconds
        enough = 1 if once else self.plan.least_rounds
        if number < enough or own <= _SLOW_SECONDS or len(took) == 1:
            return False
        others = [seconds for name, seconds in took.items() if name != allocator.name]
        return own > _SLOW_TIMES * statistics.median(others)

    def _medians(self, row: Row) -> dict[str, float]:
        """Seconds of its runs, by allocator."""
        found = self._medians_of.get(row.name)
        if found is None:
            found = self._medians_of[row.name] = {}
            for allocator in self._allocators:
                runs = self._runs.get((row.name, allocator.name), {}).values()
                seconds = [run.seconds for run in runs if run.is_ok]
                if seconds:
                    found[allocator.name] = statistics.median(seconds)
        return found

    def _cost(self, row: Row, allocators: Iterable[Allocator]) -> float:
        """Seconds that a run on each of them will take."""
        total = 0.0
        for allocator in allocators:
            costs = self._costs.get((row.name, allocator.name))
            total += statistics.fmean(costs) if costs else self._usual_cost()
        return total

    def _round_cost(self, row: Row) -> float:
        """Of a later round."""
        later = self.plan.least_rounds
        return self._cost(row, [a for a in self._allocators if self._can(row, a, later)])

    def _usual_cost(self) -> float:
        runs = sum(map(len, self._costs.values()))
        return self.used / runs if runs else _GUESS_SECONDS

    # ---- how much is known of it ----

    def _known_before(self, number: int) -> Results:
        """What the rounds before this one gave."""
        runs = [run for run in self._results.runs if run.round < number]
        return Results(self.rows, self._allocators, runs=runs)

    def _is_narrow(self, row: Row, look: int) -> bool:
        """Whether ours to the best peer was known well enough after so many rounds."""
        key = (row.name, look)
        if key not in self._narrow:
            known = self._known_before(look)
            for each in self.rows:
                self._narrow[each.name, look] = stats.narrow_enough(
                    known, each.name, OURS, self.plan.precision
                )
        return self._narrow[key]

    def _urgency(self, row: Row, number: int, known: Results) -> tuple[bool, int, float]:
        """The smaller, the sooner a row is run where there is no time for all."""
        begun = any(self._is_done(row, allocator, number) for allocator in self._allocators)
        had = len(known.of(row.name, OURS))
        if had < stats.FEWEST_ROUNDS:
            return not begun, 0, self._round_cost(row)
        reach = 0.0
        for measure in row.judged:
            peer = stats.best_peer(known, row.name, measure)
            ratio = stats.ratio(known, row.name, OURS, peer, measure) if peer is not None else None
            reach = max(reach, ratio.reach if ratio is not None else 0.0)
        return not begun, had, -reach
