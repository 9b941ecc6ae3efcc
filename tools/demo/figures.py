"""From samples to a table: medians, spreads, and a verdict that owns up to losses and to noise."""

from __future__ import annotations

from statistics import median

from rich import box
from rich.table import Table

from tools.demo.batch import FIGURES
from tools.demo.redis_load import LOAD, MEMORY
from tools.demo.sample import Sample

HIGHER_IS_BETTER = frozenset({LOAD[0]})
MEMORY_FIGURES = frozenset({*MEMORY, FIGURES[2]})
# Rounds whose ratios reach this near to 1 from both sides, or cross it, show no direction.
LEVEL = 0.01

Samples = dict[str, list[Sample]]  # by the allocator's title, in order of rounds


def table(title: str, names: tuple[str, ...], samples: Samples, ours: str, base: str) -> Table:
    """A row per figure; the ratio is that of the medians, the verdict looks at each round."""
    made = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    made.add_column("median ± spread", no_wrap=True)
    for who in samples:
        made.add_column(who, justify="right", no_wrap=True)
    made.add_column("ratio", justify="right", no_wrap=True)
    for name in names:
        columns = {who: [s.values[name] for s in runs] for who, runs in samples.items()}
        ratio = median(columns[ours]) / median(columns[base])
        by_round = [a / b for a, b in zip(columns[ours], columns[base], strict=True)]
        made.add_row(
            name,
            *(cell(values) for values in columns.values()),
            f"{ratio:.2f} {verdict(name, by_round)}",
        )
    return made


def cell(values: list[float]) -> str:
    middle = median(values)
    spread = (max(values) - min(values)) / 2 / middle
    return f"{number(middle)} [dim]±{spread:3.0%}[/]"


def number(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:.0f}k"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def verdict(name: str, ratios: list[float]) -> str:
    """`faster`, `slower`, `less`, `more`, or `level` when the rounds show no common direction."""
    if min(ratios) < 1 + LEVEL and max(ratios) > 1 - LEVEL:
        return "level "
    better = (median(ratios) > 1) == (name in HIGHER_IS_BETTER)
    words = ("less", "more") if name in MEMORY_FIGURES else ("faster", "slower")
    word = words[0] if better else words[1]
    return f"[{'green' if better else 'red'}]{word:6}[/]"
