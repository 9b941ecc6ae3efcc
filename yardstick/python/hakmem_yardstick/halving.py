"""Chooses by replay which candidates are worth runs of the real program: successive halving.

A replay costs a fraction of a run, but says nothing of caches and of the program's own work. So it
only leaves out what is clearly worse; what is left is judged by real runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import TypeVar

from hakmem_yardstick import replay
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
) -> list[Screened]:
    """At most so many of the candidates, the best first, and before them the base. Each time half
    stay, and are replayed once more, so what is known of them becomes surer."""
    first = Screened(base)
    left = [Screened(allocator) for allocator in candidates]
    while True:
        tell(f"a replay on each of {len(left)} candidates")
        _play([first, *left], job, jobs)
        if first.failed:
            raise replay.CannotReplay(f"{base.name}: {first.failed.outcome}: {first.failed.detail}")
        left = [one for one in left if not one.failed]
        count = max(most, math.ceil(len(left) / 2))
        is_last = len(left) <= most
        left = best(first, left, count)
        if is_last:
            return [first, *left]


def _play(those: Sequence[Screened], job: Callable[[Allocator], Job], jobs: Executor) -> None:
    waiting = [(one, jobs.submit(replay.play, job(one.allocator))) for one in those]
    for one, future in waiting:
        one.played.append(future.result())


def best(first: Screened, those: Sequence[Screened], count: int) -> list[Screened]:
    """By turns that with least time, that with the lowest peak, that with least memory on average,
    and that with the lowest product of all: which of these matters, the replay does not know."""

    def gain(one: Screened, measure: str) -> float:
        return math.log(max(one.typical(measure), 1e-9) / max(first.typical(measure), 1e-9))

    orders = [sorted(those, key=partial(gain, measure=measure)) for measure in MEASURES]
    orders.append(sorted(those, key=lambda one: sum(gain(one, m) for m in MEASURES)))
    found: list[Screened] = []
    for place in range(len(those)):
        for order in orders:
            if order[place] not in found:
                found.append(order[place])
    return found[:count]
