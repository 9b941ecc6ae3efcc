"""The ring of a recorded process: a file in which the process writes events, as src/record/ring.h
describes it. The recorder takes full chunks out of it."""

from __future__ import annotations

import mmap
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakmem.recording import PATH, Chunks, numpy

MAGIC = b"hakmem-r"
FORMAT = 1
AT_WORK, ENDING, ENDED = 1, 2, 3
FREE, FILLING, FULL = 0, 1, 2
CHUNK_EVENTS = 256
HEAD_BYTES, COMMAND_AT = 4096, 1024

_HEAD = [
    ("magic", "S8"), ("format", "<u4"), ("state", "<u4"), ("chunks", "<u4"), ("chunks_at", "<u4"),
    ("events_at", "<u4"), ("tick_shift", "<u4"), ("process", "<u4"), ("parent", "<u4"),
    ("ticks", "<u8"), ("time", "<u8"), ("order", "<u8"), ("lost", "<u8"), ("waits", "<u8"),
    ("waited", "<u8"), ("chunks_most", "<u4"), ("growing", "<u4"), ("pad", "S32"),
    ("beats", "<u8"), ("seen", "<u4"), ("stop", "<u4"),
]  # fmt: skip
_CHUNK = [
    ("state", "<u4"), ("events", "<u4"), ("thread", "<u4"), ("unused", "<u4"), ("order", "<u8"),
    ("ticks", "<u8"), ("time", "<u8"), ("pad", "S24"),
]  # fmt: skip


class NoRing(Exception):
    """It is not there yet, or it is none."""


class Gathered:
    """What was taken out of a ring, with room for so many chunks."""

    def __init__(self, chunks: int) -> None:
        self.room = numpy().empty((chunks, CHUNK_EVENTS, 2), dtype="<u8")
        self.events = self.room.reshape(-1, 2)
        self.used = 0  # events
        self.seen = 0  # of which the recorder has looked at so many
        self.described: list[Any] = []

    @property
    def room_left(self) -> int:
        """Chunks."""
        return (len(self.events) - self.used) // CHUNK_EVENTS

    def add(self, ring: Ring, at: Any) -> None:
        """Chunks of the ring."""
        np = numpy()
        described = ring.chunks[at]
        described["events"] = counts = np.minimum(described["events"], CHUNK_EVENTS)
        first = 0
        for last in [*np.flatnonzero(counts < CHUNK_EVENTS), len(at) - 1]:
            run = at[first : last + 1]  # all but the last one are full
            if len(run):
                room = self.events[self.used :][: len(run) * CHUNK_EVENTS]
                ring.events.take(run, 0, room.reshape(-1, CHUNK_EVENTS, 2), "clip")
                self.used += int(counts[first : last + 1].sum())
            first = last + 1
        self.described.append(described)

    def new(self) -> Any:
        """The events since the last call."""
        events = self.events[self.seen : self.used]
        self.seen = self.used
        return events

    def chunks(self) -> Chunks:
        """All, until more are added: then there are none in it."""
        described = numpy().concatenate(self.described)
        threads, counts, orders, ticks, times = (
            described[name] for name in ("thread", "events", "order", "ticks", "time")
        )
        gathered = Chunks(threads, counts, orders, ticks, times, self.events[: self.used])
        self.described = []
        self.used = self.seen = 0
        return gathered


def has_paths(events: Any) -> bool:
    """Whether any of the events is a new call path."""
    return bool((events.view("u1")[:, 5] & 0x70 == PATH << 4).any())


@dataclass
class Ring:
    path: Path
    process: int
    parent: int
    tick_shift: int
    ticks: int
    time: int
    command: bytes  # its first words, as /proc/PID/cmdline has them
    head: Any
    chunks: Any
    events: Any

    def __post_init__(self) -> None:
        self._look_again()

    def _look_again(self) -> None:
        self.beats = self.head["beats"]
        self.states = self.head["state"]
        self.orders = self.head["order"]
        self.taken = -1  # chunks that had begun when all full ones were taken

    @property
    def command_is_cut(self) -> bool:
        return len(self.command) == HEAD_BYTES - COMMAND_AT

    @property
    def state(self) -> int:
        return int(self.states[0])

    @property
    def is_quiet(self) -> bool:
        """No chunk has begun since all full ones were taken; but an ending thread may leave one."""
        return int(self.orders[0]) == self.taken

    def beat(self) -> None:
        """The recorder lives."""
        self.beats[0] += 1

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

    @property
    def all_is_seen(self) -> bool:
        return int(self.head["chunks"][0]) == len(self.chunks)

    def _follow(self) -> None:
        """The process may have made its ring larger."""
        if not self.all_is_seen:
            with suppress(NoRing, OSError):
                now = open_ring(self.path)
                self.head, self.chunks, self.events = now.head, now.chunks, now.events
                self._look_again()

    def full(self, all_of_it: bool = False) -> Any:
        """Which chunks are, in the order in which they were begun; at the end all that are used."""
        np = numpy()
        self._follow()
        begun = int(self.orders[0])
        state = self.chunks["state"]
        at = np.flatnonzero(state != FREE if all_of_it else state == FULL)
        self.taken = begun
        return at[np.argsort(self.chunks["order"][at])]

    def take(self, at: Any, into: Gathered) -> None:
        """Chunks for which there is room."""
        into.add(self, at)
        self.chunks["state"][at] = FREE


def open_ring(path: Path) -> Ring:
    """Raises NoRing, OSError."""
    np = numpy()
    if not os.access(path, os.R_OK | os.W_OK):
        path.chmod(0o600)  # the program's umask may keep even its own user out
    with path.open("r+b") as file:
        length = os.fstat(file.fileno()).st_size
        if length < HEAD_BYTES:
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
    command = memory[COMMAND_AT:HEAD_BYTES].rstrip(b"\0")
    return Ring(path=path, command=command, head=head, chunks=chunks, events=events, **fields)


class Folder:
    """Where processes make their rings."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self.known: set[str] = set()
        self.changed = 0  # the folder's time
        self.since = 0.0  # when that was seen first
        self.listed = 0.0
        self.complete = False

    def close(self) -> None:
        os.close(self.descriptor)

    def new(self) -> Iterator[Ring]:
        """In the order in which a process made its own."""
        changed, now = os.fstat(self.descriptor).st_mtime_ns, time.monotonic()
        if changed != self.changed:
            self.changed, self.since = changed, now
        elif self.complete and self.listed - self.since > _CLOCK_EXACT:
            return
        self.listed, self.complete = now, True
        found = []
        for path in self.path.iterdir():
            if path.name not in self.known and re.fullmatch(r"[0-9]+\.[0-9]+", path.name):
                try:
                    found.append((int(path.name.partition(".")[2]), open_ring(path)))
                except (NoRing, OSError, ValueError):  # not yet
                    self.complete = False
                    continue
                self.known.add(path.name)
        yield from (ring for _, ring in sorted(found, key=lambda one: one[0]))


_CLOCK_EXACT = 0.05  # seconds; two changes of a folder within less may have the same time
