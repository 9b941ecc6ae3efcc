"""What may be said after duels: who gains, what it costs, and whether that holds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hakmem_yardstick import stats
from hakmem_yardstick.compare_runs import ROW
from hakmem_yardstick.compare_text import LABELS
from hakmem_yardstick.duels import Duels
from hakmem_yardstick.stats import Ratio, Verdict
from hakmem_yardstick.units import DASH


@dataclass(frozen=True)
class Answer:
    """On one candidate. Ratios to the base, below 1 is better."""

    name: str
    gains: tuple[str, ...]
    losses: tuple[str, ...]
    ratios: dict[str, Ratio]

    @property
    def merit(self) -> float:
        """The sum of logarithms of what it gains; the lower the better."""
        return sum(math.log(self.ratios[measure].value) for measure in self.gains)

    def text(self) -> str:
        """As in "time 0.93 (0.91-0.95), cpu 0.95 (0.94-0.96)"; what differs clearly comes first."""
        clear = [*self.gains, *self.losses]
        names = [*clear, *(name for name in self.ratios if name not in clear)]
        return ", ".join(f"{label(name)} {shown(self.ratios[name])}" for name in names)


def of(duels: Duels, name: str, least: float) -> Answer:
    """A gain counts if chance does not explain it and it is at least so large. What seems to lose
    so much counts as lost, shown or not: a gain is not bought with what nobody knows."""
    gains, losses, ratios = [], [], {}
    for (other, measure), judged in duels.judged().items():
        if other != name:
            continue
        ratios[measure] = judged.ratio
        if judged.verdict is Verdict.BETTER and judged.ratio.value <= 1 - least:
            gains.append(measure)
        if judged.verdict is not Verdict.BETTER and judged.ratio.value >= 1 + least:
            losses.append(measure)
    return Answer(name, tuple(gains), tuple(losses), ratios)


def of_all(duels: Duels, least: float) -> list[Answer]:
    """The base's second series left out: it shows the noise."""
    return [of(duels, name, least) for name in duels.compared if name != f"{duels.base}#2"]


def best(duels: Duels, least: float) -> Answer | None:
    """Who gains most and loses nothing."""
    sound = [one for one in of_all(duels, least) if one.gains and not one.losses]
    return min(sound, key=lambda one: one.merit, default=None)


def trade(duels: Duels, least: float) -> Answer | None:
    """Who gains most, and loses."""
    mixed = [one for one in of_all(duels, least) if one.gains and one.losses]
    return min(mixed, key=lambda one: one.merit, default=None)


def holds(again: Duels, answer: Answer | None, least: float) -> bool:
    """Whether other runs show a gain too, in one of the measures, and no loss."""
    if answer is None or answer.name not in again.compared:
        return False
    found = of(again, answer.name, least)
    return bool(set(found.gains) & set(answer.gains)) and not found.losses


def showable(duels: Duels, least: float) -> str:
    """The smallest difference that four of five such series would have shown, by measure: as the
    base's second series says."""
    parts = [
        f"{max(judged.showable, least):.0%} in {label(measure)}"
        for (name, measure), judged in duels.judged().items()
        if name == f"{duels.base}#2" and math.isfinite(judged.showable)
    ]
    return ", ".join(parts)


def label(measure: str) -> str:
    return LABELS.get(measure, measure)


def shown(ratio: Ratio) -> str:
    if not ratio.is_known:
        return f"{ratio.value:.2f}"
    digits = 3 if ratio.reach < 0.02 else 2
    value, low, high = (f"{end:.{digits}f}" for end in (ratio.value, ratio.low, ratio.high))
    return f"{value} ({low}{DASH}{high})"


def cell(duels: Duels, name: str, measure: str) -> str:
    """Of a table."""
    if name == duels.base:
        return "1"
    known = stats.ratio(duels.results, ROW, name, duels.base, measure)
    return "" if known is None else shown(known)
