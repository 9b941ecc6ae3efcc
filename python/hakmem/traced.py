"""What a process did with its memory, from a recording of all its calls. The calls pass by once, a
window at a time: what is kept are sums by call path, counts by lifetime, and the blocks in use."""

from __future__ import annotations

import heapq
import itertools
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakmem import heap_profile, perf_map
from hakmem.checkpoints import Checkpoints, Index
from hakmem.events import Process, Seam, last_time
from hakmem.heap_profile import Figures, Mapping, NoProfile, Profile, Site
from hakmem.live import Held, Live, Window
from hakmem.moments import IN_USE, SUMS, Moments, Place, by_path, widened
from hakmem.recording import FREE, NoRecording, numpy

SIZES = (64, 1024, 32 * 1024, 2**20, 2**62)  # upper bounds of groups of sizes
CLOCKS_DIFFER = 0.001  # of processes whose times can't be added: by the speed of their clocks
FOUND_LATE = 10  # seconds
MOST = 10_000  # call paths that are shown, of each kind
_EXACT: Figures = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Lifetimes:
    """Of the blocks of up to `most` bytes that were freed, in ns. The longest is exact, the others
    are within 0.4%."""

    most: int
    blocks: int
    size: int
    median: float
    p90: float
    longest: float


@dataclass(frozen=True)
class Flow:
    """Blocks that one thread allocated and another freed."""

    giver: int
    taker: int
    blocks: int
    size: int


@dataclass(frozen=True)
class Span:
    """From one moment to another, in seconds since the recording began."""

    since: float
    until: float
    profile: Profile  # by call path: allocated in it, and of that in use at its end


@dataclass(frozen=True)
class Begin:
    """Of a part of a recording: seconds since that began, and what was in use."""

    at: float
    size: int
    blocks: int


@dataclass(frozen=True)
class Traced:
    """The whole of a process, or what it did in a part of the recording."""

    process: Process
    begin: Begin | None  # of a part
    calls: int
    blocks: int  # allocated
    size: int  # bytes of these
    unknown_frees: int  # of blocks that were there before the recording
    unclear: int  # blocks whose frees were not recorded
    seconds: float  # from the process's begin to the last call, or to the end of the part
    peak: int  # bytes, and blocks
    peak_blocks: int
    peak_at: float  # seconds since the recording began, as all moments
    left: int  # in use at the end
    left_blocks: int
    curve: tuple[tuple[float, int], ...]  # each of `moments`: when, and bytes in use
    temporary: int  # blocks that the next call of their thread freed
    threads: int
    lives: Lives
    flows: tuple[Flow, ...]  # the largest first
    profile: Profile  # by call path: in use at the end, allocated, in use at the peak
    temporaries: Profile  # as allocated: those alone
    growth: Profile  # as in use: more at the end than when half of the time had passed
    spans: tuple[Span, ...]  # those that were asked for
    moments: Moments
    marks: tuple[tuple[float, int, str], ...] = ()  # when, bytes in use then, and the name

    @property
    def lifetimes(self) -> tuple[Lifetimes, ...]:
        return lifetimes_of([self])

    @property
    def ended(self) -> float:
        """When the process was over, or the recording, in seconds since that began."""
        process = self.process
        begun: int = process.facts["time"]
        done: int = begun if process.done is None else process.done.get("time", begun)
        return process.since + max(self.seconds, (done - begun) / 1e9)


def traced(
    process: Process,
    spans: Sequence[tuple[float, float]] = (),
    part: tuple[float, float] | None = None,
    checkpoints: Checkpoints | None = None,
    index: Index | None = None,
) -> Traced:
    """`spans`: begin and end of each, as in Span; `part`: what alone is to be told, likewise. This
    begins at a checkpoint, if there are any; `index` is given those of the whole. Raises
    NoRecording, NoIndex, OSError."""
    np = numpy()
    live, seam, last = Live(), Seam(), last_time(process)
    sums, lives, flows = _Sums(last, part, process), _Lives(), _Flows()
    if part is not None and checkpoints is not None:
        live, seam = checkpoints.before(process, sums.begin)
        sums.take(live.held)
    asked = [_Span(since, until, process) for since, until in spans]
    for window in live.through(process, seam):
        some = sums.within(window)
        if some is not None:
            sums.add(some)
            lives.add(some)
            flows.add(some)
            for span in asked:
                span.add(some)
        if index is not None:
            index.look(process, live, seam, int(window.calls.time[-1]))
        if part is not None and window.calls.time[-1] > sums.end:
            break
    sums.finish()
    if index is not None:
        index.end(process)
    moments = sums.moments
    where = mappings(process)
    owners = {os.geteuid(), process.file.stat().st_uid}
    process.made = perf_map.made_by(
        process.facts["pid"], where, Path("/"), owners, process.notes, _written(process)
    )
    use, allocated = sums.sums[IN_USE:], sums.sums[:IN_USE]
    curve = [(process.seconds(one.time), one.size) for one in moments.found]
    begin = None
    if part is not None:
        begin = Begin(max(part[0], process.since), curve[0][1], sums.held_before)
        curve[0] = begin.at, begin.size
    paths = use.shape[1]

    def profile(*figures: Any) -> Profile:
        none = np.zeros_like(use)
        wide = [none if one is None else widened(one, paths) for one in figures]
        return _profile(process, where, wide)

    at_half = widened(sums.at_half, paths)[IN_USE:]
    return Traced(
        process,
        begin,
        sums.calls,
        int(allocated[0].sum()),
        int(allocated[1].sum()),
        sums.unknown,
        sums.unclear,
        sums.last * process.scale / 1e9,
        moments.most,
        int(moments.at_most[IN_USE].sum()),
        process.seconds(moments.most_at),
        int(use[1].sum()),
        int(use[0].sum()),
        tuple(curve),
        int(sums.brief[0].sum()),
        len(process.threads) if part is None else int(sums.threads.sum()),
        lives.packed(),
        flows.found(process),
        profile(use, allocated, moments.at_most[IN_USE:]),
        profile(None, sums.brief, None),
        profile(np.maximum(use - at_half, 0), None, None),
        tuple(
            Span(since, until, _profile(process, where, [span.left, span.allocated, 0 * span.left]))
            for (since, until), span in zip(spans, asked, strict=True)
        ),
        moments,
        tuple(
            (process.seconds(time), size, name) for (time, name), size in sorted(sums.marks.items())
        ),
    )


def _written(process: Process) -> tuple[float, float]:
    """When its files were: the recorder may find a process somewhat late."""
    begun: float = process.facts.get("begun", 0.0)  # missing in older recordings
    first = begun - perf_map.SLACK if begun else process.facts.get("started", 0.0) - FOUND_LATE
    return first, process.file.stat().st_mtime + FOUND_LATE


def lifetimes_of(every: Sequence[Traced]) -> tuple[Lifetimes, ...]:
    """Of the blocks of all; none where the clocks of recordings differ."""
    scale = every[0].process.scale
    if any(abs(one.process.scale / scale - 1) > CLOCKS_DIFFER for one in every):
        return ()
    found = _Lives()
    for one in every:
        found.take(one.lives)
    return found.found(scale)


def mappings(process: Process) -> tuple[Mapping, ...]:
    """Of all that was seen, the latest of each place. Raises NoRecording."""
    try:
        return heap_profile.mappings(list(process.maps.values()), 1, "its mappings")
    except NoProfile as why:
        raise NoRecording(f"{process.file}: {why}") from why


class _Sums:
    """By call path: how many blocks, and their bytes."""

    def __init__(self, last: int, part: tuple[float, float] | None, process: Process) -> None:
        """`last`: the time of the last call."""
        np = numpy()
        self.process = process
        self.marks: dict[tuple[int, str], int] = {}  # bytes in use at each
        self.waiting: list[tuple[int, str]] = []  # marks that are to come, as a heap
        self.known = 0  # marks of the process that were put there
        self.marks_until = math.inf  # a mark may come after the last call
        self.sums = np.zeros((SUMS, 0))
        self.at_half: Any = None
        self.brief = np.zeros((2, 0))
        self.part = part is not None
        self.begin, self.end = 0, last
        if part is not None:
            self.begin = max(math.ceil(process.units(part[0])), 0)
            self.marks_until = process.units(part[1])
            until = min(self.marks_until, last)
            self.end = max(math.floor(until), self.begin)
        self.moments = Moments(self.end, self.begin if self.part else None)
        self.half = (self.begin + self.end) // 2
        self.last = self.in_use = self.held_before = 0
        self.calls = self.unknown = self.unclear = 0
        self.threads = np.zeros(0, dtype=bool)  # of a part: which made calls

    def take(self, held: Held) -> None:
        """What is in use already."""
        use = by_path(int(held.path.max(initial=-1)) + 1, held.path, held.size)
        self._before(numpy().concatenate([0 * use, use]))

    def within(self, window: Window) -> Window | None:
        """Those of its calls that are to be told. Of the calls before these only what is in use
        afterwards counts."""
        if not self.part:
            return window
        np = numpy()
        time = window.calls.time
        first = int(np.searchsorted(time, self.begin))
        last = int(np.searchsorted(time, self.end, side="right"))
        if first:
            self._before(Place(window, self.sums).after(first - 1))
        if last - first == len(window.calls):
            return window
        return window.between(first, last) if first < last else None

    def _before(self, sums: Any) -> None:
        self.sums = sums
        self.sums[:IN_USE] = 0
        self.held_before, self.in_use = map(int, sums[IN_USE:].sum(axis=1))

    def add(self, window: Window) -> None:
        np = numpy()
        calls, ended, brief = window.calls, window.ended, window.brief
        self.calls += len(calls)
        self.unknown += len(window.unknown)
        self.unclear += len(window.unclear)
        if self.part:
            here = np.zeros(max(int(calls.thread.max()) + 1, len(self.threads)), dtype=bool)
            here[: len(self.threads)] = self.threads
            here[calls.thread] = True
            self.threads = here
        use = np.cumsum(np.where(window.takes, calls.size, 0) - _by_call(window)) + self.in_use
        self.moments.add(window, use, self.sums)
        self._mark(calls.time, use)
        if self.at_half is None and calls.time[-1] >= self.half:
            half = Place(window, self.sums)
            self.at_half = half.after(int(np.searchsorted(calls.time, self.half)))
        self.sums = Place(window, self.sums).after(len(calls) - 1)
        self.brief = widened(self.brief, self.sums.shape[1])
        self.brief += by_path(self.sums.shape[1], ended.path[brief], ended.size[brief])
        self.in_use, self.last = int(use[-1]), max(self.last, int(calls.time[-1]))

    def _marks(self, before: float) -> Iterator[tuple[int, str]]:
        """Those that come now, in their order. All that come before the last call of a window are
        known when it is."""
        new = len(self.process.marks) - self.known
        self.known += new
        for mark in itertools.islice(reversed(self.process.marks), new):
            heapq.heappush(self.waiting, mark)
        while self.waiting and self.waiting[0][0] < before:
            mark = heapq.heappop(self.waiting)
            if self.begin <= mark[0] <= self.marks_until:
                yield mark

    def _mark(self, times: Any, use: Any) -> None:
        for mark in self._marks(times[-1]):
            at = int(numpy().searchsorted(times, mark[0], side="right")) - 1
            self.marks[mark] = int(use[at]) if at >= 0 else self.in_use

    def finish(self) -> None:
        if self.part:
            self.last = self.end
        self.marks.update((mark, self.in_use) for mark in self._marks(math.inf))
        self.moments.finish(self.last, self.sums)
        self.at_half = self.sums if self.at_half is None else self.at_half


class _Span:
    """By call path: what was allocated in it, and what of that was in use at its end."""

    def __init__(self, since: float, until: float, process: Process) -> None:
        self.since, self.until = process.units(since), process.units(until)
        self.allocated = self.left = numpy().zeros((2, 0))

    def add(self, window: Window) -> None:
        calls, ended = window.calls, window.ended
        if calls.time[0] > self.until or calls.time[-1] < self.since:
            return
        takes = window.takes & (calls.time >= self.since) & (calls.time <= self.until)
        gone = (ended.time >= self.since) & (calls.time[window.at] <= self.until)
        path, size = calls.path[takes], calls.size[takes]
        paths = max(int(path.max(initial=-1)) + 1, self.left.shape[1])
        begun = by_path(paths, path, size)
        self.allocated = widened(self.allocated, paths) + begun
        freed = by_path(paths, ended.path[gone], ended.size[gone])
        self.left = widened(self.left, paths) + begun - freed


def _by_call(window: Window) -> Any:
    """Bytes of the blocks that each call ended."""
    return (
        numpy()
        .bincount(window.at, weights=window.ended.size, minlength=len(window.calls))
        .astype("i8")
    )


_STEPS = 7  # bits: steps of a factor of two on the scale of lifetimes
_BINS = 63 << _STEPS


def _bin(time: Any) -> Any:
    """On a logarithmic scale: the exponent and the first bits of the number."""
    np = numpy()
    return np.maximum((time.astype("f8").view("i8") >> (52 - _STEPS)) - (1023 << _STEPS) + 1, 0)


def _middle(of: Any) -> Any:
    """Of the values of a bin."""
    np = numpy()
    edges = ((of + (1023 << _STEPS) + np.array([[-1], [0]])) << (52 - _STEPS)).view("f8")
    return np.where(of == 0, 0.0, edges.mean(axis=0))


@dataclass(frozen=True)
class Lives:
    """Counts of _Lives that are not 0, and where they are; and its sums."""

    at: Any
    counts: Any
    sizes: Any
    longest: Any


class _Lives:
    """How many blocks lived how long, by groups of sizes."""

    def __init__(self) -> None:
        np = numpy()
        self.counts = np.zeros((len(SIZES), _BINS), dtype="i8")
        self.sizes = np.zeros(len(SIZES))
        self.longest = np.zeros(len(SIZES), dtype="i8")

    def add(self, window: Window) -> None:
        np = numpy()
        ended = window.ended
        lived = np.maximum(window.calls.time[window.by] - ended.time, 0)
        group = np.searchsorted(SIZES, ended.size)
        bins, counts = group * _BINS + _bin(lived), self.counts.reshape(-1)
        if len(bins) < len(counts):
            np.add.at(counts, bins, 1)
        else:
            counts += np.bincount(bins, minlength=len(counts))
        self.sizes += np.bincount(group, weights=ended.size, minlength=len(SIZES))
        np.maximum.at(self.longest, group, lived)

    def packed(self) -> Lives:
        at = numpy().flatnonzero(self.counts)
        return Lives(at, self.counts.reshape(-1)[at], self.sizes, self.longest)

    def take(self, lives: Lives) -> None:
        self.counts.reshape(-1)[lives.at] += lives.counts
        self.sizes += lives.sizes
        numpy().maximum(self.longest, lives.longest, out=self.longest)

    def found(self, ns: float) -> tuple[Lifetimes, ...]:
        found = []
        for most, counts, size, longest in zip(
            SIZES, self.counts, self.sizes, self.longest.tolist(), strict=True
        ):
            blocks = int(counts.sum())
            if blocks:
                median, p90 = (min(_quantile(counts, part), longest) * ns for part in (0.5, 0.9))
                found.append(Lifetimes(most, blocks, int(size), median, p90, longest * ns))
        return tuple(found)


def _quantile(counts: Any, part: float) -> float:
    """Between the two nearest where it lies between them."""
    np = numpy()
    up_to = np.cumsum(counts)
    place = part * (int(up_to[-1]) - 1)
    bins = np.searchsorted(up_to, [int(place), -int(-place // 1)], side="right")
    low, high = _middle(bins).tolist()
    return float(low + (high - low) * (place % 1))


class _Flows:
    """Between which threads blocks went: how many, and their bytes."""

    def __init__(self) -> None:
        self.sums: dict[int, tuple[int, int]] = {}

    def add(self, window: Window) -> None:
        np = numpy()
        giver, taker = window.ended.thread, window.calls.thread[window.by]
        other = np.flatnonzero((giver != taker) & (window.calls.kind[window.by] == FREE))
        if not len(other):
            return
        pair = giver[other].astype("u8") << 32 | taker[other]
        pairs, which, counts = np.unique(pair, return_inverse=True, return_counts=True)
        sizes = np.bincount(which.reshape(-1), weights=window.ended.size[other])
        for one, count, size in zip(pairs.tolist(), counts.tolist(), sizes.tolist(), strict=True):
            before = self.sums.get(one, (0, 0))
            self.sums[one] = before[0] + count, before[1] + int(size)

    def found(self, process: Process) -> tuple[Flow, ...]:
        names = list(process.threads)
        flows = [
            Flow(names[pair >> 32], names[pair & 2**32 - 1], *sums)
            for pair, sums in self.sums.items()
        ]
        return tuple(sorted(flows, key=lambda one: -one.size))


def _profile(process: Process, where: tuple[Mapping, ...], sums: Any) -> Profile:
    """Paths that are not among the largest by any of the sums are summed up as one."""
    np = numpy()
    columns = np.concatenate(sums)
    large = np.zeros(columns.shape[1], dtype=bool)
    for size in columns[1::2]:
        large[np.argsort(-size, kind="stable")[:MOST]] = True
    some = columns.any(axis=0)
    sites = []
    for path in np.flatnonzero(some & large).tolist():
        stack = tuple(address + 1 for address in process.path(path))
        sites.append(Site(stack, _figures(columns[:, path]), _EXACT))
    small = np.flatnonzero(some & ~large)
    if len(small):
        figures = _figures(columns[:, small].sum(axis=1))
        sites.append(Site((), figures, _EXACT, f"({len(small):,} smaller paths)"))
    return Profile("", 1, 0, tuple(sites), where, made=process.made)


def _figures(column: Any) -> Figures:
    a, b, c, d, e, f = column.tolist()
    return a, b, c, d, e, f
