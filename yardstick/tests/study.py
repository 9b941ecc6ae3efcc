"""Which interval is kept: false alarms and power of several, in simulated comparisons.

    PYTHONPATH=python:yardstick/python python3 -m yardstick.tests.study

Prints the tables of yardstick/docs/statistics.md as Markdown; takes some minutes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import bootstrap, permutation_test, t, wilcoxon

from hakmem_yardstick import stats
from yardstick.tests.noise import SHAPES, Floats, Shape, pairs

MANY = 10_000
FEW = 1_000
"""For methods that draw samples of their own."""

Test = Callable[[Floats], Floats]
"""Of comparisons by rounds: which are called different."""


def student(logs: Floats) -> Floats:
    rounds = logs.shape[1]
    reach = t.ppf(0.975, rounds - 1) * logs.std(axis=1, ddof=1) / math.sqrt(rounds)
    return np.asarray(np.abs(logs.mean(axis=1)) > reach)


def signed_rank(logs: Floats) -> Floats:
    """As it comes: of the levels that ranks can have, the one below 5%."""
    exact = "exact" if logs.shape[1] <= 50 else "approx"
    return np.asarray(wilcoxon(logs, axis=1, method=exact).pvalue <= 0.05)


def interpolated(logs: Floats) -> Floats:
    _, low, high = stats.intervals(logs)
    return np.asarray((low > 0) | (high < 0))


def sign_flips(logs: Floats) -> Floats:
    def mean(sample: Floats, axis: int) -> Floats:
        return np.asarray(sample.mean(axis=axis))

    return np.array(
        [
            permutation_test(
                (each,), mean, permutation_type="samples", n_resamples=999, vectorized=True
            ).pvalue
            <= 0.05
            for each in logs
        ]
    )


def bca(logs: Floats) -> Floats:
    rng = np.random.default_rng(1)
    ends = [
        bootstrap((each,), np.mean, n_resamples=999, method="BCa", rng=rng).confidence_interval
        for each in logs
    ]
    return np.array([end.low > 0 or end.high < 0 for end in ends])


ALL: dict[str, Test] = {
    "Student's t": student,
    "signed ranks": signed_rank,
    "signed ranks, interpolated": interpolated,
}
DRAWING: dict[str, Test] = {"sign flips of the mean": sign_flips, "bootstrap, BCa": bca}


def rate(test: Test, shape: Shape, rounds: int, many: int, effect: float = 0.0) -> float:
    logs = effect + pairs(np.random.default_rng(rounds), shape, many, rounds)
    return float(np.mean(test(logs)))


def table(
    title: str, tests: dict[str, Test], many: int, rounds: tuple[int, ...], effect: float
) -> None:
    print(f"\n{title}\n")
    print("| noise | method |", " | ".join(map(str, rounds)), "|")
    print("|---|---|" + "--:|" * len(rounds))
    for name, shape in SHAPES.items():
        for method, test in tests.items():
            cells = (f"{rate(test, shape, n, many, effect):.1%}" for n in rounds)
            print(f"| {name} | {method} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    table("False alarms", ALL, MANY, (3, 5, 6, 7, 8, 10, 20, 30), 0.0)
    table("False alarms", DRAWING, FEW, (7, 10, 20), 0.0)
    table("A difference of 1% found", ALL, MANY, (7, 10, 20, 30), math.log(1.01))
