"""What a process did with its memory, from a recording of all its calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hakmem import heap_profile
from hakmem.events import NEVER, Blocks, Events, Process, blocks, events
from hakmem.heap_profile import Figures, Mapping, NoProfile, Profile, Site
from hakmem.recording import FREE, NoRecording, numpy

SIZES = (64, 1024, 32 * 1024, 2**20, 2**62)  # upper bounds of groups of sizes
POINTS = 400  # of the curve
_EXACT: Figures = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Lifetimes:
    """Of the blocks of up to `most` bytes that were freed, in ns."""

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
class Traced:
    process: Process
    calls: Events
    blocks: Blocks
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


def traced(process: Process) -> Traced:
    np = numpy()
    calls = events(process)
    held = blocks(calls)
    count = len(calls.kind)
    ended = held.end != NEVER
    change = np.zeros(count, dtype="i8")
    np.add.at(change, held.begin, held.size)
    np.subtract.at(change, held.end[ended], held.size[ended])
    live = np.cumsum(change)
    top = int(live.argmax()) if count else 0
    at_peak = (held.begin <= top) & (held.end > top)
    seconds = float(calls.time[-1]) / 1e9 if count else 0.0
    half = int(np.searchsorted(calls.time, calls.time[-1] // 2)) if count else 0
    then, left = (held.begin <= half) & (held.end > half), ~ended
    brief = _temporary(calls, held)
    where = mappings(process)
    growth = _sums(held, left) - _sums(held, then)
    return Traced(
        process,
        calls,
        held,
        seconds,
        int(live[top]) if count else 0,
        int(at_peak.sum()),
        float(calls.time[top]) / 1e9 if count else 0.0,
        int(held.size[left].sum()),
        int(left.sum()),
        _curve(calls.time, live),
        int(brief.sum()),
        len(np.unique(calls.thread)),
        _lifetimes(calls, held, ended),
        _flows(calls, held, ended),
        _profile(calls, where, (_sums(held, left), _sums(held, None), _sums(held, at_peak))),
        _profile(calls, where, (None, _sums(held, brief), None)),
        _profile(calls, where, (np.maximum(growth, 0), None, None)),
    )


def mappings(process: Process) -> tuple[Mapping, ...]:
    """Of all that was seen, the latest of each place. Raises NoRecording."""
    found: dict[int, Mapping] = {}
    try:
        for text in process.maps:
            for one in heap_profile.mappings(text.splitlines(), 1, "mappings"):
                found[one.start] = one
    except NoProfile as why:
        raise NoRecording(str(why)) from why
    return tuple(sorted(found.values(), key=lambda one: one.start))


def _temporary(calls: Events, held: Blocks) -> Any:
    """Whether the next call of the thread that allocated a block freed it."""
    np = numpy()
    order = np.argsort(calls.thread, kind="stable")
    after = np.full(len(order), -1)
    same = calls.thread[order][1:] == calls.thread[order][:-1]
    after[order[:-1][same]] = order[1:][same]
    freed = np.append(calls.kind, FREE)[np.minimum(held.end, len(calls.kind))] == FREE
    return freed & (after[held.begin] == held.end)


def _sums(held: Blocks, which: Any) -> Any:
    """By path: how many blocks, and their bytes."""
    np = numpy()
    path, size = (held.path, held.size) if which is None else (held.path[which], held.size[which])
    most = int(held.path.max()) + 1 if len(held.path) else 1
    return np.stack(
        [np.bincount(path, minlength=most), np.bincount(path, weights=size, minlength=most)]
    )


def _profile(calls: Events, where: tuple[Mapping, ...], sums: Sequence[Any]) -> Profile:
    np = numpy()
    some = next(one for one in sums if one is not None)
    nothing = np.zeros_like(some)
    columns = np.concatenate([nothing if one is None else one for one in sums])
    sites = []
    for path in np.flatnonzero(columns.any(axis=0)):
        figures = tuple(float(one) for one in columns[:, path])
        stack = tuple(address + 1 for address in calls.paths.get(int(path), ()))
        sites.append(Site(stack, figures, _EXACT))  # type: ignore[arg-type]
    return Profile("", 1, 0, tuple(sites), where)


def _curve(time: Any, live: Any) -> tuple[tuple[float, int], ...]:
    """Parts of equal time."""
    np = numpy()
    if not len(time):
        return ()
    ends = np.linspace(0, float(time[-1]), POINTS + 1)[1:]
    last = np.searchsorted(time, ends, side="right")
    points = []
    begin = 0
    for end, second in zip(last, ends, strict=True):
        part = live[begin:end] if end > begin else live[max(begin - 1, 0) : max(begin, 1)]
        points.append((float(second) / 1e9, int(part.max())))
        begin = int(end)
    return tuple(points)


def _lifetimes(calls: Events, held: Blocks, ended: Any) -> tuple[Lifetimes, ...]:
    np = numpy()
    found = []
    least = 0
    for most in SIZES:
        which = ended & (held.size >= least) & (held.size <= most)
        least = most + 1
        lived = calls.time[held.end[which]] - calls.time[held.begin[which]]
        if not len(lived):
            continue
        median, p90, longest = (float(one) for one in np.quantile(lived, [0.5, 0.9, 1]))
        size = int(held.size[which].sum())
        found.append(Lifetimes(most, len(lived), size, median, p90, longest))
    return tuple(found)


def _flows(calls: Events, held: Blocks, ended: Any) -> tuple[Flow, ...]:
    np = numpy()
    giver, taker = calls.thread[held.begin[ended]], calls.thread[held.end[ended]]
    other = (giver != taker) & (calls.kind[held.end[ended]] == FREE)
    pairs = np.stack([giver[other], taker[other]], axis=1)
    if not len(pairs):
        return ()
    unique, which, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    sizes = np.bincount(which.reshape(-1), weights=held.size[ended][other])
    flows = [
        Flow(int(a), int(b), int(n), int(size))
        for (a, b), n, size in zip(unique, counts, sizes, strict=True)
    ]
    return tuple(sorted(flows, key=lambda one: -one.size))
