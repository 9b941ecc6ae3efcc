"""What may be said of figures that were measured amid noise.

Two allocators are compared by the logarithm of the ratio of their figures in the same round: rounds
lie minutes apart and the machine drifts, two runs of one round are neighbours. The centre of the
logarithms is the Hodges-Lehmann estimate (the median of the means of all pairs of rounds), and the
interval is that of Wilcoxon's signed ranks, interpolated between two ranks so that it is one of 95%
and not of whatever the ranks give. It supposes one thing, that in a comparison of an allocator with
itself a round's logarithm is as likely to be d as -d, and the order of the runs within a round,
drawn by lot, makes that so. yardstick/docs/statistics.md has the study in which it was chosen.

All measures are such that smaller is better: a ratio below 1 is better.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from random import Random
from statistics import NormalDist, median
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hakmem_yardstick.model import Kind, Results

CONFIDENCE = 0.95
FEWEST_ROUNDS = 6
"""With fewer, 95% can't be had from signs and ranks: five rounds agree by chance once in 16."""
LOOKS = (10, 14, 20, 30)
"""After how many rounds a stop rule may look at widths; at every round it would find intervals
that are narrow by chance."""
ERROR_AFTER_LOOKS = 0.043
"""What to judge with in place of 5% where such a rule chose the number of rounds: looking costs the
rest. Found by simulation (yardstick/tests/test_stats.py)."""

Floats = NDArray[np.float64]
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Ratio:
    value: float
    low: float
    high: float
    rounds: int = 0

    @property
    def is_known(self) -> bool:
        """Whether there were rounds enough for an interval."""
        return math.isfinite(self.high) and self.low > 0

    @property
    def shown_better(self) -> bool:
        return self.is_known and self.high < 1.0

    @property
    def shown_worse(self) -> bool:
        return self.is_known and self.low > 1.0

    def reached(self, goal: float) -> bool:
        """The whole interval is at or below the goal."""
        return self.is_known and self.high <= goal

    @property
    def reach(self) -> float:
        """How far the interval goes to its farther side: 0.01 is 1%."""
        if not self.is_known:
            return math.inf
        return max(self.high / self.value, self.value / self.low) - 1.0

    def showable(self, error: float = 1 - CONFIDENCE) -> float:
        """The difference that four of five such comparisons would show: 0.01 is 1%.

        `error` is the one that the interval was made for.
        """
        if not self.is_known:
            return math.inf
        # The end towards 1 is what shows a difference; where none is shown, either end may be.
        reach = 1.0 + self.reach
        if self.shown_worse:
            reach = self.value / self.low
        elif self.shown_better:
            reach = self.high / self.value
        # One of two where the difference equals the reach; four of five farther out.
        quantile = NormalDist().inv_cdf
        more = 1.0 + quantile(0.8) / quantile(1 - error / 2)
        return math.expm1(math.log(reach) * more)


# ---- one interval ----


@cache
def _rank_sums(rounds: int) -> Floats:
    """P(W <= w) of Wilcoxon's signed-rank sum W for w = 0, 1, ..."""
    chances = np.ones(1)
    for rank in range(1, rounds + 1):
        longer = np.zeros(len(chances) + rank)
        longer[: len(chances)] += chances
        longer[rank:] += chances
        chances = longer / 2
    return np.cumsum(chances)


def intervals(logs: ArrayLike, confidence: float = CONFIDENCE) -> tuple[Floats, Floats, Floats]:
    """Centre, lower and upper end along the last axis, whose length is the number of rounds.

    The ends are infinite where there are too few rounds for the confidence.
    """
    values = np.asarray(logs, dtype=float)
    rounds = values.shape[-1]
    first, second = np.triu_indices(rounds)
    means = np.sort((values[..., first] + values[..., second]) / 2, axis=-1)
    centre = np.median(means, axis=-1)
    tail = (1 - confidence) / 2
    sums = _rank_sums(rounds)
    # The k-th smallest mean from either end leaves out sums[k-1] on its side.
    k = int(np.searchsorted(sums, tail * (1 + 1e-12), side="right"))
    if k == 0:
        return centre, np.full_like(centre, -np.inf), np.full_like(centre, np.inf)
    inward = (tail - sums[k - 1]) / (sums[k] - sums[k - 1])
    low = (1 - inward) * means[..., k - 1] + inward * means[..., k]
    high = (1 - inward) * means[..., -k] + inward * means[..., -k - 1]
    return centre, low, high


def ratio_of(logs: Iterable[float], confidence: float = CONFIDENCE) -> Ratio | None:
    """Of the logarithms of one comparison, a round each; None if there are none."""
    values = np.asarray(list(logs), dtype=float)
    if values.size == 0:
        return None
    centre, low, high = (float(end) for end in intervals(values, confidence))
    return Ratio(math.exp(centre), math.exp(low), math.exp(high), values.size)


# ---- figures of results ----

_LEAST = {
    "KiB": 4.0,
    "B": 1.0,
    "ns": 1e-3,
    "us": 1e-3,
    "ms": 1e-3,
    "s": 1e-6,
    "ratio": 1e-9,
    "figure": 1e-300,
}
"""What a smaller figure counts as, so that none has no logarithm: a page, a picosecond."""


def least(unit: str) -> float:
    """What a smaller figure counts as. Of what is counted, one."""
    return _LEAST.get(unit, 1.0)


def _unit(results: Results, row: str, measure: str) -> str:
    return next((m.unit for m in results.row(row).measures if m.name == measure), "")


def values_of(results: Results, row: str, allocator: str, measure: str) -> dict[int, float]:
    """By round, of the runs that have the figure."""
    runs = results.of(row, allocator).items()
    return {number: run.values[measure] for number, run in runs if measure in run.values}


@dataclass(frozen=True)
class Spread:
    median: float
    low: float
    """First quartile."""
    high: float
    """Third quartile."""
    runs: int


def spread_of(results: Results, row: str, allocator: str, measure: str) -> Spread | None:
    values = list(values_of(results, row, allocator, measure).values())
    if not values:
        return None
    low, middle, high = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
    return Spread(middle, low, high, len(values))


def median_of(results: Results, row: str, allocator: str, measure: str) -> float | None:
    values = values_of(results, row, allocator, measure).values()
    return median(values) if values else None


def logs_of(results: Results, row: str, a: str, b: str, measure: str) -> dict[int, float]:
    """By round, the logarithm of a's figure over b's, of the rounds that both have."""
    ours, theirs = (values_of(results, row, name, measure) for name in (a, b))
    floor = least(_unit(results, row, measure))
    return {
        number: math.log(max(ours[number], floor) / max(theirs[number], floor))
        for number in sorted(ours.keys() & theirs.keys())
    }


def _confidence(results: Results, rounds: int) -> float:
    """Of so many rounds: more than 95% where a look at the width may have chosen their number."""
    plan = results.settings.get("plan", {})
    is_chosen = plan.get("least_rounds", 0) < plan.get("most_rounds", 0)
    return 1 - ERROR_AFTER_LOOKS if is_chosen and rounds >= LOOKS[0] else CONFIDENCE


def _ratio(
    results: Results, row: str, logs: Iterable[float], confidence: float | None = None
) -> Ratio | None:
    values = list(logs)
    if values and results.row(row).exact:
        value = math.exp(float(np.median(values)))
        return Ratio(value, value, value, len(values))
    return ratio_of(values, confidence or _confidence(results, len(values)))


def ratio(
    results: Results, row: str, a: str, b: str, measure: str, confidence: float | None = None
) -> Ratio | None:
    """Of a's figure to b's, paired by round; None if no round has both.

    The figures of a row that repeats exactly are known exactly. Without a confidence the interval
    is one of 95% however the number of rounds was chosen.
    """
    return _ratio(results, row, logs_of(results, row, a, b, measure).values(), confidence)


# ---- against the best peer, and over rows ----


def _figures_of_peers(results: Results, row: str, measure: str) -> dict[str, dict[int, float]]:
    names = results.names(Kind.PEER)
    values = {name: values_of(results, row, name, measure) for name in names}
    # Who has far fewer rounds than others failed, or is many times slower and was run less. To
    # compare with it would leave too few rounds for an interval, of this row and of all means.
    most = max(map(len, values.values()), default=0)
    least = min(FEWEST_ROUNDS, most - 1) if most >= FEWEST_ROUNDS else 1
    return {name: figures for name, figures in values.items() if len(figures) >= least}


def best_peer(results: Results, row: str, measure: str) -> str | None:
    """The one with the smallest median; not one that has figures in too few rounds for an interval
    where others have enough."""
    values = _figures_of_peers(results, row, measure)
    medians = {name: median(figures.values()) for name, figures in values.items()}
    return min(medians, key=medians.__getitem__) if medians else None


def _logs_to_next_best(results: Results, row: str, name: str, measure: str) -> dict[int, float]:
    """Each round against the peer that was best in all the other rounds.

    The peer with the smallest median has it by luck too, and is too good in the very rounds that
    chose it; in a round that had no say it is as good as it is.
    """
    values = _figures_of_peers(results, row, measure)
    floor = least(_unit(results, row, measure))
    logs: dict[int, float] = {}
    for number, own in values_of(results, row, name, measure).items():
        others = {
            peer: median(figure for at, figure in figures.items() if at != number)
            for peer, figures in values.items()
            if number in figures and len(figures) > 1
        }
        if others:
            theirs = values[min(others, key=others.__getitem__)][number]
            logs[number] = math.log(max(own, floor) / max(theirs, floor))
    return logs


def _wider(ratio: Ratio | None, other: Ratio | None) -> Ratio | None:
    if ratio is None or other is None:
        return ratio
    low, high = min(ratio.low, other.low), max(ratio.high, other.high)
    return Ratio(ratio.value, low, high, ratio.rounds)


@dataclass(frozen=True)
class ToBest:
    peer: str
    ratio: Ratio


def ratio_to_best(results: Results, row: str, name: str, measure: str) -> ToBest | None:
    """To the peer with the smallest median. The interval also covers the peer as the other rounds
    choose it, so that "slower than the best peer" is not said because one of many was lucky."""
    peer = best_peer(results, row, measure)
    plain = None if peer is None else ratio(results, row, name, peer, measure)
    if peer is None or plain is None:
        return None
    logs = _logs_to_next_best(results, row, name, measure).values()
    honest = _wider(plain, _ratio(results, row, logs))
    assert honest is not None
    return ToBest(peer, honest)


@dataclass(frozen=True)
class Mean:
    ratio: Ratio
    rows: tuple[str, ...]
    """Those it is of."""
    without: tuple[str, ...] = ()
    """Those asked for in which there is no figure for it."""


def judging(results: Results, measure: str) -> list[str]:
    """The rows that are judged by a measure."""
    return [row.name for row in results.rows if measure in row.judged]


def geometric_mean(
    results: Results,
    rows: Iterable[str],
    name: str,
    measure: str,
    *,
    to: str | None = None,
) -> Mean | None:
    """Over rows, of name's figures to those of `to`, or to the best peer of each row.

    As many rounds as the row with the fewest has; a row with more gives means of neighbouring
    ones. In each, the logarithms of all rows are averaged, and those are taken as one comparison.
    Where most rows have rounds enough for an interval, those that have not are left out.
    """
    plain: list[dict[int, float]] = []
    next_best: list[dict[int, float]] = []
    exact: list[bool] = []
    used: list[str] = []
    without: list[str] = []
    rows = list(rows)
    short = _short_rows(results, rows, name)
    for row in rows:
        if row in short:
            without.append(row)
            continue
        peer = to if to is not None else best_peer(results, row, measure)
        logs = logs_of(results, row, name, peer, measure) if peer is not None else {}
        if not logs:
            without.append(row)
            continue
        used.append(row)
        exact.append(results.row(row).exact)
        plain.append(logs)
        if to is None:
            others = _logs_to_next_best(results, row, name, measure)
            next_best.append(others or logs)
    confidence = _confidence(results, max(map(len, plain), default=0))
    ratio = _over_rows(plain, exact, confidence)
    if ratio is None:
        return None
    if to is None:
        ratio = _wider(ratio, _over_rows(next_best, exact, confidence)) or ratio
    return Mean(ratio, tuple(used), tuple(without))


def _short_rows(results: Results, rows: Sequence[str], name: str) -> set[str]:
    """Those for whose few rounds the mean of all would have no interval."""
    short = {
        row
        for row in rows
        if not results.row(row).exact and 0 < len(results.of(row, name)) < FEWEST_ROUNDS
    }
    return short if 2 * len(short) < len(rows) else set()


def _over_rows(
    rows: Sequence[dict[int, float]], exact: Sequence[bool], confidence: float
) -> Ratio | None:
    """Of logarithms by round; a row that repeats exactly has the same in every round."""
    by_row = [list(logs.values()) for logs in rows]
    known = [median(row) for row, is_exact in zip(by_row, exact, strict=True) if is_exact]
    noisy = [np.asarray(row) for row, is_exact in zip(by_row, exact, strict=True) if not is_exact]
    if not noisy:
        value = math.exp(float(np.mean(known))) if known else math.nan
        return Ratio(value, value, value, 1) if known else None
    rounds = min(len(row) for row in noisy)
    total = sum(
        (np.array([part.mean() for part in np.array_split(row, rounds)]) for row in noisy),
        start=np.full(rounds, sum(known)),
    )
    return ratio_of(total / len(rows), confidence)


@dataclass(frozen=True)
class Point:
    """One allocator's place among all by time and memory."""

    name: str
    kind: Kind
    time: Mean
    memory: Mean
    is_best_trade: bool
    """Nobody is at least as good in both and better in one: on the Pareto front."""


def frontier(
    results: Results, *, time: str = "time", memory: str = "peak", to: str | None = None
) -> list[Point]:
    """Peers and ours, over the rows in which all of them have figures; fastest first.

    Who has figures in fewer than half of the rows is left out, lest the others be compared by
    the few rows that it survived.
    """
    names = results.names(Kind.OURS, Kind.PEER)
    chosen: dict[str, dict[str, Mean]] = {name: {} for name in names}
    for measure in (time, memory):
        rows = judging(results, measure)
        has = {
            name: {row for row in rows if values_of(results, row, name, measure)} for name in names
        }
        sound = [name for name in names if 2 * len(has[name]) >= len(rows) > 0]
        common = [row for row in rows if all(row in has[name] for name in sound)]
        for name in sound:
            mean = geometric_mean(results, common, name, measure, to=to)
            if mean is not None:
                chosen[name][measure] = mean
    placed = {name: means for name, means in chosen.items() if len(means) == len({time, memory})}
    front: list[str] = []
    ratios = {name: tuple(means[m].ratio.value for m in (time, memory)) for name, means in
              placed.items()}  # fmt: skip
    for name, (_, held) in sorted(ratios.items(), key=lambda item: item[1]):
        if not front or held < ratios[front[-1]][1]:
            front.append(name)
    points = [
        Point(name, kind, placed[name][time], placed[name][memory], name in front)
        for name, kind in ((a.name, a.kind) for a in results.allocators)
        if name in placed
    ]
    return sorted(points, key=lambda point: point.time.ratio.value)


# ---- in which order, and when to stop ----


def drawn_order(names: Sequence[str], seed: int, row: str, number: int) -> list[str]:
    """Of the runs of one round of a row. Drawn by lot in each round anew, which is what the
    intervals rest on; the same for the same seed, so that a session can be gone on with."""
    return Random(f"{seed}/{row}/{number}").sample(list(names), len(names))


def narrow_enough(results: Results, row: str, name: str, precision: float) -> bool:
    """Whether name's ratio to the best peer is known to within `precision` in all that the row is
    judged by. To be asked after LOOKS rounds alone, and then ERROR_AFTER_LOOKS is to judge with."""
    for measure in results.row(row).judged:
        peer = best_peer(results, row, measure)
        known = ratio(results, row, name, peer, measure, CONFIDENCE) if peer is not None else None
        if known is not None and known.reach > precision:
            return False
    return True


# ---- verdicts ----


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    NONE = "no difference shown"


@dataclass(frozen=True)
class Figures:
    """Of one measure of two allocators, in the same rounds."""

    a: tuple[float, ...]
    b: tuple[float, ...]
    least: float
    """Smaller figures count as this one."""
    resolution: float
    """Medians that lie no farther apart than this don't differ, however often."""

    @property
    def logs(self) -> Floats:
        a, b = (
            np.maximum(np.asarray(values, dtype=float), self.least) for values in (self.a, self.b)
        )
        logs: Floats = np.log(b / a)
        return logs

    @property
    def are_apart(self) -> bool:
        return abs(float(np.median(self.b) - np.median(self.a))) > self.resolution


@dataclass(frozen=True)
class Judged:
    ratio: Ratio
    """Of b to a, with an interval of 95%."""
    showable: float
    """The difference that four of five such runs would have called one: 0.01 is 1%."""
    verdict: Verdict


def judge(figures: Mapping[K, Figures], error: float = 1 - CONFIDENCE) -> dict[K, Judged]:
    """Verdicts on several measures together.

    The chance that any of them is called different although none is, is `error`: by Holm's
    method, the clearest difference must be shown against error / n, the next against
    error / (n - 1), and so on to the first that isn't.
    """
    logs = {name: f.logs for name, f in figures.items() if len(f.a)}
    open_ = dict(logs)
    judged: dict[K, Judged] = {}
    while open_:
        level = error / len(open_)
        ends = {name: ratio_of(each, 1 - level) for name, each in open_.items()}
        shown = [name for name, r in ends.items() if r and (r.shown_better or r.shown_worse)]
        for name in shown or list(open_):
            strict = ends[name]
            assert strict is not None
            judged[name] = _judged(figures[name], open_.pop(name), strict, level)
    return {name: judged[name] for name in logs}


def _judged(figures: Figures, logs: Floats, strict: Ratio, level: float) -> Judged:
    plain = ratio_of(logs)
    assert plain is not None
    verdict = Verdict.NONE
    if figures.are_apart and strict.shown_worse:
        verdict = Verdict.WORSE
    elif figures.are_apart and strict.shown_better:
        verdict = Verdict.BETTER
    middle = max(float(np.median(figures.a)), figures.least)
    return Judged(plain, max(strict.showable(level), figures.resolution / middle), verdict)
