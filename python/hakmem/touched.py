"""Which pages of large blocks a recorded process has touched. The recorder looks at some of the
blocks at a time, from outside; `hakmem replay` touches as many pages."""

from __future__ import annotations

import bisect
import os
import random
import time
from collections.abc import Sequence
from typing import Any

from hakmem.events import Process, looks
from hakmem.history import NEVER, Blocks, Events
from hakmem.recording import CALLOC, MALLOC, MORE, REALLOC, RESIZE, numpy

LEAST = 16 * 1024  # bytes of a block that is looked at
_EACH = 0.1  # s between looks
_SHARE = 20  # a look may take one part in so many of the time
_LONGEST = 0.02  # s of a look: where threads begin and end, the kernel lets it wait for each page
_MOST = 256  # blocks a look
_MOST_PAGES = 2**16  # of a block
_PAGE = os.sysconf("SC_PAGESIZE")
_HERE = 3 << 62  # in memory or swapped out


class Looks:
    """At one process. Freed blocks are forgotten when none of their pages is there: to look at one
    costs little, and who reads the recording knows that it was freed."""

    def __init__(self, pid: int) -> None:
        self.sizes: dict[int, int] = {}  # by address
        self.next = 0.0
        self.file: int | None
        try:
            self.file = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # it has ended, or is not ours to look at
            self.file = None

    def close(self) -> None:
        if self.file is not None:
            os.close(self.file)
            self.file = None

    @property
    def due(self) -> bool:
        return self.file is not None and time.monotonic() >= self.next

    def note(self, events: Any) -> None:
        """The large blocks that these allocate; not those of 4 GiB and more."""
        np = numpy()
        if self.file is None:
            return
        large = events[:, 1] >= LEAST << 32
        if not large.any():
            return
        more = np.flatnonzero(
            (events[:-1, 0] >> 44 & 7 == MORE) & (events[:-1, 1] & 2**32 - 1 != 0)
        )
        large[more + 1] = False
        some = events[large]
        kind = some[:, 0] >> 44 & 7
        some = some[np.isin(kind, (MALLOC, CALLOC, REALLOC, RESIZE))]
        addresses = (some[:, 0] & (2**44 - 1)) << 4
        self.sizes.update(zip(addresses.tolist(), (some[:, 1] >> 32).tolist(), strict=True))

    def look(self) -> list[tuple[int, int]]:
        """Addresses of blocks, and how many of their pages are there."""
        np = numpy()
        began = time.monotonic()
        found = []
        for address in self._chosen():
            if time.monotonic() - began > _LONGEST:
                break
            first = -(-address // _PAGE)
            all_of_it = (address + self.sizes[address]) // _PAGE - first
            pages = min(all_of_it, _MOST_PAGES)
            try:
                read = os.pread(self.file, 8 * pages, 8 * first) if self.file is not None else b""
            except OSError:
                break
            here = int(np.count_nonzero(np.frombuffer(read, dtype="<u8") & np.uint64(_HERE)))
            if here:
                found.append((address, here * all_of_it // pages))
            else:
                del self.sizes[address]
        took = time.monotonic() - began
        self.next = began + max(_EACH, took * _SHARE)
        return found

    def _chosen(self) -> list[int]:
        """All, or the largest ones and some others."""
        if len(self.sizes) <= _MOST:
            return list(self.sizes)
        addresses = sorted(self.sizes, key=self.sizes.__getitem__, reverse=True)
        half = _MOST // 2
        return addresses[:half] + random.sample(addresses[half:], half)


def touched(process: Process, calls: Events, held: Blocks) -> Any:
    """Of each block how many pages were touched, or -1: not known, and all is likely."""
    np = numpy()
    pages = np.full(len(held.begin), -1)
    large = np.flatnonzero(held.size >= LEAST)
    whole = _inner_pages(calls.address[held.begin[large]], held.size[large])
    most = np.full(len(large), -1)
    where: dict[int, list[int]] = {}
    for at, address in enumerate(calls.address[held.begin[large]].tolist()):
        where.setdefault(address, []).append(at)
    begins, ends = held.begin[large].tolist(), held.end[large].tolist()
    for moment, blocks in looks(process):
        now = int(np.searchsorted(calls.time, moment - process.facts["time"]))
        for address, count in blocks:
            i = _in_use(where.get(address, ()), begins, ends, now)
            if i is not None:
                most[i] = max(most[i], min(count, int(whole[i])))
    _spread(most, whole, held.path[large], held.size[large])
    pages[large] = most
    return pages


def _inner_pages(address: Any, size: Any) -> Any:
    return (address + size) // _PAGE - -(-address // _PAGE)


def _in_use(
    those: Sequence[int], begins: Sequence[int], ends: Sequence[int], now: int
) -> int | None:
    """Which of the blocks at one address was in use at a moment."""
    at = bisect.bisect_right(those, now, key=begins.__getitem__) - 1
    if at < 0 or (ends[those[at]] != NEVER and ends[those[at]] <= now):
        return None
    return those[at]


def _spread(most: Any, whole: Any, path: Any, size: Any) -> None:
    """Gives blocks that were not looked at as large a part as those of their call path had, or
    those of about their size."""
    np = numpy()
    part = most / np.maximum(whole, 1)
    for group in (path, np.log2(np.maximum(size, 1)).astype("i8")):
        missing = np.flatnonzero(most < 0)
        known = np.flatnonzero(part >= 0)
        if not len(missing) or not len(known):
            return
        parts = {
            int(one): float(np.quantile(part[known][group[known] == one], _TYPICAL))
            for one in np.intersect1d(group[known], group[missing])
        }
        for one, value in parts.items():
            those = missing[group[missing] == one]
            most[those] = np.round(value * whole[those])


_TYPICAL = 0.75  # many are looked at before all is written
