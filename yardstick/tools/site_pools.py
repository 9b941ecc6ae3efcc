#!/usr/bin/env python3
"""What it would gain to keep blocks apart by how long they live: of each recording, the memory that
blocks of up to 32 KiB need if pages without any block cost nothing, when each size class has one
pool, when it has four by the lifetimes that are typical of the call path, and when it has four by
the block's own lifetime, which no allocator can know. Each pool gives out its lowest free block.

Usage: yardstick/tools/site_pools.py RECORDING...
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from hakmem import events
from hakmem.history import NEVER, history
from tools import classes

MOST, PAGE, SLICE = 32768, 4096, 65536
GROUPS = (0.0001, 0.01, 0.2)  # of the calls of the run; lifetimes up to this


class Pools:
    """Blocks of a class and a group lie in slices of their own."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes
        self.free: dict[tuple[int, int], list[int]] = {}
        self.used: dict[tuple[int, int], int] = {}
        self.slices = 0
        self.blocks_on: dict[int, int] = {}  # by page
        self.pages = 0

    def take(self, cls: int, group: int) -> int:
        free = self.free.setdefault((cls, group), [])
        if not free:
            size, start = self.sizes[cls], self.slices * SLICE
            self.slices += 1
            free.extend(range(start, start + SLICE - size + 1, size))
        address = heapq.heappop(free)
        for page in self._pages(address, cls):
            count = self.blocks_on.get(page, 0)
            self.blocks_on[page] = count + 1
            self.pages += count == 0
        return address

    def give(self, cls: int, group: int, address: int) -> None:
        heapq.heappush(self.free[cls, group], address)
        for page in self._pages(address, cls):
            self.blocks_on[page] -= 1
            self.pages -= self.blocks_on[page] == 0

    def _pages(self, address: int, cls: int) -> range:
        return range(address // PAGE, (address + self.sizes[cls] - 1) // PAGE + 1)


def pages_of(held: Any, cls: Any, group: Any, order: Any, sizes: list[int]) -> tuple[int, float]:
    """At their most, and on average over all calls."""
    pools = Pools(sizes)
    where: dict[int, int] = {}
    most, total = 0, 0
    groups, kinds = group.tolist(), cls.tolist()
    for at in order:
        if at >= 0:
            where[at] = pools.take(kinds[at], groups[at])
            most = max(most, pools.pages)
        else:
            pools.give(kinds[~at], groups[~at], where.pop(~at))
        total += pools.pages
    return most, total / max(len(order), 1)


def by_path(path: Any, lived: Any) -> Any:
    """Of each block the median lifetime of its call path's."""
    order = np.lexsort((lived, path))
    paths, first, count = np.unique(path[order], return_index=True, return_counts=True)
    median = lived[order][first + count // 2]
    return median[np.searchsorted(paths, path)]


def studied(recording: Path) -> Iterator[str]:
    found, _ = events.processes(recording)
    process = max(found, key=events.calls_of)
    calls, held = history(process)
    small = held.size <= MOST
    begin, end = held.begin[small], held.end[small]
    ended = end != NEVER
    sizes = [size for size in classes.sizes() if size <= MOST]
    cls = np.searchsorted(sizes, np.maximum(held.size[small], 1))
    lived = np.where(ended, end - begin, len(calls.kind))
    bounds = np.array(GROUPS) * len(calls.kind)
    number = np.arange(len(begin))
    moments = np.concatenate([begin, end[ended]])
    what = np.concatenate([number, ~number[ended]])
    order = what[np.argsort(moments * 2 + (what >= 0), kind="stable")].tolist()
    yield f"{process.name:14} {len(begin):>9,} blocks"
    one = pages_of(held, cls, np.zeros(len(begin), "i8"), order, sizes)
    yield f"{one[0] * PAGE / 2**20:8.1f} MiB"
    for measure in (by_path(held.path[small], lived), lived):
        group = np.searchsorted(bounds, measure)
        some = pages_of(held, cls, group, order, sizes)
        yield f"{some[0] / one[0]:7.3f} {some[1] / one[1]:7.3f}"


def main() -> None:
    print(f"{'':14} {'':>16}  one pool   by path: most, mean   by block: most, mean")
    for word in sys.argv[1:]:
        print("   ".join(studied(Path(word))), flush=True)


if __name__ == "__main__":
    main()
