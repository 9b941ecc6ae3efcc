"""From samples to a table: medians, and a verdict if the rounds justify one."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import mean, median, stdev

from rich import box
from rich.table import Table

from tools.demo.batch import FIGURES
from tools.demo.redis_load import LOAD, MEMORY
from tools.demo.sample import Sample

HIGHER_IS_BETTER = frozenset({LOAD[0]})
MEMORY_FIGURES = frozenset({*MEMORY, *FIGURES[2:]})
NO_DIFFERENCE, UNCLEAR = "no difference", "not clear"
NEAR = 0.02  # to 1
# Student's t, 97.5%, by degrees of freedom: the number of rounds less one.
_T = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}

Samples = dict[str, list[Sample]]  # by the allocator's title, in order of rounds


@dataclass(frozen=True)
class Ratio:
    """Of two allocators: the quotient of their medians, and the 95% interval of the ratios of the
    rounds, which decides whether there is a verdict."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, ours: list[float], base: list[float]) -> Ratio:
        logs = [log(a / b) for a, b in zip(ours, base, strict=True)]
        middle = mean(logs)
        half = _T[len(logs) - 1] * stdev(logs) / sqrt(len(logs))
        return cls(median(ours) / median(base), exp(middle - half), exp(middle + half))

    def differs(self) -> bool:
        """Also false if the table would show 1.00."""
        return not self.low <= 1 <= self.high and f"{self.middle:.2f}" != "1.00"

    def __str__(self) -> str:
        return f"{self.middle:.2f}"


def table(title: str, names: tuple[str, ...], samples: Samples, ours: str, base: str) -> Table:
    """A row per figure: medians, their quotient, and the verdict."""
    made = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
    )
    made.add_column("median", no_wrap=True)
    for who in samples:
        made.add_column(who, justify="right", no_wrap=True)
    made.add_column(f"{ours}/{base}", justify="right", no_wrap=True)
    made.add_column("verdict", no_wrap=True)
    for name in names:
        columns = {who: [s.values[name] for s in runs] for who, runs in samples.items()}
        ratio = Ratio.of(columns[ours], columns[base])
        medians = (number(median(values)) for values in columns.values())
        made.add_row(name, *medians, str(ratio), verdict(name, ratio))
    return made


def number(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:.0f}k"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def verdict(name: str, ratio: Ratio) -> str:
    if not ratio.differs():
        return NO_DIFFERENCE if abs(ratio.middle - 1) < NEAR else UNCLEAR
    better = (ratio.middle > 1) == (name in HIGHER_IS_BETTER)
    words = ("leaner", "larger") if name in MEMORY_FIGURES else ("faster", "slower")
    return f"[{'green' if better else 'red'}]{words[0] if better else words[1]}[/]"
