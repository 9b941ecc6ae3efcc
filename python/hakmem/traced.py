"""What a process did with its memory, from a recording of all its calls. The calls pass by once, a
window at a time: what is kept are sums by call path, counts by lifetime, and the blocks in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hakmem import heap_profile
from hakmem.events import Process, last_time
from hakmem.heap_profile import Figures, Mapping, NoProfile, Profile, Site
from hakmem.live import Live, Window
from hakmem.recording import FREE, NoRecording, numpy

SIZES = (64, 1024, 32 * 1024, 2**20, 2**62)  # upper bounds of groups of sizes
POINTS = 400  # of the curve
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
    """From one moment to another, in seconds."""

    since: float
    until: float
    profile: Profile  # by call path: allocated in it, and of that in use at its end


@dataclass(frozen=True)
class Traced:
    process: Process
    calls: int
    blocks: int  # allocated
    size: int  # bytes of these
    unknown_frees: int  # of blocks that were there before the recording
    unclear: int  # blocks whose frees were not recorded
    seconds: float
    peak: int  # bytes, and blocks
    peak_blocks: int
    peak_at: float  # seconds
    left: int  # in use at the end
    left_blocks: int
    curve: tuple[tuple[float, int], ...]  # seconds, and most bytes in use since the point before
    temporary: int  # blocks that the next call of their thread freed
    threads: int
    lifetimes: tuple[Lifetimes, ...]
    flows: tuple[Flow, ...]  # the largest first
    profile: Profile  # by call path: in use at the end, allocated, in use at the peak
    temporaries: Profile  # as allocated: those alone
    growth: Profile  # as in use: more at the end than when half of the time had passed
    spans: tuple[Span, ...]  # those that were asked for


def traced(process: Process, spans: Sequence[tuple[float, float]] = ()) -> Traced:
    """`spans`: begin and end of each, in seconds. Raises NoRecording."""
    np = numpy()
    live = Live()
    sums, lives, flows = _Sums(last_time(process)), _Lives(), _Flows()
    asked = [_Span(since, until, process.scale) for since, until in spans]
    for window in live.through(process):
        sums.add(window)
        lives.add(window)
        flows.add(window)
        for span in asked:
            span.add(window)
    sums.finish()
    where = mappings(process)
    ns = process.scale

    def profile(*figures: Any) -> Profile:
        none = np.zeros_like(sums.use)
        return _profile(process, where, [none if one is None else one for one in figures])

    return Traced(
        process,
        live.calls,
        int(sums.allocated[0].sum()),
        int(sums.allocated[1].sum()),
        live.unknown_frees,
        live.unclear,
        sums.last * ns / 1e9,
        sums.peak,
        int(sums.at_peak[0].sum()),
        sums.peak_at * ns / 1e9,
        int(sums.use[1].sum()),
        int(sums.use[0].sum()),
        sums.curve.points(ns),
        int(sums.brief[0].sum()),
        len(process.threads),
        lives.found(ns),
        flows.found(process),
        profile(sums.use, sums.allocated, sums.at_peak),
        profile(None, sums.brief, None),
        profile(np.maximum(sums.use - sums.at_half, 0), None, None),
        tuple(
            Span(since, until, _profile(process, where, [span.left, span.allocated, 0 * span.left]))
            for (since, until), span in zip(spans, asked, strict=True)
        ),
    )


def mappings(process: Process) -> tuple[Mapping, ...]:
    """Of all that was seen, the latest of each place. Raises NoRecording."""
    try:
        return heap_profile.mappings(list(process.maps.values()), 1, "its mappings")
    except NoProfile as why:
        raise NoRecording(f"{process.file}: {why}") from why


def _by_path(paths: int, path: Any, size: Any) -> Any:
    """How many blocks, and their bytes."""
    np = numpy()
    counts = np.bincount(path, minlength=paths)
    return np.stack([counts, np.bincount(path, weights=size, minlength=paths)])


@dataclass
class _Moment:
    """After a call of a window; `use` is what was in use before that."""

    window: Window
    call: int
    use: Any

    def in_use(self) -> Any:
        calls, paths = self.window.calls, self.use.shape[1]
        takes = self.window.takes[: self.call + 1].nonzero()[0]
        ended = self.window.ended.part(self.window.at <= self.call)
        begun = _by_path(paths, calls.path[takes], calls.size[takes])
        return self.use + begun - _by_path(paths, ended.path, ended.size)


class _Sums:
    """By call path: two rows, how many blocks and their bytes."""

    def __init__(self, end: int) -> None:
        none = numpy().zeros((2, 0))
        self.allocated = self.use = self.brief = self.at_peak = self.at_half = none
        self.curve = _Curve(end)
        self.half = end // 2
        self.peak_moment: _Moment | None = None
        self.half_moment: _Moment | None = None
        self.peak = self.peak_at = self.last = self.in_use = 0

    def add(self, window: Window) -> None:
        np = numpy()
        calls, ended, brief = window.calls, window.ended, window.brief
        path, size = calls.path[window.takes], calls.size[window.takes]
        paths = max(int(path.max(initial=-1)) + 1, self.use.shape[1])
        self.use = _widened(self.use, paths)
        use = np.cumsum(np.where(window.takes, calls.size, 0) - _by_call(window)) + self.in_use
        self._note_moments(window, use)
        begun = _by_path(paths, path, size)
        self.allocated = _widened(self.allocated, paths) + begun
        self.use = self.use + begun - _by_path(paths, ended.path, ended.size)
        self.brief = _widened(self.brief, paths)
        self.brief += _by_path(paths, ended.path[brief], ended.size[brief])
        self.curve.add(calls.time, use)
        self.in_use, self.last = int(use[-1]), max(self.last, int(calls.time[-1]))

    def _note_moments(self, window: Window, use: Any) -> None:
        time = window.calls.time
        top = int(use.argmax())
        if int(use[top]) > self.peak:
            self.peak, self.peak_at = int(use[top]), int(time[top])
            self.peak_moment = _Moment(window, top, self.use)
        if self.half_moment is None and time[-1] >= self.half:
            call = int(numpy().searchsorted(time, self.half))
            self.half_moment = _Moment(window, call, self.use)

    def finish(self) -> None:
        """Now it is known which moment was the peak."""
        paths = self.use.shape[1]
        if self.peak_moment is not None:
            self.at_peak = self.peak_moment.in_use()
        self.at_half = self.half_moment.in_use() if self.half_moment is not None else self.use
        self.at_peak, self.at_half = _widened(self.at_peak, paths), _widened(self.at_half, paths)


class _Span:
    """By call path: what was allocated in it, and what of that was in use at its end."""

    def __init__(self, since: float, until: float, ns: float) -> None:
        self.since, self.until = since * 1e9 / ns, until * 1e9 / ns
        self.allocated = self.left = numpy().zeros((2, 0))

    def add(self, window: Window) -> None:
        calls, ended = window.calls, window.ended
        if calls.time[0] > self.until or calls.time[-1] < self.since:
            return
        takes = window.takes & (calls.time >= self.since) & (calls.time <= self.until)
        gone = (ended.time >= self.since) & (calls.time[window.at] <= self.until)
        path, size = calls.path[takes], calls.size[takes]
        paths = max(int(path.max(initial=-1)) + 1, self.left.shape[1])
        begun = _by_path(paths, path, size)
        self.allocated = _widened(self.allocated, paths) + begun
        freed = _by_path(paths, ended.path[gone], ended.size[gone])
        self.left = _widened(self.left, paths) + begun - freed


def _widened(sums: Any, paths: int) -> Any:
    return numpy().pad(sums, ((0, 0), (0, paths - sums.shape[1])))


def _by_call(window: Window) -> Any:
    """Bytes of the blocks that each call ended."""
    return (
        numpy()
        .bincount(window.at, weights=window.ended.size, minlength=len(window.calls))
        .astype("i8")
    )


class _Curve:
    """Parts of equal time: the most bytes in use in each, and those after its last call."""

    def __init__(self, end: int) -> None:
        np = numpy()
        self.ends = np.linspace(0, float(end), POINTS + 1)[1:]
        self.most = np.full(POINTS, -1)
        self.after = np.zeros(POINTS, dtype="i8")

    def add(self, time: Any, use: Any) -> None:
        np = numpy()
        part = np.searchsorted(self.ends, time[[0, -1]].astype(float))
        begins = np.searchsorted(time, self.ends[part[0] : part[1]], side="right")
        begins = np.append(0, begins)
        ends = np.append(begins[1:], len(time))
        some = np.flatnonzero(ends > begins)
        parts = np.minimum(some + part[0], POINTS - 1)
        np.maximum.at(self.most, parts, np.maximum.reduceat(use, begins[some]))
        self.after[parts] = use[ends[some] - 1]

    def points(self, ns: float) -> tuple[tuple[float, int], ...]:
        found = []
        use = 0
        for end, most, after in zip(
            self.ends.tolist(), self.most.tolist(), self.after.tolist(), strict=True
        ):
            found.append((end * ns / 1e9, use if most < 0 else most))
            use = use if most < 0 else after
        return tuple(found)


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
        count = np.bincount(group * _BINS + _bin(lived), minlength=self.counts.size)
        self.counts += count.reshape(self.counts.shape)
        self.sizes += np.bincount(group, weights=ended.size, minlength=len(SIZES))
        np.maximum.at(self.longest, group, lived)

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
    return Profile("", 1, 0, tuple(sites), where)


def _figures(column: Any) -> Figures:
    a, b, c, d, e, f = column.tolist()
    return a, b, c, d, e, f
