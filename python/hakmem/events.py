"""What a recording says of a process: its calls in one order, a window of them at a time.

A file has chunks of events in the order in which they were taken from the process. A chunk of a
thread that allocates seldom comes long after others of its time. So the file is read twice: the
first time for where each block of events is and which times it has; then `windows` knows up to
which time all calls are there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hakmem import heap_profile
from hakmem.perf_map import PerfMap
from hakmem.recording import MORE, PATH, Chunks, Head, NoRecording, Reader, Words, numpy

ADDRESS_BITS = 44  # of a block, without the lowest 4
WINDOW = 2**19  # calls at most
WINDOW_LEAST = 2**18  # but for the last ones
LATE = 2**20  # events that came in between make a chunk late
LATE_A_THREAD = 1024
LAST = 2**19  # events that a ring has
FRAMES = 510  # of a path, at most
PACKED = 7  # bytes of text in an address
PATHS_MOST = 2**17  # call paths of a process
_ADDRESS = 2**ADDRESS_BITS - 1
ADDRESS_SPACE = 2**47
_NEVER = 2**63 - 1


@dataclass
class Part:
    """A block of events in the file."""

    at: int
    count: int
    first: int  # ticks when the earliest chunk that is not late was begun
    late: Any  # which chunks are; None where none is


@dataclass
class Late:
    """Chunks of a block that come long after others of their time."""

    first: int  # ticks when the earliest was begun
    chunks: Chunks  # these


@dataclass
class Process:
    """As the recorder found it."""

    number: int
    facts: dict[str, Any]
    file: Path
    maps: dict[str, str] = field(default_factory=dict)  # the latest line of /proc/PID/maps by begin
    parts: list[Part] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
    # What the program marked: times as in Calls, and names; known when all calls were read.
    marks: dict[tuple[int, str], None] = field(default_factory=dict)
    last: int = 0  # ticks when the last chunk was begun
    clocks: tuple[int, int] | None = None  # ticks and time of the last chunk
    looks: list[int] = field(default_factory=list)  # where in the file those at pages are
    done: dict[str, Any] | None = None  # None: the recording was cut off
    scale: float = 1.0  # ns for each unit of an event's time
    since: float = 0.0  # seconds from the recording's begin to that of this process
    # The addresses of call paths as they are in the file, 8 bytes each, the innermost first.
    paths: dict[int, bytes] = field(default_factory=dict)
    first: dict[int, int] = field(
        default_factory=dict
    )  # when each path was first seen, as in Calls
    made: PerfMap | None = None  # names of code that is in no file
    notes: list[str] = field(default_factory=list)  # why such names are missing
    threads: dict[int, int] = field(default_factory=dict)  # each one's place among them
    names: dict[str, str] = field(default_factory=dict)  # of threads, by their numbers

    @property
    def name(self) -> str:
        words: list[str] = self.facts["command"]
        return Path(words[0]).name if words else f"process {self.facts['pid']}"

    @property
    def begun(self) -> int:
        return int(self.facts["ticks"]) >> int(self.facts["tick_shift"])

    def seconds(self, time: float) -> float:
        """Since the recording began, of a time as in Calls."""
        return self.since + time * self.scale / 1e9

    def units(self, seconds: float) -> float:
        """The other way round."""
        return (seconds - self.since) * 1e9 / self.scale

    def path(self, number: int) -> tuple[int, ...]:
        """Of code that is in no file, addresses that tell which functions these were then."""
        path = tuple(numpy().frombuffer(self.paths.get(number, b""), dtype="<u8").tolist())
        if self.made is None or number not in self.first:
            return path
        time = self.facts["time"] + self.first[number] * self.scale
        return tuple(self.made.told_apart(call, time) for call in path)


def processes(path: Path) -> tuple[list[Process], bool]:
    """And whether the file is whole. Raises NoRecording."""
    reader = Reader(path)
    found: dict[int, Process] = {}
    indices: dict[int, _Index] = {}
    for block in reader:
        if block.kind == b"PROC":
            found[block.process] = Process(block.process, block.facts, path)
            indices[block.process] = _Index(found[block.process])
            continue
        process = found.get(block.process)
        if process is None:
            raise NoRecording(f"{path}: damaged: it has events of a process that it does not name")
        if block.kind == b"MAPS":
            lines = block.facts["maps"].removesuffix("\n").split("\n")
            process.maps.update((line.partition("-")[0], line) for line in lines)
        elif block.kind == b"SEEN":
            process.looks.append(block.at)
        elif block.kind == b"DONE":
            process.done = {name: one for name, one in block.facts.items() if isinstance(one, int)}
            process.names |= block.facts.get("threads", {})
        elif block.head is not None:
            indices[block.process].add(block.at, block.head)
    _give_clocks(found.values())
    _give_maps(found.values())
    return list(found.values()), reader.whole


SUFFIX = ".recording"


def recordings(paths: Sequence[Path]) -> tuple[list[Process], list[Path]]:
    """The processes of all files, and of those in folders; and which files are not whole. Times are
    since the first recording began. Raises NoRecording."""
    found: list[tuple[float, Process]] = []
    cut = []
    for file in [one for path in paths for one in _files(path)]:
        some, whole = processes(file)
        began = min((process.facts.get("started", 0.0) for process in some), default=0.0)
        found += [(began, process) for process in some]
        cut += [] if whole else [file]
    first = min((began for began, _ in found), default=0.0)
    for began, process in found:
        process.since += began - first
    return [process for _, process in found], cut


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob(f"*{SUFFIX}"))
    if not files:
        raise NoRecording(f"{path}: a folder without a file *{SUFFIX}")
    return files


class _Index:
    """Notes where events are, and keeps chunks that are late."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.shift: int = process.facts["tick_shift"]
        self.events = 0
        self.recent: list[tuple[int, int]] = []  # blocks: events up to there, the last begin
        self.settled = 0  # what began before this is late
        self.threads: set[int] = set()

    def add(self, at: int, head: Head) -> None:
        np = numpy()
        process, chunks = self.process, head.chunks
        begun = (chunks.ticks >> self.shift).astype("i8")
        self.threads.update(np.unique(chunks.threads).tolist())
        late = begun < self._settled()
        first = int(begun[~late].min(initial=_NEVER))
        process.parts.append(Part(at, head.events, first, late if late.any() else None))
        if late.any():
            (whole,) = Reader(process.file).events([at])
            process.late.append(Late(int(begun[late].min()), _some(whole, late)))
        process.last = max(process.last, int(begun.max(initial=0)))
        if len(chunks.times):
            process.clocks = int(chunks.ticks[-1]), int(chunks.times[-1])
        self.events += head.events
        self.recent.append((self.events, process.last))

    def _settled(self) -> int:
        """The latest begin in blocks that are so long ago that none of their calls is to wait."""
        most = max(LATE, LATE_A_THREAD * len(self.threads))
        while self.recent and self.recent[0][0] < self.events - most:
            self.settled = self.recent.pop(0)[1]
        return self.settled


def _some(chunks: Chunks, which: Any) -> Chunks:
    np = numpy()
    return Chunks(
        chunks.threads[which],
        chunks.counts[which],
        chunks.orders[which],
        chunks.ticks[which],
        chunks.times[which],
        chunks.events.part(np.repeat(which, chunks.counts)),
    )


def looks(process: Process) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """When the recorder looked, in ns, and of some blocks the address and how many of their pages
    were there. Raises NoRecording."""
    for facts in Reader(process.file).facts(process.looks):
        yield facts["time"], facts["blocks"]


def calls_of(process: Process) -> int:
    """About how many; quick."""
    return sum(part.count for part in process.parts)


def chosen(found: list[Process], pid: int | None, file: Path) -> Process:
    """The process with this PID, or that with most calls. Raises NoRecording."""
    some = [one for one in found if pid is None or one.facts["pid"] == pid]
    if not some:
        raise NoRecording(f"{file}: has no process" + (f" {pid}" if pid else ""))
    return max(some, key=calls_of)


def _give_clocks(found: Collection[Process]) -> None:
    """ns for each unit of an event's time, by both clocks of the start and of the last chunk, where
    most time is between these. The recording begins with its first process."""
    begun = min((process.facts["time"] for process in found), default=0)
    longest, scale = 0, 1.0
    for process in found:
        if process.clocks is not None:
            ticks = process.clocks[0] - process.facts["ticks"]
            time = process.clocks[1] - process.facts["time"]
            if time > longest and ticks > 0:
                longest, scale = time, time / ticks
    for process in found:
        process.scale = scale * 2 ** process.facts["tick_shift"]
        process.since = (process.facts["time"] - begun) / 1e9


def _give_maps(found: Collection[Process]) -> None:
    """A child begins with the mappings of its parent. It may have ended before its own were read,
    or they may be those of a program that it executed. So may those of its parent, later."""
    for process in found:
        pid, forked = process.facts["parent"], process.facts["time"]
        parents = [
            one
            for one in found
            if pid and one.facts["pid"] == pid and one is not process
            if one.facts["time"] <= forked
        ]
        if parents:
            parent = max(parents, key=lambda one: one.facts["time"])
            process.maps = {**parent.maps, **process.maps}


# ---- times ----


def _timed(chunks: Chunks) -> tuple[Any, Any]:
    """Which events have a time, and how many of each chunk."""
    np = numpy()
    kind = chunks.events.kind
    timed = (kind != 0) & (kind != MORE)
    ends = np.cumsum(chunks.counts, dtype="i8")
    others = np.searchsorted(ends, np.flatnonzero(~timed), side="right")
    return timed, chunks.counts - np.bincount(others, minlength=len(ends))


def _times(chunks: Chunks, timed: Any, counts: Any, process: Process) -> Any:
    """When the events were that have a time, since the process began. An event has the lower half
    of its time, and follows the one before it, or the begin of its chunk, by less than half of what
    that can express."""
    np = numpy()
    low = chunks.events.time[timed]
    steps = np.zeros(len(low), dtype="<i4")
    np.subtract(low[1:], low[:-1], out=steps[1:].view("<u4"))
    sums = np.cumsum(steps, dtype="i8")
    some = np.flatnonzero(counts)
    first = (np.cumsum(counts) - counts)[some]
    begun = (chunks.ticks[some] >> process.facts["tick_shift"]).astype("i8")
    since = (low[first] - begun.astype("<u4")).view("<i4")
    sums += np.repeat(begun - process.begun + since - sums[first], counts[some])
    return sums


# ---- calls ----


@dataclass
class Calls:
    """In the order in which they took effect: an element of each array for each call."""

    what: Any  # the first word of its event: the functions below
    extra: Any  # that of an event before it which belongs to it, or 0
    size: Any
    time: Any  # since the process began, in units of process.scale
    thread: Any  # its place in process.threads

    def __len__(self) -> int:
        return len(self.what)

    def part(self, which: Any) -> Calls:
        return Calls(*(getattr(self, name)[which] for name in _COLUMNS))

    @property
    def kind(self) -> Any:
        return self.what.view("u1")[5::8] >> 4 & 7

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
        return (self.what >> 47).view("i8")

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


def last_time(process: Process) -> int:
    """When the last call was, as in Calls.time. It is among the last events of the file, as the
    recorder takes what is in the ring at the end; so this is quick. Raises NoRecording."""
    places: list[int] = []
    events = 0
    for part in reversed(process.parts):
        if events > LAST:
            break
        places.append(part.at)
        events += part.count
    found = max(process.last - process.begun, 0)
    if not places:
        return found
    chunks = _together(list(Reader(process.file).events(places)))
    timed, counts = _timed(chunks)
    time = _times(chunks, timed, counts, process)
    return max(found, int(time[chunks.events.kind[timed] != PATH].max(initial=0)))


@dataclass
class Seam:
    """Between two windows: so many parts of the file were read, and these of their calls are to
    come. While it is not `whole`, that is so after windows that are to come."""

    parts: int = 0
    pool: list[Calls] = field(default_factory=list)
    whole: bool = True


def windows(process: Process, seam: Seam | None = None) -> Iterator[Calls]:
    """All calls after `seam`, which follows, in the order of time. Gives process.paths and
    process.threads what it finds. Raises NoRecording."""
    np = numpy()
    seam = seam or Seam()
    firsts = np.array([*(part.first for part in process.parts), _NEVER])
    limits = np.minimum.accumulate(firsts[::-1])[::-1][1:].tolist()  # what comes later is later
    came = limits[seam.parts - 1] if seam.parts else -_NEVER
    late = sorted((one for one in process.late if one.first >= came), key=lambda one: one.first)
    parts, limits = process.parts[seam.parts :], limits[seam.parts :]
    fresh: list[Chunks] = []
    for part, chunks, limit in zip(parts, _chunks(process, parts), limits, strict=True):
        fresh.append(chunks)
        while late and late[0].first < limit:
            fresh.append(late.pop(0).chunks)
        seam.parts += 1
        if sum(len(one.events) for one in fresh) < WINDOW_LEAST and part is not parts[-1]:
            continue
        calls = _joined([*seam.pool, _calls(process, _together(fresh))])
        fresh.clear()
        ready = calls.time < limit - process.begun
        whole = bool(ready.all())
        seam.pool = [] if whole else [calls.part(~ready)]
        *others, last = _cut(calls if whole else calls.part(ready))
        seam.whole = False
        yield from others
        seam.whole = True
        yield last


def _chunks(process: Process, parts: Sequence[Part]) -> Iterator[Chunks]:
    """Of each part, those that are not late."""
    read = Reader(process.file).events(part.at for part in parts)
    for part, chunks in zip(parts, read, strict=True):
        yield chunks if part.late is None else _some(chunks, ~part.late)


def _together(some: list[Chunks]) -> Chunks:
    """Chunks of several blocks, one after the other."""
    if len(some) == 1:
        return some[0]
    np = numpy()
    threads, counts, orders, ticks, times = (
        np.concatenate([getattr(one, name) for one in some])
        for name in ("threads", "counts", "orders", "ticks", "times")
    )
    planes = np.concatenate([one.events.planes for one in some], axis=1)
    words = Words(planes, np.concatenate([one.events.time for one in some]))
    ends = np.cumsum([len(one.events) for one in some])[:-1] - 1
    ends = ends[ends >= 0]
    words.kind[ends[words.kind[ends] == MORE]] = 0  # it belongs to no event of another block
    return Chunks(threads, counts, orders, ticks, times, words)


def _cut(calls: Calls) -> Iterator[Calls]:
    """In order, and in parts that are not too long."""
    if (calls.time[1:] < calls.time[:-1]).any():
        calls = calls.part(_order(calls.time))
    if len(calls) <= WINDOW:
        yield calls
        return
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
    """In the order of chunks."""
    np = numpy()
    timed, counts = _timed(chunks)
    time = _times(chunks, timed, counts, process)
    kind, what = chunks.events.kind, chunks.events.what
    is_path = kind == PATH
    if is_path.any():
        found = _paths(chunks.events, np.flatnonzero(is_path))
        for when, (number, path) in zip(time[is_path[timed]].tolist(), found, strict=True):
            if number or not _take_lines(process, _text(path), when):
                process.paths[number] = path
                process.first[number] = when
        time = time[~is_path[timed]]
    call = timed & ~is_path
    names = process.threads
    places = [names.setdefault(one, len(names)) for one in chunks.threads.tolist()]
    thread = np.repeat(np.array(places, dtype="u4"), chunks.counts)[call]
    size = chunks.events.bytes[call].astype("i8")
    extra = np.zeros(len(size), dtype="u8")
    more = np.flatnonzero(kind[:-1] == MORE)
    more = more[call[more + 1]]
    if len(more):
        at = np.cumsum(call)[more + 1] - 1
        extra[at] = what[more]
        size[at] |= chunks.events.time[more].astype("i8") << 32
    what = what[call]
    if len(more) and (size[what & _ADDRESS != 0] & -ADDRESS_SPACE != 0).any():
        raise NoRecording(f"{process.file}: damaged: it has a block that no address space holds")
    return Calls(what, extra, size, time, thread)


def _text(path: bytes) -> str:
    """A line that is written as a path."""
    packed = numpy().frombuffer(path, "u1").reshape(-1, 8)[:, :PACKED].tobytes()
    return str(packed.rstrip(b"\0\n").decode(errors="surrogateescape"))


def _take_lines(process: Process, lines: str, time: int) -> bool:
    """A mark, a thread's name, or what belongs to the mappings: a line of a script, or those of a
    module. False of anything else."""
    word, _, rest = lines.partition(" ")
    if word == "mark":
        process.marks[time, heap_profile.escaped(rest)] = None
        return True
    if word == "thread":
        number, _, name = rest.partition(" ")
        process.names[number] = heap_profile.escaped(name)
        return True
    with suppress(heap_profile.NoProfile):
        heap_profile.mappings(lines.split("\n"), 1, "")
        for line in lines.split("\n"):
            process.maps[line.partition("-")[0] if line[:1] != "#" else line] = line
        return True
    return False


def read_marks(process: Process) -> list[tuple[float, str]]:
    """When, in seconds since the recording began, and their names. Raises NoRecording."""
    for _ in windows(process):
        pass
    return [(process.seconds(time), name) for time, name in sorted(process.marks)]


def _paths(events: Words, at: Any) -> Iterator[tuple[int, bytes]]:
    """Those that begin at these events; the rows with their addresses follow each."""
    for some in range(0, len(at), _PATHS):
        yield from _some_paths(events, at[some : some + _PATHS])


_PATHS = 1024  # at a time: each may say that it has all the rows that follow


def _some_paths(events: Words, at: Any) -> Iterator[tuple[int, bytes]]:
    np = numpy()
    heads = events.part(at).both
    counts = np.minimum(heads[:, 1] >> 32, FRAMES).astype("i8")
    rows_of = np.minimum((counts + 1) // 2, len(events) - 1 - at)
    begins = np.cumsum(rows_of) - rows_of
    which = np.arange(int(rows_of.sum())) + np.repeat(at + 1 - begins, rows_of)
    rows = events.part(which).both
    rows[:, 0] = rows[:, 0] & _ADDRESS | rows[:, 0] >> 47 << ADDRESS_BITS
    addresses = rows.tobytes()
    ends = 16 * begins + 8 * np.minimum(counts, 2 * rows_of)
    numbers = (heads[:, 0] >> 47).tolist()
    for number, begin, end in zip(numbers, (16 * begins).tolist(), ends.tolist(), strict=True):
        yield number, addresses[begin:end]
