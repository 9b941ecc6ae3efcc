"""A session: runs what the schedule says, stores each run, and shows how far it is."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hakmem.interrupts import Interrupted
from hakmem_yardstick.machine import Pressure, waited_seconds
from hakmem_yardstick.model import Allocator, Results, Row, Run
from hakmem_yardstick.progress import Display
from hakmem_yardstick.runner import Outcome, Runner, Unavailable
from hakmem_yardstick.schedule import GIVEN_UP, Plan, Schedule
from hakmem_yardstick.store import Store
from hakmem_yardstick.suite import with_figures

# Rows of several processes wait for each other, whatever else the machine does.
_OWN_PRESSURE = "programs"


class Session:
    def __init__(
        self,
        results: Results,
        runners: Mapping[str, Runner],
        plan: Plan,
        store: Store,
        display: Display,
    ) -> None:
        """`results` may hold runs that have finished already; `runners` are by group."""
        self.results = results
        self._runners = runners
        self._plan = plan
        self._store = store
        self._display = display
        self._pressure = Pressure()
        self._prepared: set[str] = set()
        self._work: dict[str, str] = {}
        self.interrupted: Interrupted | None = None
        self._schedule = Schedule(plan, results, int(results.settings["seed"]))
        for run in results.runs:
            self._is_same_work(run)
        # What came before an interrupt counts, the pause does not.
        self._start = time.monotonic() - self._schedule.used

    def run(self) -> Results:
        """Until all is done or the time is up; Interrupted ends it with what there is."""
        try:
            number = 0
            while number < self._plan.most_rounds and (rows := self._schedule.round(number)):
                self._round(number, rows)
                number += 1
        except Interrupted as end:
            self.interrupted = end
        self.results.interrupted = self.interrupted is not None
        self._describe()
        self._store.finish(self.results)
        return self.results

    def _round(self, number: int, rows: list[Row]) -> None:
        for at, row in enumerate(rows):
            order = self._schedule.order(row, number)
            if not order or not self._is_prepared(row):
                continue
            timeout = self._schedule.timeout(row)
            done = sum((run.row, run.round) == (row.name, number) for run in self.results.runs)
            for position, allocator in enumerate(order, done):
                self._display.runs(
                    f"round {number + 1}  {row.group}  {row.name}  {allocator.name}",
                    len(self.results.runs),
                    self._schedule.seconds_left(number, rows[at:]),
                    self._schedule.used,
                    always=at == position == 0,
                )
                self._turn(row, allocator, number, position, timeout)

    def _is_prepared(self, row: Row) -> bool:
        if row.name in self._prepared:
            return True
        unavailable = self.results.settings.setdefault("unavailable", {})
        if row.name in unavailable:
            return False
        try:
            self._runners[row.group].prepare(row)
        except Unavailable as why:
            unavailable[row.name] = str(why)
            self._schedule.drop(row)
            self._display.warn(f"{row.name} is left out: {why}")
            return False
        self._prepared.add(row.name)
        return True

    def _turn(
        self, row: Row, allocator: Allocator, number: int, position: int, timeout: float
    ) -> None:
        began, waited = time.monotonic(), waited_seconds()
        if hung := self._schedule.hung_always(allocator):
            outcome = Outcome(GIVEN_UP, f"not run, since it hung on {', '.join(hung)}")
        else:
            runner = self._runners[row.group]
            outcome = runner.run(row, allocator, scale=self._plan.scale, timeout=timeout)
        ended = time.monotonic()
        if row.threads == 1 and row.group != _OWN_PRESSURE:
            self._pressure.add(waited, waited_seconds(), ended - began)
        began = round(ended - self._start - outcome.seconds, 3)
        own = vars(outcome) | {"seconds": round(outcome.seconds, 4)}
        run = Run(row.name, allocator.name, number, position, began, **own)
        if not self._is_same_work(run):
            detail = f"checksum {run.raw['checksum']}, of others {self._work[row.name]}"
            run = replace(run, outcome="other work", detail=detail)
        self.results.runs.append(run)
        self._store.add(run)
        self._schedule.add(run)
        if not run.is_ok:
            self._display.failed(run)

    def _is_same_work(self, run: Run) -> bool:
        """As the first run of the row did, if the row tells."""
        if not run.is_ok or "checksum" not in run.raw:
            return True
        checksum = str(run.raw["checksum"])
        return self._work.setdefault(run.row, checksum) == checksum

    def _describe(self) -> None:
        """What only the runs could tell."""
        results = self.results
        left_out = results.settings.get("unavailable", {})
        results.rows = [
            with_figures(row, _of(results.runs, row))
            for row in results.rows
            if row.name not in left_out
        ]
        again = sum(int(run.raw.get("attempts", 1)) - 1 for run in results.runs)
        results.settings["repeated_runs"] = again
        results.settings["seconds_used"] = round(self._schedule.used, 1)
        results.machine["pressure_during"] = round(self._pressure.share, 4)
        if self._pressure.warning:
            results.machine["busy_during"] = self._pressure.warning


def _of(runs: Iterable[Run], row: Row) -> list[Run]:
    return [run for run in runs if run.row == row.name and run.is_ok]
