"""Times as machines give them, for comparisons of an allocator with itself.

Each shape makes the logarithms of 2 * rounds runs that follow one another, for many comparisons at
once; `pairs` makes rounds of them in an order drawn by lot.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Shape = Callable[[np.random.Generator, int, int], Floats]


def lognormal(rng: np.random.Generator, many: int, runs: int) -> Floats:
    return 0.02 * rng.standard_normal((many, runs))


def skewed(rng: np.random.Generator, many: int, runs: int) -> Floats:
    """Never below a floor, sometimes far above it."""
    return np.log1p(0.03 * rng.exponential(size=(many, runs)) ** 1.5)


def heavy_tail(rng: np.random.Generator, many: int, runs: int) -> Floats:
    return 0.01 * rng.standard_t(2, (many, runs))


def outliers(rng: np.random.Generator, many: int, runs: int) -> Floats:
    """One run in ten is disturbed."""
    disturbed = rng.random((many, runs)) < 0.1
    return 0.01 * rng.standard_normal((many, runs)) + disturbed * rng.exponential(0.3, (many, runs))


def bimodal(rng: np.random.Generator, many: int, runs: int) -> Floats:
    """Two speeds, as by the luck of addresses."""
    return 0.004 * rng.standard_normal((many, runs)) + 0.08 * (rng.random((many, runs)) < 0.3)


def drift(rng: np.random.Generator, many: int, runs: int) -> Floats:
    """The machine becomes slower by a fifth, and wanders."""
    wander = np.cumsum(0.01 * rng.standard_normal((many, runs)), axis=1)
    return 0.01 * rng.standard_normal((many, runs)) + np.linspace(0, 0.2, runs) + wander


def autocorrelated(rng: np.random.Generator, many: int, runs: int) -> Floats:
    noise = rng.standard_normal((many, runs))
    for at in range(1, runs):
        noise[:, at] = 0.8 * noise[:, at - 1] + 0.6 * noise[:, at]
    return 0.02 * noise


def bursts(rng: np.random.Generator, many: int, runs: int) -> Floats:
    """A neighbour on the same cores, for some runs on end."""
    busy = np.zeros((many, runs))
    on = np.zeros(many, dtype=bool)
    for at in range(runs):
        chance = rng.random(many)
        on = np.where(on, chance < 0.7, chance < 0.08)
        busy[:, at] = on
    return 0.006 * rng.standard_normal((many, runs)) + 0.15 * busy * rng.random((many, runs))


def second_slower(rng: np.random.Generator, many: int, runs: int) -> Floats:
    """The second run of a round always pays for the first."""
    pays: Floats = np.tile([0.0, 0.03], runs // 2)
    return 0.01 * rng.standard_normal((many, runs)) + pays


def whole_pages(rng: np.random.Generator, many: int, runs: int) -> Floats:
    """Memory, counted in pages: many ratios are equal, some are 1."""
    return np.log(np.round(1000 + 3 * rng.standard_normal((many, runs))))


SHAPES: dict[str, Shape] = {
    "lognormal, 2%": lognormal,
    "skewed": skewed,
    "heavy tail (t, 2 degrees)": heavy_tail,
    "10% outliers": outliers,
    "bimodal": bimodal,
    "common drift": drift,
    "autocorrelated, 0.8": autocorrelated,
    "bursts": bursts,
    "second run slower": second_slower,
    "whole pages": whole_pages,
}


def pairs(rng: np.random.Generator, shape: Shape, many: int, rounds: int) -> Floats:
    """Logarithms of ratios, by comparison and round."""
    runs = shape(rng, many, 2 * rounds).reshape(many, rounds, 2)
    first = rng.integers(0, 2, (many, rounds)) * 2 - 1
    logs: Floats = (runs[..., 0] - runs[..., 1]) * first
    return logs
