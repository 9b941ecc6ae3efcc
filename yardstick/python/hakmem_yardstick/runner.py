"""What runs rows: the suite's program, real programs, counters under valgrind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from hakmem_yardstick.model import Allocator, Row


class Unavailable(Exception):
    """A row that can't be run here, on any allocator, and why."""


@dataclass(frozen=True)
class Outcome:
    """What one run gave; the fields are those of model.Run."""

    outcome: str = "ok"
    detail: str = ""
    seconds: float = 0.0
    values: Mapping[str, float] = field(default_factory=dict)
    series: tuple[tuple[float, float], ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict)


class Runner(Protocol):
    """One kind of rows. What it raises beside Unavailable is a mistake in hakmem."""

    def rows(self) -> list[Row]: ...

    def prepare(self, row: Row) -> None:
        """Before the row's first run: inputs made, programs found. Not measured."""

    def run(self, row: Row, allocator: Allocator, *, scale: float, timeout: float) -> Outcome:
        """One run in processes of its own, all of which have ended when it returns."""
