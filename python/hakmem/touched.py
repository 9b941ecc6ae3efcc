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

_PAGE = os.sysconf("SC_PAGESIZE")
LEAST = max(16 * 1024, 2 * _PAGE)  # bytes of a block that is looked at
_EACH = 0.1  # s between looks
_SHARE = 20  # a look may take one part in so many of the time
_LONGEST = 0.02  # s of a look: where threads begin and end, the kernel lets it wait for each page
_MOST = 256  # blocks a look
_MOST_EMPTY = 32  # blocks without a page, which may have been freed
_MOST_PAGES = 2**16  # of a block; of a larger one so many, in so many pieces
_PIECES = 256
_HERE = 3 << 62  # in memory or swapped out


class Looks:
    """At one process. Blocks are forgotten when none of their pages is there, but for the largest:
    to look at a freed one costs little, and who reads the recording knows that it was freed."""

    def __init__(self, pid: int) -> None:
        self.sizes: dict[int, int] = {}  # by address
        self.empty: set[int] = set()  # those of which no page was there at the last look
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
        """The large blocks that these allocate."""
        np = numpy()
        if self.file is None:
            return
        large = events[:, 1] >= LEAST << 32
        more = np.flatnonzero(events.view("u1")[:-1, 5] & 0x70 == MORE << 4)
        upper = events[more, 1] << 32  # of the bytes of the event behind
        large[more + 1] |= upper != 0
        if not large.any():
            return
        at = np.flatnonzero(large)
        sizes = events[at, 1] >> 32
        kept = large[more + 1]
        sizes[np.searchsorted(at, more[kept] + 1)] |= upper[kept]
        taken = np.isin(events[at, 0] >> 44 & 7, (MALLOC, CALLOC, REALLOC, RESIZE))
        addresses = ((events[at[taken], 0] & (2**44 - 1)) << 4).tolist()
        self.sizes.update(zip(addresses, sizes[taken].tolist(), strict=True))
        self.empty.difference_update(addresses)

    def look(self) -> list[tuple[int, int]]:
        """Addresses of blocks, and how many of their pages are there."""
        began = time.monotonic()
        found = []
        for address in self._chosen():
            if time.monotonic() - began > _LONGEST:
                break
            try:
                here = self._pages(address)
            except OSError:
                break
            if here or address not in self.empty:
                found.append((address, here))
            if here:
                self.empty.discard(address)
            else:
                self.empty.add(address)
        self._forget()
        took = time.monotonic() - began
        self.next = began + max(_EACH, took * _SHARE)
        return found

    def _pages(self, address: int) -> int:
        """How many are there; of a large block about. Raises OSError."""
        np = numpy()
        first = -(-address // _PAGE)
        all_of_it = (address + self.sizes[address]) // _PAGE - first
        pieces = 1 if all_of_it <= _MOST_PAGES else _PIECES
        length = min(all_of_it, _MOST_PAGES // pieces)
        here = 0
        for piece in range(pieces):
            at = first + (all_of_it - length) * piece // max(pieces - 1, 1)
            read = os.pread(self.file, 8 * length, 8 * at) if self.file is not None else b""
            here += int(np.count_nonzero(np.frombuffer(read, dtype="<u8") & np.uint64(_HERE)))
        return here * all_of_it // (pieces * length)

    def _forget(self) -> None:
        for address in sorted(self.empty, key=self.sizes.__getitem__)[:-_MOST_EMPTY]:
            self.empty.discard(address)
            del self.sizes[address]

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
        last = int(np.searchsorted(calls.time, moment - process.facts["time"])) - 1  # call before
        for address, count in blocks:
            i = _in_use(where.get(address, ()), begins, ends, last)
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
