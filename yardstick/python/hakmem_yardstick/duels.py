"""Duels of the real program: a round runs it once on each finalist, in an order drawn by lot, so
each round is a duel of every two."""

from __future__ import annotations

from dataclasses import dataclass, field

from hakmem_yardstick import proof, stats
from hakmem_yardstick.compare_runs import ROW, Comparison
from hakmem_yardstick.measure import Measured
from hakmem_yardstick.model import Allocator
from hakmem_yardstick.service import Service
from hakmem_yardstick.subject import FIGURE, Figure

LEVEL = 0.01
"""The chance that anything is called a gain or a loss where nothing differs."""
_MOSTLY = 0.8  # of the rounds


@dataclass
class Duels(Comparison):
    figure: Figure | None = None
    service: Service | None = None

    left_out: dict[str, str] = field(init=False, default_factory=dict)
    """Allocators that are not active in the program, and why."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.error = LEVEL
        if self.service is not None:
            self.started = self.service.started

    def prove(self) -> None:
        """Raises proof.Unproved if the first is not active; others are left out."""
        if self.service is not None:
            return  # it does not end by itself: whether it has the allocator, each run looks
        for allocator in self.allocators:
            if allocator.name == f"{self.base}#2":
                continue
            try:
                self._prove(allocator)
            except proof.Unproved as why:
                if allocator.name == self.base:
                    raise
                self.left_out[allocator.name] = str(why)
        self.allocators = [one for one in self.allocators if one.name not in self.left_out]
        self.results.allocators = list(self.allocators)

    @property
    def unmeasured(self) -> list[str]:
        """Measures that too few runs of the first have to compare anything by."""
        return [
            measure
            for measure in self.judge
            if len(stats.values_of(self.results, ROW, self.base, measure)) < _MOSTLY * self.rounds
        ]

    def figures(self, name: str, measure: str) -> stats.Figures | None:
        """None too where some rounds alone have them: those would be chosen by chance."""
        found = super().figures(name, measure)
        return found if found is not None and len(found.a) >= _MOSTLY * self.rounds else None

    def _measured(self, allocator: Allocator) -> Measured:
        if self.service is not None:
            self.service.expect(allocator)
        return super()._measured(allocator)

    @property
    def keeps_output(self) -> bool:
        return super().keeps_output or self.figure is not None

    def _outcome(self, done: Measured) -> tuple[str, str]:
        outcome, detail = super()._outcome(done)
        if self.service is not None:
            detail = self.service.failure(done)
            outcome = "load" if detail else "ok"
        if self.figure is not None and outcome == "ok" and self._figure(done) is None:
            pattern = self.figure.pattern.pattern
            return "figure", f"--figure {pattern!r} finds no number above 0 in the output"
        return outcome, detail

    def _figure(self, done: Measured) -> float | None:
        text = done.stdout if self.service is None else self.service.answer.output
        return None if self.figure is None else self.figure.found(text)

    def _values(self, done: Measured) -> dict[str, float]:
        values = super()._values(done)
        if self.service is not None:
            values["time"] = self.service.answer.seconds
        figure = self._figure(done)
        return values if figure is None else values | {FIGURE: figure}
