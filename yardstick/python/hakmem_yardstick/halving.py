"""Chooses by replay which candidates are worth runs of the real program: successive halving.

A replay costs a fraction of a run, but says nothing of caches and of the program's own work. What
is left is judged by real runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from operator import methodcaller
from statistics import median
from typing import TypeVar

from hakmem_yardstick import replay
from hakmem_yardstick.jobs import result
from hakmem_yardstick.model import Allocator
from hakmem_yardstick.replay import Job, Played

T = TypeVar("T")


@dataclass
class Screened:
    allocator: Allocator
    played: list[Played] = field(default_factory=list)

    @property
    def failed(self) -> Played | None:
        return next((one for one in self.played if one.outcome != "ok" or one.failed), None)

    def typical(self, measure: str) -> float:
        return median(float(getattr(one, measure)) for one in self.played)


MEASURES = ("cpu", "peak", "mean")


def halved(
    base: Allocator,
    candidates: Sequence[Allocator],
    most: int,
    job: Callable[[Allocator], Job],
    jobs: Executor,
    tell: Callable[[str], None],
    *,
    by_time: bool = True,
) -> list[Screened]:
    """At most so many of the candidates, the best first. Each time half stay, and are replayed once
    more, so what is known of them becomes surer. Not `by_time` where several machines replay."""
    first = Screened(base)
    left = [Screened(allocator) for allocator in candidates]
    while True:
        tell(f"a replay on each of {len(left)} candidates")
        _play([first, *left], job, jobs)
        if first.failed:
            raise replay.CannotReplay(f"{base.name}: {first.failed.why}")
        left = [one for one in left if not one.failed]
        count = max(most, math.ceil(len(left) / 2))
        is_last = len(left) <= most
        left = best(left, count, MEASURES if by_time else MEASURES[1:])
        if is_last:
            return left


def _play(those: Sequence[Screened], job: Callable[[Allocator], Job], jobs: Executor) -> None:
    waiting = [(one, jobs.submit(replay.play, job(one.allocator))) for one in those]
    for one, future in waiting:
        one.played.append(result(future))


def best(those: Sequence[Screened], count: int, measures: Sequence[str]) -> list[Screened]:
    """By turns the lowest of each measure, and of the product of all: which of them matters, the
    replay does not know."""

    def total(one: Screened) -> float:
        return sum(math.log(max(one.typical(measure), 1e-9)) for measure in measures)

    orders = [sorted(those, key=methodcaller("typical", measure)) for measure in measures]
    orders.append(sorted(those, key=total))
    found: list[Screened] = []
    for place in range(len(those)):
        for order in orders:
            if order[place] not in found:
                found.append(order[place])
    return found[:count]
