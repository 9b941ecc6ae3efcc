"""Medians, paired ratios and their intervals.

Speeds are operations a second, and a ratio of speeds above 1 means faster; of
memory, a ratio below 1 means leaner. Every interval is of 95%, by Student's t
on the logarithms of ratios paired by round: with five rounds a bootstrap of
the median would be far too narrow.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

import numpy as np
from scipy.stats import t as student

from bench.seed.report.allocators import OURS, SYSTEM, Kind
from bench.seed.report.child import Run
from bench.seed.report.rounds import Results

Measure = Callable[[Run], float]

# With two rounds t spans everything: a factor of 12.7 on their difference.
FEWEST_ROUNDS = 3


def row_groups(results: Results) -> list[tuple[str, list[str]]]:
    """The rows as a reader takes them: by threads, large blocks apart."""
    groups: dict[str, list[str]] = {}
    for row in results.rows:
        name = "one thread" if row.threads == 1 else "several threads"
        if row.group == "large":
            name = f"large, {name}"
        groups.setdefault(name, []).append(row.row)
    return list(groups.items())


def thread_groups(results: Results) -> list[tuple[str, list[str]]]:
    """What geometric means are taken over."""
    groups = [("all rows", [row.row for row in results.rows])]
    for name, single in (("one thread", True), ("several threads", False)):
        rows = [row.row for row in results.rows if (row.threads == 1) is single]
        groups.append((name, rows))
    return [(name, rows) for name, rows in groups if rows]


def speed(run: Run) -> float:
    return run.ops_per_s


def peak(run: Run) -> float:
    return float(run.peak_rss_kib)


@dataclass(frozen=True)
class Ratio:
    value: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Whether there were rounds enough for an interval."""
        return math.isfinite(self.high)

    @property
    def shown_below_one(self) -> bool:
        return self.is_known and self.high < 1.0

    @property
    def shown_above_one(self) -> bool:
        return self.is_known and self.low > 1.0


def ratio_of_logs(logs: Iterable[float]) -> Ratio | None:
    values = np.asarray(list(logs), dtype=float)
    if values.size == 0:
        return None
    centre = float(values.mean())
    if values.size < FEWEST_ROUNDS:
        return Ratio(math.exp(centre), 0.0, math.inf)
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    reach = float(student.ppf(0.975, values.size - 1)) * error
    return Ratio(math.exp(centre), math.exp(centre - reach), math.exp(centre + reach))


def _logs(results: Results, row: str, a: str, b: str, measure: Measure) -> dict[int, float]:
    """By round, the logarithm of a's measure over b's."""
    ours, theirs = results.of(row, a), results.of(row, b)
    return {
        number: math.log(measure(ours[number]) / measure(theirs[number]))
        for number in ours.keys() & theirs.keys()
        if measure(ours[number]) > 0 and measure(theirs[number]) > 0
    }


def paired(results: Results, row: str, a: str, b: str, measure: Measure) -> Ratio | None:
    return ratio_of_logs(_logs(results, row, a, b, measure).values())


def middle(results: Results, row: str, name: str, measure: Measure) -> float | None:
    runs = results.of(row, name).values()
    return median(measure(run) for run in runs) if runs else None


def _ranked(results: Results, row: str, names: Iterable[str], measure: Measure) -> list[str]:
    known = [(middle(results, row, name, measure), name) for name in names]
    return [name for value, name in sorted((v, n) for v, n in known if v is not None)]


def fastest(results: Results, row: str, names: Iterable[str]) -> str | None:
    ranked = _ranked(results, row, names, speed)
    return ranked[-1] if ranked else None


def leanest(results: Results, row: str, names: Iterable[str]) -> str | None:
    ranked = _ranked(results, row, names, peak)
    return ranked[0] if ranked else None


def vs_fastest(
    results: Results, row: str, names: Iterable[str] | None = None
) -> tuple[str, Ratio] | None:
    """Ours to the fastest of `names`, of all peers if there are none."""
    peer = fastest(results, row, results.names(Kind.PEER) if names is None else names)
    ratio = paired(results, row, OURS, peer, speed) if peer else None
    return (peer, ratio) if peer and ratio else None


def vs_leanest(results: Results, row: str) -> tuple[str, Ratio] | None:
    peer = leanest(results, row, results.names(Kind.PEER))
    ratio = paired(results, row, OURS, peer, peak) if peer else None
    return (peer, ratio) if peer and ratio else None


def vs_system(results: Results, row: str) -> Ratio | None:
    return paired(results, row, OURS, SYSTEM, speed)


@dataclass(frozen=True)
class Mean:
    ratio: Ratio
    rows: int


def geometric_mean(
    results: Results, rows: Iterable[str], name: str, measure: Measure, *, to_system: bool = False
) -> Mean | None:
    """Over rows, of `name` to the best peer of each row, or to the system's malloc.

    Time for `speed` (so that below 1 is better, as it is for memory).
    The rows' logarithms are averaged within a round, and the interval taken
    over rounds; rounds that lack a row are left out.
    """
    choose = fastest if measure is speed else leanest
    sign = -1.0 if measure is speed else 1.0
    by_round: dict[int, list[float]] = {}
    used = 0
    for row in rows:
        peer = SYSTEM if to_system else choose(results, row, results.names(Kind.PEER))
        logs = _logs(results, row, name, peer, measure) if peer else {}
        used += bool(logs)
        for number, value in logs.items():
            by_round.setdefault(number, []).append(sign * value)
    whole = [float(np.mean(values)) for values in by_round.values() if len(values) == used]
    ratio = ratio_of_logs(whole)
    return Mean(ratio, used) if ratio else None
