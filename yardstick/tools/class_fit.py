#!/usr/bin/env python3
"""What size classes fitted to one program would gain: of each recording, the bytes that blocks of
up to 32 KiB have beyond those requested, at the peak, with hakmem's table and with the best table
of as many classes for just this program.

Usage: yardstick/tools/class_fit.py RECORDING...
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from hakmem import events
from hakmem.history import NEVER, history
from tools import classes

GRAIN, SMALL, STEP, MOST = 16, 1024, 128, 32768


def sizes_at_peak(recording: Path) -> tuple[str, np.ndarray]:
    found, _ = events.processes(recording)
    process = max(found, key=events.calls_of)
    calls, held = history(process)
    change = np.zeros(len(calls.kind), dtype="i8")
    np.add.at(change, held.begin, held.size)
    ended = held.end != NEVER
    np.subtract.at(change, held.end[ended], held.size[ended])
    top = int(np.cumsum(change).argmax())
    sizes = held.size[(held.begin <= top) & (held.end > top)]
    return process.name, sizes[sizes <= MOST]


def fitted(sizes: np.ndarray, count: int) -> np.ndarray:
    """The table of so many classes that rounds least, by dynamic programming. A class is a multiple
    of 16 up to 1 KiB, above of 128."""
    steps = np.concatenate(
        [np.arange(GRAIN, SMALL + 1, GRAIN), np.arange(SMALL + STEP, MOST + 1, STEP)]
    )
    place = np.searchsorted(steps, np.maximum(sizes, 1))
    number = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(steps)))])
    # cost[i]: of all up to the step i, which is a class
    cost = steps * number[1:].astype("f8")
    before = np.zeros((count, len(steps)), dtype="i4")
    for row in range(1, count):
        between = number[1:][None, :] - number[1:][:, None]
        total = cost[:, None] + steps[None, :] * np.where(between >= 0, between, np.inf)
        total[np.tril_indices(len(steps))] = np.inf
        before[row] = total.argmin(axis=0)
        cost = np.minimum(total.min(axis=0), cost)
    at = len(steps) - 1
    table = [at]
    for row in range(count - 1, 0, -1):
        at = int(before[row][at])
        table.append(at)
    return steps[sorted(set(table))]


def rounding(sizes: np.ndarray, table: np.ndarray) -> float:
    given = table[np.searchsorted(table, np.maximum(sizes, 1))]
    return float(given.sum() / max(int(sizes.sum()), 1) - 1)


def main() -> None:
    own = np.array([size for size in classes.sizes() if size <= MOST])
    print(f"{len(own)} classes of up to 32 KiB")
    programs = [sizes_at_peak(Path(word)) for word in sys.argv[1:]]
    tables = [fitted(sizes, len(own)) for _, sizes in programs]
    for (name, sizes), table in zip(programs, tables, strict=True):
        print(f"{name:20} {len(sizes):>9,} blocks  hakmem {rounding(sizes, own):6.2%}  "
              f"fitted {rounding(sizes, table):6.2%}")  # fmt: skip


if __name__ == "__main__":
    main()
