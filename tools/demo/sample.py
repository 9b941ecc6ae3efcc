"""The result of one run: figures by name, and the proof which allocator was used."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Sample:
    values: dict[str, float] = field(default_factory=dict)
    curve: list[list[float]] = field(default_factory=list)  # MiB over time, of each phase
    proof: str = ""
