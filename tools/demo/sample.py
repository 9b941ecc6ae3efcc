"""What one run yields: figures by name, and the words that prove which allocator was in force."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Sample:
    values: dict[str, float] = field(default_factory=dict)
    proof: str = ""
