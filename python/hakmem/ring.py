"""The ring of a recorded process: a file in which the process writes events, as src/record/ring.h
describes it. The recorder takes full chunks out of it."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakmem.recording import Chunks, numpy

MAGIC = b"hakmem-r"
FORMAT = 1
AT_WORK, ENDING, ENDED = 1, 2, 3
FREE, FILLING, FULL = 0, 1, 2
CHUNK_EVENTS = 256

_HEAD = [
    ("magic", "S8"), ("format", "<u4"), ("state", "<u4"), ("chunks", "<u4"), ("chunks_at", "<u4"),
    ("events_at", "<u4"), ("tick_shift", "<u4"), ("process", "<u4"), ("parent", "<u4"),
    ("ticks", "<u8"), ("time", "<u8"), ("order", "<u8"), ("lost", "<u8"), ("waits", "<u8"),
    ("waited", "<u8"), ("pad", "S40"),
    ("beats", "<u8"), ("seen", "<u4"), ("stop", "<u4"),
]  # fmt: skip
_CHUNK = [
    ("state", "<u4"), ("events", "<u4"), ("thread", "<u4"), ("unused", "<u4"), ("order", "<u8"),
    ("ticks", "<u8"), ("time", "<u8"), ("pad", "S24"),
]  # fmt: skip


class NoRing(Exception):
    """It is not there yet, or it is none."""


@dataclass
class Ring:
    path: Path
    process: int
    parent: int
    tick_shift: int
    ticks: int
    time: int
    head: Any
    chunks: Any
    events: Any

    @property
    def state(self) -> int:
        return int(self.head["state"][0])

    def beat(self) -> None:
        """The recorder lives."""
        self.head["beats"][0] += 1

    def see(self, state: int) -> None:
        self.head["seen"][0] = state

    def stop(self) -> None:
        self.head["stop"][0] = 1

    def unfinished(self) -> Any:
        """The events of chunks that are not full yet; they stay."""
        np = numpy()
        at = np.flatnonzero(self.chunks["state"] == FILLING)
        counts = np.minimum(self.chunks["events"][at], CHUNK_EVENTS)
        return self.events[at][np.arange(CHUNK_EVENTS) < counts[:, None]]

    def take(self, all_of_it: bool = False) -> Chunks | None:
        """What is full, in the order in which it was begun; at the end all that is there."""
        np = numpy()
        state = self.chunks["state"]
        at = np.flatnonzero(state != FREE if all_of_it else state == FULL)
        if not len(at):
            return None
        at = at[np.argsort(self.chunks["order"][at])]
        described = self.chunks[at]
        counts = np.minimum(described["events"], CHUNK_EVENTS)
        events = self.events[at]
        if (counts == CHUNK_EVENTS).all():
            events = events.reshape(-1, 2)
        else:
            events = events[np.arange(CHUNK_EVENTS) < counts[:, None]]
        taken = Chunks(
            described["thread"].copy(),
            counts.astype("<u4"),
            described["order"].copy(),
            described["ticks"].copy(),
            described["time"].copy(),
            events,
        )
        self.chunks["state"][at] = FREE
        return taken


def open_ring(path: Path) -> Ring:
    """Raises NoRing, OSError."""
    np = numpy()
    with path.open("r+b") as file:
        length = os.fstat(file.fileno()).st_size
        if length < 4096:
            raise NoRing
        memory = mmap.mmap(file.fileno(), length)
    head = np.frombuffer(memory, dtype=_HEAD, count=1)
    if head["magic"][0] != MAGIC or head["format"][0] != FORMAT:
        raise NoRing
    count, chunks_at, events_at = (int(head[k][0]) for k in ("chunks", "chunks_at", "events_at"))
    if events_at + count * CHUNK_EVENTS * 16 > length or chunks_at + count * 64 > events_at:
        raise NoRing
    chunks = np.frombuffer(memory, dtype=_CHUNK, count=count, offset=chunks_at)
    events = np.frombuffer(memory, dtype="<u8", count=count * CHUNK_EVENTS * 2, offset=events_at)
    events = events.reshape(count, CHUNK_EVENTS, 2)
    fields = {
        name: int(head[name][0]) for name in ("process", "parent", "tick_shift", "ticks", "time")
    }
    return Ring(path=path, head=head, chunks=chunks, events=events, **fields)


def rings(folder: Path, known: set[str]) -> Iterator[Ring]:
    """Those that are new, in the order in which a process made its own."""
    found = []
    for path in folder.iterdir():
        if path.name not in known and re.fullmatch(r"[0-9]+\.[0-9]+", path.name):
            try:
                found.append((int(path.name.partition(".")[2]), open_ring(path)))
            except (NoRing, OSError, ValueError):  # not yet
                continue
            known.add(path.name)
    yield from (ring for _, ring in sorted(found, key=lambda one: one[0]))
