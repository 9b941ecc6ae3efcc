"""The program that `hakmem compare` and `tune` run, and what may be measured of it. Needs none of
the libraries that they install, so that what is wrong with their arguments is told before."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from hakmem_yardstick.model import Measure

MEASURES = {
    m.name: m
    for m in (
        Measure("time", "s", "from the start to the end of the command"),
        Measure("cpu", "s", "processor time of all its processes, in user mode and in the kernel"),
        Measure("peak", "KiB", "resident memory of its largest process at its largest"),
        Measure("pss", "KiB", "resident memory of all its processes (PSS), average over time"),
        Measure("faults", "faults", "page faults served without reading a disk"),
        Measure("major-faults", "faults", "page faults that waited for a disk"),
    )
}
FIGURE = "figure"
"""What the program, or a command that puts load on it, prints about itself."""
ALL_MEASURES = MEASURES | {
    FIGURE: Measure(FIGURE, "figure", "what is printed, or 1 divided by it; smaller is better")
}
JUDGED = ("time", "cpu", "peak", "pss", "faults")


@dataclass(frozen=True)
class Program:
    command: tuple[str, ...]
    stdin: Path | None = None
    cwd: Path | None = None
    setup: str | None = None
    """For sh, once before all."""
    prepare: str | None = None
    """For sh, before each run; not measured."""
    timeout: float = 600.0
    ignore_status: bool = False
    check_output: bool = False
    output: Path | None = None
    """Standard output of all runs is added to it."""


@dataclass(frozen=True)
class Figure:
    """A number in what is printed."""

    pattern: re.Pattern[str]
    more_is_better: bool = False

    def found(self, text: str) -> float | None:
        match = self.pattern.search(text)
        try:
            value = float(match[1].replace(",", "")) if match else math.nan
        except ValueError:
            value = math.nan
        if not value > 0:
            return None
        return 1 / value if self.more_is_better else value
