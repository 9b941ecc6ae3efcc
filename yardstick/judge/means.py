"""The mean over rows as a sample of all work: what it says also holds for rows that are not there.

The means of hakmem_yardstick.stats are of the very rows that were run, and their intervals have the
noise of the runs alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import NormalDist

import numpy as np
from scipy.special import stdtrit

from hakmem_yardstick import stats
from hakmem_yardstick.model import Results
from hakmem_yardstick.stats import Ratio

_RESAMPLES = 4000


def mean_of_work(
    results: Results, figures: Mapping[str, Iterable[str]], name: str, to: str, seed: int = 0
) -> Ratio | None:
    """Over rows and some measures of each, of name's figures to those of `to`, with an interval for
    other work of their kind: the rows are drawn again, and of each its rounds (a bootstrap). It has
    no ends with fewer than stats.FEWEST_ROUNDS rows. `rounds` of the ratio counts rows.
    """
    rows = [
        logs
        for row, measures in figures.items()
        if len(logs := _mean_logs(results, row, name, to, measures))
    ]
    if not rows:
        return None
    value = math.exp(float(np.mean([np.median(row) for row in rows])))
    count = len(rows)
    if count < stats.FEWEST_ROUNDS:
        return Ratio(value, 0.0, math.inf, count)
    lot = np.random.default_rng(seed)
    medians = np.array([np.median(lot.choice(row, (_RESAMPLES, len(row))), axis=1) for row in rows])
    drawn = lot.integers(count, size=(_RESAMPLES, count))
    means = medians[drawn, lot.integers(_RESAMPLES, size=drawn.shape)].mean(axis=1)
    # Few rows drawn again vary less than rows that nobody has seen; Hesterberg's correction (2015).
    wider = math.sqrt(count / (count - 1)) * float(stdtrit(count - 1, (1 + stats.CONFIDENCE) / 2))
    tail = NormalDist().cdf(-wider)
    low, high = np.exp(np.quantile(means, (tail, 1 - tail)))
    return Ratio(value, float(low), float(high), count)


def _mean_logs(results: Results, row: str, a: str, b: str, measures: Iterable[str]) -> stats.Floats:
    """Of its measures; of the rounds that have all."""
    logs = [each for measure in measures if (each := stats.logs_of(results, row, a, b, measure))]
    common = sorted(set.intersection(*(set(each) for each in logs))) if logs else []
    return np.array([np.mean([each[number] for each in logs]) for number in common])
