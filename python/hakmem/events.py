"""What a recording says of a process: its calls in one order, a window of them at a time.

A file has chunks of events in the order in which they were taken from the process. A chunk of a
thread that allocates seldom comes long after others of its time. So the file is read twice: the
first time for where each block of events is and which times it has; then `windows` knows up to
which time all calls are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hakmem.recording import FREE, MORE, PATH, Chunks, NoRecording, Reader, numpy

WINDOW_BITS = 19
WINDOW = 2**WINDOW_BITS  # calls at most
LATE = 2**20  # events that came in between make a chunk late
LATE_A_THREAD = 1024
PATHS = 2**17  # call paths that a recording can number
FRAMES = 510  # of a path, at most
_ADDRESS = 2**44 - 1
_ADDRESS_SPACE = 2**47
_NEVER = 2**63 - 1


@dataclass
class Part:
    """A block of events in the file."""

    at: int
    count: int
    first: int  # ticks of the earliest one, without late chunks
    kept: Any  # which chunks are not late, or none of them is


@dataclass
class Process:
    """As the recorder found it."""

    number: int
    facts: dict[str, Any]
    file: Path
    maps: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    late: list[tuple[int, Chunks]] = field(default_factory=list)  # with the ticks of the first
    last: int = 0  # ticks of the last event
    clocks: tuple[int, int] | None = None  # ticks and time of the last chunk
    # When the recorder looked, in ns, and of some blocks the address and the pages there.
    looks: list[tuple[int, list[tuple[int, int]]]] = field(default_factory=list)
    done: dict[str, Any] | None = None  # None: the recording was cut off
    scale: float = 1.0  # ns for each unit of an event's time
    paths: dict[int, Any] = field(default_factory=dict)  # addresses, the innermost first
    threads: dict[int, int] = field(default_factory=dict)  # each one's place among them

    @property
    def name(self) -> str:
        words: list[str] = self.facts["command"]
        return Path(words[0]).name if words else f"process {self.facts['pid']}"

    @property
    def begun(self) -> int:
        return int(self.facts["ticks"]) >> int(self.facts["tick_shift"])

    @property
    def end(self) -> int:
        """ns from the begin to the last event."""
        return int((self.last - self.begun) * self.scale) if self.parts else 0

    def path(self, number: int) -> tuple[int, ...]:
        found = self.paths.get(number)
        return () if found is None else tuple(found.tolist())


def processes(path: Path) -> tuple[list[Process], bool]:
    """And whether the file is whole. Raises NoRecording."""
    reader = Reader(path)
    found: dict[int, Process] = {}
    indices: dict[int, _Index] = {}
    for block in reader:
        if block.kind == b"PROC":
            found[block.process] = process = Process(block.process, block.facts, path)
            indices[block.process] = _Index(process)
            continue
        process = found.get(block.process)
        if process is None:
            raise NoRecording(f"{path}: damaged: it has events of a process that it does not name")
        if block.kind == b"MAPS":
            process.maps.append(block.facts["maps"])
        elif block.kind == b"SEEN":
            process.looks.append((block.facts["time"], block.facts["blocks"]))
        elif block.kind == b"DONE":
            process.done = block.facts
        elif block.chunks is not None:
            indices[block.process].add(block.at, block.chunks)
    _give_scale(found.values())
    return list(found.values()), reader.whole


class _Index:
    """Notes where events are, and keeps chunks that are late."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.events = 0
        self.ends: list[tuple[int, int]] = []  # of recent blocks: events up to there, latest time
        self.settled = 0  # what began before this is late
        self.threads: set[int] = set()

    def add(self, at: int, chunks: Chunks) -> None:
        np = numpy()
        process = self.process
        first, last = _spans(chunks, process.facts["tick_shift"])
        self.threads.update(np.unique(chunks.threads).tolist())
        late = first < self._settled()
        if late.any():
            for one in np.flatnonzero(late).tolist():
                process.late.append((int(first[one]), _some(chunks, np.arange(len(late)) == one)))
        earliest = int(first[~late].min(initial=_NEVER))
        kept = ~late if late.any() else None
        process.parts.append(Part(at, len(chunks.events), earliest, kept))
        process.last = max(process.last, int(last.max(initial=0)))
        if len(chunks.times):
            process.clocks = int(chunks.ticks[-1]), int(chunks.times[-1])
        self.events += len(chunks.events)
        self.ends.append((self.events, process.last))

    def _settled(self) -> int:
        """The latest time of blocks that are so long ago that none of their calls is to wait."""
        most = max(LATE, LATE_A_THREAD * len(self.threads))
        while self.ends and self.ends[0][0] < self.events - most:
            self.settled = self.ends.pop(0)[1]
        return self.settled


def _some(chunks: Chunks, which: Any) -> Chunks:
    np = numpy()
    events = np.repeat(which, chunks.counts)
    columns = chunks.threads, chunks.counts, chunks.orders, chunks.ticks, chunks.times
    return Chunks(*(column[which] for column in columns), chunks.events[events])


def calls_of(process: Process) -> int:
    """About how many; quick."""
    return sum(part.count for part in process.parts)


def chosen(found: list[Process], pid: int | None, file: Path) -> Process:
    """The process with this PID, or that with most calls. Raises NoRecording."""
    some = [one for one in found if pid is None or one.facts["pid"] == pid]
    if not some:
        raise NoRecording(f"{file}: has no process" + (f" {pid}" if pid else ""))
    return max(some, key=calls_of)


def _give_scale(found: Iterable[Process]) -> None:
    """ns for each unit of an event's time, by both clocks of the start and of the last chunk, where
    most time is between these."""
    longest, scale = 0, 1.0
    for process in found:
        if process.clocks is not None:
            ticks = process.clocks[0] - process.facts["ticks"]
            time = process.clocks[1] - process.facts["time"]
            if time > longest and ticks > 0:
                longest, scale = time, time / ticks
    for process in found:
        process.scale = scale * 2 ** process.facts["tick_shift"]


# ---- times ----


def _spans(chunks: Chunks, shift: int) -> tuple[Any, Any]:
    """Ticks of the earliest and of the latest event of each chunk; of one without any, as if they
    were never and at no time."""
    np = numpy()
    timed, counts = _timed(chunks)
    time = _times(chunks, timed, counts, shift)
    first = np.full(len(counts), _NEVER)
    last = np.zeros(len(counts), dtype="i8")
    some = np.flatnonzero(counts)
    if len(some):
        begins = (np.cumsum(counts) - counts)[some]
        first[some] = np.minimum.reduceat(time, begins)
        last[some] = np.maximum.reduceat(time, begins)
    return first, last


def _kinds(chunks: Chunks) -> Any:
    return (chunks.events.view("u1").reshape(-1, 16)[:, 5] >> 4) & 7


def _timed(chunks: Chunks) -> tuple[Any, Any]:
    """Which events have a time, and how many of each chunk."""
    np = numpy()
    kind = _kinds(chunks)
    timed = (kind != 0) & (kind != MORE)
    before = np.append(0, np.cumsum(timed))
    ends = np.cumsum(chunks.counts, dtype="i8")
    return timed, before[ends] - before[ends - chunks.counts]


def _times(chunks: Chunks, timed: Any, counts: Any, shift: int) -> Any:
    """Ticks of the events that have a time. An event has the lower half, and follows the one before
    it, or the begin of its chunk, by less than half of what that can express."""
    np = numpy()
    low = chunks.events.view("<u4").reshape(-1, 4)[timed, 2]
    steps = np.zeros(len(low), dtype="i8")
    steps[1:] = np.diff(low).view("<i4")
    sums = np.cumsum(steps)
    some = np.flatnonzero(counts)
    first = (np.cumsum(counts) - counts)[some]
    begun = (chunks.ticks[some] >> shift).astype("i8")
    since = (low[first] - begun.astype("<u4")).view("<i4")
    return sums + np.repeat(begun + since - sums[first], counts[some])


# ---- calls ----


@dataclass
class Calls:
    """In the order in which they took effect: an element of each array for each call."""

    what: Any  # the first word of its event: the functions below
    extra: Any  # that of an event before it which belongs to it, or 0
    size: Any
    time: Any  # ns since the recording began; ticks while windows are made
    thread: Any  # its place in process.threads

    def __len__(self) -> int:
        return len(self.what)

    def part(self, which: Any) -> Calls:
        return Calls(*(getattr(self, name)[which] for name in _COLUMNS))

    @property
    def kind(self) -> Any:
        return (self.what >> 44 & 7).astype("u1")

    @property
    def grain(self) -> Any:
        """The address of the block, in units of 16 bytes; 0 where the call failed."""
        return self.what & _ADDRESS

    @property
    def former(self) -> Any:
        """Likewise of the block that realloc got, if the block moved, or 0."""
        return self.extra & _ADDRESS

    @property
    def path(self) -> Any:
        return (self.what >> 47).astype("i8")

    @property
    def align(self) -> Any:
        """Its logarithm, or 0."""
        return (self.extra >> 47).astype("u1")


_COLUMNS = "what", "extra", "size", "time", "thread"


def _joined(parts: list[Calls]) -> Calls:
    np = numpy()
    if len(parts) == 1:
        return parts[0]
    return Calls(*(np.concatenate([getattr(one, name) for one in parts]) for name in _COLUMNS))


def windows(process: Process) -> Iterator[Calls]:
    """All calls, in the order of time. Gives process.paths and process.threads what it finds.
    Raises NoRecording."""
    np = numpy()
    parts = process.parts
    late = sorted(process.late, key=lambda one: one[0])
    firsts = np.array([*(part.first for part in parts), _NEVER])
    limits = np.minimum.accumulate(firsts[::-1])[::-1][1:].tolist()  # what comes later is later
    pool = []
    count, most = 0, WINDOW
    read = Reader(process.file).events(part.at for part in parts)
    for part, chunks, limit in zip(parts, read, limits, strict=True):
        kept = chunks if part.kept is None else _some(chunks, part.kept)
        pool.append(_calls(process, kept))
        count += len(pool[-1])
        while late and late[0][0] < limit:
            pool.append(_calls(process, late.pop(0)[1]))
            count += len(pool[-1])
        if count < most and part is not parts[-1]:
            continue
        calls = _joined(pool)
        ready = calls.time < limit
        whole = bool(ready.all())
        pool = [] if whole else [calls.part(~ready)]
        yield from _cut(process, calls if whole else calls.part(ready))
        count = 0 if whole else len(pool[0])
        most = count + WINDOW


def _cut(process: Process, calls: Calls) -> Iterator[Calls]:
    """In order, and in parts that are not too long."""
    if (calls.time[1:] < calls.time[:-1]).any():
        calls = calls.part(_order(calls.time))
    calls.time = ((calls.time - process.begun) * process.scale).astype("i8")
    for at in range(0, len(calls), WINDOW):
        yield calls.part(slice(at, at + WINDOW))


def _order(time: Any) -> Any:
    """As a stable sort; numbers that fit a word are sorted faster."""
    np = numpy()
    least, bits = int(time.min()), len(time).bit_length()
    if (int(time.max()) - least) >> (63 - bits):
        return np.argsort(time, kind="stable")
    key = (time - least << bits) + np.arange(len(time))
    key.sort()
    return key & (1 << bits) - 1


def _calls(process: Process, chunks: Chunks) -> Calls:
    """With times in ticks."""
    np = numpy()
    timed, counts = _timed(chunks)
    time = _times(chunks, timed, counts, process.facts["tick_shift"])
    kind = _kinds(chunks)
    is_path = kind == PATH
    if is_path.any():
        process.paths.update(_paths(chunks.events, np.flatnonzero(is_path)))
        time = time[~is_path[timed]]
    call = timed & ~is_path
    places = [process.threads.setdefault(one, len(process.threads)) for one in chunks.threads.tolist()]
    thread = np.repeat(np.array(places, dtype="u4"), chunks.counts)[call]
    what, size = chunks.events[call, 0], chunks.events[call, 1] >> 32
    extra = np.zeros(len(what), dtype="u8")
    more = np.flatnonzero(kind[:-1] == MORE)
    more = more[call[more + 1]]
    if len(more):
        at = np.cumsum(call)[more + 1] - 1
        extra[at] = chunks.events[more, 0]
        size[at] |= (chunks.events[more, 1] & 2**32 - 1) << 32
    if (size[what & _ADDRESS != 0] >= _ADDRESS_SPACE).any():
        raise NoRecording(
            f"{process.file}: damaged: it has a block that no address space holds"
        )
    return Calls(what, extra, size.astype("i8"), time, thread)


def _paths(events: Any, at: Any) -> Iterator[tuple[int, Any]]:
    np = numpy()
    what, when = events[:, 0], events[:, 1]
    numbers = (what[at] >> 47).tolist()
    counts = np.minimum(when[at] >> 32, FRAMES).tolist()
    for begin, number, count in zip((at + 1).tolist(), numbers, counts, strict=True):
        rows = events[begin : begin + (count + 1) // 2].copy()
        rows[:, 0] = rows[:, 0] & _ADDRESS | rows[:, 0] >> 47 << 44
        yield number, rows.reshape(-1)[:count]
