"""How long a session will take, told before anything is fetched, built or run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SUITE_SECONDS = 20.0
"""That building the suite takes on two cores, about."""


@dataclass(frozen=True)
class Preparation:
    """What must be done once, before the first run."""

    what: str
    """As in "fetching and building snmalloc"."""
    seconds: float


def duration(seconds: float) -> str:
    """As in "1 h 05 min", "4 min", "40 s"."""
    if seconds < 90:
        return f"{max(0.0, seconds):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


def sentences(
    preparations: Sequence[Preparation], run_seconds: float | None, busy: str
) -> list[str]:
    """`run_seconds`: of all runs; None where nobody knows. `busy`: why the machine is, or empty."""
    parts = [f"{one.what} (about {duration(one.seconds)})" for one in preparations]
    before = sum(one.seconds for one in preparations)
    if run_seconds is not None:
        parts.append(f"{'then ' if parts else ''}about {duration(run_seconds)} of runs")
    told = []
    if len(parts) > 1 and run_seconds is not None:
        told.append(f"this takes about {duration(before + run_seconds)}: {', '.join(parts)}")
    elif parts:
        told.append(f"{'this takes' if run_seconds is not None else 'first:'} {', '.join(parts)}")
    if busy:
        told.append(f"the machine is busy ({busy}): it takes longer, and the figures will be noisy")
    return told
