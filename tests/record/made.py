"""Recordings that a test makes itself, of a program that never ran: so it knows all that this
did, and counts it in the plainest way."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from hakmem.events import ADDRESS_BITS, PACKED
from hakmem.recording import (
    CALLOC,
    FREE,
    MALLOC,
    MORE,
    PATH,
    REALLOC,
    RESIZE,
    Chunks,
    Writer,
    numpy,
)

SHIFT = 2
TICKS = 10**6  # when the recording began
PATHS = 7
CHUNK = 16  # events of a chunk at most
ADDRESS = 2**ADDRESS_BITS - 1


@dataclass
class Block:
    size: int
    path: int
    thread: int
    time: int
    call: int  # the number of the call of its thread that made it


@dataclass
class Truth:
    """What is expected of `traced`. Figures by path are blocks and bytes."""

    calls: int = 0
    use: Counter[int] = field(default_factory=Counter)
    allocated: Counter[tuple[int, int]] = field(default_factory=Counter)
    brief: Counter[tuple[int, int]] = field(default_factory=Counter)
    flows: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    lives: list[tuple[int, int]] = field(default_factory=list)  # size, time
    unknown: int = 0
    early: int = 0
    threads: set[int] = field(default_factory=lambda: {1})
    # After each call: the time, bytes in use, and blocks and bytes by path.
    moments: list[tuple[int, int, dict[tuple[int, int], int]]] = field(default_factory=list)
    allocated_then: list[dict[tuple[int, int], int]] = field(default_factory=list)  # likewise


class Made:
    """Calls one after the other, by some threads. A thread that is slow fills a chunk in the whole
    time; the others' chunks come to the file as they are full."""

    def __init__(
        self, path: Path, seed: int, slow: tuple[int, ...] = (), often: float = 0.3
    ) -> None:
        self.chance = random.Random(seed)
        self.writer = Writer(path)
        self.slow = slow
        self.often = often  # a full chunk makes that all are written
        self.now = TICKS >> SHIFT
        self.live: dict[int, Block] = {}
        self.truth = Truth()
        self.of_thread: Counter[int] = Counter()
        self.open: dict[int, tuple[int, list[tuple[int, int]]]] = {}
        self.ready: list[tuple[int, int, list[tuple[int, int]]]] = []
        self.order = 0
        facts = {"process": 0, "pid": 7, "parent": 0, "command": ["made"]}
        facts |= {"tick_shift": SHIFT, "ticks": TICKS, "time": 0, "started": 1.5}
        self.writer.said(b"PROC", facts)
        for number in range(PATHS):
            self._put(1, [(number << 47 | PATH << 44, 3 << 32), (100 + number, 200), (300, 0)])

    # ---- what the program does ----

    def malloc(self, thread: int, address: int, size: int, path: int, kind: int = MALLOC) -> None:
        self._take(thread, address, size, path)
        self._call(thread, kind, address, size, path)

    def free(self, thread: int, address: int) -> None:
        self._give(thread, address, True)
        self._call(thread, FREE, address, 0, 0)

    def realloc(self, thread: int, address: int, to: int, size: int, path: int) -> None:
        self._give(thread, address, False)
        self._take(thread, to, size, path)
        if to == address:
            self._call(thread, RESIZE, to, size, path)
        else:
            self._call(thread, REALLOC, to, size, path, address)

    def early(self, thread: int, other: int, address: int, size: int, path: int) -> None:
        """One thread allocates a block and another frees it, whose clock is early."""
        self.truth.early += 1
        self.truth.lives.append((size, 0))
        self.truth.flows.update({(thread, other, 0): 1, (thread, other, 1): size})
        self._call(other, FREE, address, 0, 0)
        self.truth.allocated.update({(path, 0): 1, (path, 1): size})
        self._call(thread, MALLOC, address, size, path)

    def some(self, calls: int, threads: int, early: float = 0) -> None:
        """Calls at random; an address is used again and again. Of `early` blocks the free is noted
        too early."""
        chance = self.chance
        for _ in range(calls):
            thread = 1 + min(chance.randrange(threads * 5), threads - 1)
            thread = thread if thread not in self.slow or chance.random() < 0.02 else 1
            size, path = chance.choice((1, 50, 3000, 2**21, 5 << 30)), chance.randrange(PATHS)
            address = 16 * chance.randrange(1, 200)
            new = 16 * chance.randrange(1, 200)
            other = 1 + (thread - 1 + chance.randrange(2)) % min(threads, 2)
            if address not in self.live and other != thread and chance.random() < early:
                self.early(thread, other, address, size, path)
            elif address not in self.live:
                self.malloc(thread, address, size, path, chance.choice((MALLOC, CALLOC)))
                if chance.random() < 0.3:
                    self.free(thread, address)
            elif chance.random() < 0.2 and (new == address or new not in self.live):
                self.realloc(thread, address, new, size, path)
            else:
                self.free(thread, address)

    def end(self) -> Truth:
        for thread in sorted(self.open):
            self._close(thread)
        self._write()
        self.writer.said(b"DONE", {"process": 0, "time": 0, "lost": 0, "waited_ns": 0})
        self.writer.close()
        return self.truth

    def mark(self, name: str, thread: int = 1) -> None:
        self.now += 1
        self.line(thread, f"mark {name}")

    def name(self, of: int, name: str) -> None:
        """As a thread writes it at its end."""
        self.line(of, f"thread {of} {name}")

    def path(self, number: int, calls: list[int]) -> None:
        """Its addresses, from now on."""
        head = (number << 47 | PATH << 44, len(calls) << 32 | self.now & 2**32 - 1)
        rows = zip(calls[::2], [*calls[1::2], 0], strict=False)
        words = ((one & ADDRESS | one >> ADDRESS_BITS << 47, other) for one, other in rows)
        self._put(1, [head, *words])

    def line(self, thread: int, line: str) -> None:
        """Also those of the mappings: modules that were closed, functions of scripts."""
        text = line.encode()
        words = [int.from_bytes(text[at : at + PACKED], "little") for at in range(0, len(text), 7)]
        words += [0] * (len(words) % 2)
        low = self.now & 2**32 - 1
        first = (word & ADDRESS | word >> ADDRESS_BITS << 47 for word in words[::2])
        head = (PATH << 44, low | len(words) << 32)
        self._put(thread, [head, *zip(first, words[1::2], strict=True)])

    # ---- what is counted ----

    def _take(self, thread: int, address: int, size: int, path: int) -> None:
        truth = self.truth
        call = self.of_thread[thread] + 1
        self.live[address] = Block(size, path, thread, self.now + 1, call)
        truth.allocated.update({(path, 0): 1, (path, 1): size})

    def _give(self, thread: int, address: int, is_free: bool) -> None:
        truth = self.truth
        block = self.live.pop(address, None)
        if block is None:
            truth.unknown += 1
            return
        truth.lives.append((block.size, self.now + 1 - block.time))
        if is_free and thread == block.thread and block.call == self.of_thread[thread]:
            truth.brief.update({(block.path, 0): 1, (block.path, 1): block.size})
        if is_free and thread != block.thread:
            truth.flows.update({(block.thread, thread, 0): 1})
            truth.flows.update({(block.thread, thread, 1): block.size})

    def _call(
        self, thread: int, kind: int, address: int, size: int, path: int, former: int = 0
    ) -> None:
        self.now += 1
        self.of_thread[thread] += 1
        self.truth.calls += 1
        self.truth.threads.add(thread)
        events = []
        if former or size >= 2**32:
            events.append((former >> 4 | MORE << 44, size >> 32))
        low = self.now & 2**32 - 1
        events.append((address >> 4 | kind << 44 | path << 47, low | (size & 2**32 - 1) << 32))
        self._put(thread, events)
        use: dict[tuple[int, int], int] = defaultdict(int)
        for block in self.live.values():
            use[block.path, 0] += 1
            use[block.path, 1] += block.size
        total = sum(block.size for block in self.live.values())
        self.truth.allocated_then.append(dict(self.truth.allocated))
        self.truth.moments.append((self.now - (TICKS >> SHIFT), total, dict(use)))

    # ---- what is written ----

    def _put(self, thread: int, events: list[tuple[int, int]]) -> None:
        if thread in self.open and len(self.open[thread][1]) + len(events) > CHUNK:
            self._close(thread)
        self.open.setdefault(thread, (self.now, []))[1].extend(events)

    def _close(self, thread: int) -> None:
        begun, events = self.open.pop(thread)
        self.ready.append((thread, begun, events))
        if self.chance.random() < self.often:
            self._write()

    def _write(self) -> None:
        np = numpy()
        ready, self.ready = sorted(self.ready, key=lambda one: one[1]), []
        if not ready:
            return
        words = np.array([event for one in ready for event in one[2]], dtype="<u8")
        ticks = np.array([one[1] << SHIFT for one in ready], dtype="<u8")
        orders = np.arange(self.order, self.order + len(ready), dtype="<u8")
        self.order += len(ready)
        threads = np.array([one[0] for one in ready], dtype="<u4")
        counts = np.array([len(one[2]) for one in ready], dtype="<u4")
        self.writer.events(0, Chunks(threads, counts, orders, ticks, ticks - TICKS, words))
