"""Moments of a recording, by which any span of it can be shown. The time has equal parts, and of
each there is the moment in which most was in use: what was in use then by call path, and what was
allocated since the moment before. So the most of any span is the most of its moments. Where nothing
happens for a while, there is a moment at its begin and one at its end; the last one is the end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hakmem.live import Window
from hakmem.recording import numpy, zstandard

PARTS = 200
ALLOCATED, IN_USE, SUMS = 0, 2, 4  # where blocks are among the sums by path; bytes follow them


def widened(sums: Any, paths: int) -> Any:
    if paths <= sums.shape[1]:
        return sums
    wide = numpy().zeros((len(sums), paths))
    wide[:, : sums.shape[1]] = sums
    return wide


def by_path(paths: int, path: Any, size: Any) -> Any:
    """How many blocks, and their bytes."""
    np = numpy()
    sums = np.empty((2, paths))
    sums[0] = np.bincount(path, minlength=paths)
    sums[1] = np.bincount(path, weights=size, minlength=paths)
    return sums


class Place:
    """A place in a window, and the sums by path up to there; it goes from call to call."""

    def __init__(self, window: Window, sums: Any) -> None:
        """At the begin of the window."""
        calls = window.calls
        self.takes = numpy().flatnonzero(window.takes)
        self.path, self.size = calls.path[self.takes], calls.size[self.takes]
        self.sums = widened(sums, int(self.path.max(initial=-1)) + 1)
        self.window, self.calls, self.taken = window, 0, 0

    def after(self, call: int) -> Any:
        """The sums after this call; it does not come before the one that was asked for last."""
        np = numpy()
        ended, at = self.window.ended, self.window.at
        gone = np.flatnonzero((at >= self.calls) & (at <= call))
        taken = int(np.searchsorted(self.takes, call, side="right"))
        new = slice(self.taken, taken)
        paths = self.sums.shape[1]
        begun = by_path(paths, self.path[new], self.size[new])
        self.sums = self.sums.copy()
        self.sums[:IN_USE] += begun
        self.sums[IN_USE:] += begun
        self.sums[IN_USE:] -= by_path(paths, ended.path[gone], ended.size[gone])
        self.calls, self.taken = call + 1, taken
        return self.sums


@dataclass(frozen=True)
class Moment:
    time: int  # since the process began, in units of its scale
    size: int  # bytes in use
    changes: bytes  # of the sums by path since the moment before, packed


@dataclass(frozen=True)
class Path:
    """`changes`: for each moment with any its number, and how much was added to the sums."""

    number: int  # -1: of all that are not shown
    changes: list[int]


@dataclass
class _Top:
    part: int
    place: Place
    call: int
    time: int
    size: int


class Moments:
    def __init__(self, end: int, begin: int | None = None) -> None:
        """`begin`: of a part of the recording; what is in use then is a moment, too."""
        np = numpy()
        self.begin = begin
        self.ends = np.linspace(float(begin or 0), float(end), PARTS + 1)[1:]
        self.found: list[Moment] = []
        self.sums = np.zeros((SUMS, 0))  # at the moment that came last
        self.most = self.most_at = 0  # bytes in use at any, and the time of that
        self.at_most = self.sums
        self.top: _Top | None = None  # of the part that may not be over
        self.packer = zstandard().ZstdCompressor(level=1)

    def add(self, window: Window, use: Any, sums: Any) -> None:
        """`use`: bytes after each call; `sums`: by path before the window."""
        np = numpy()
        time = window.calls.time
        self._begin(sums)
        place = Place(window, sums)
        first, last = np.searchsorted(self.ends, time[[0, -1]].astype(float)).tolist()
        begins = np.searchsorted(time, self.ends[first:last], side="right").tolist()
        parts = zip(range(first, last + 1), [0, *begins], [*begins, len(time)], strict=True)
        for part, begin, end in parts:
            if begin == end:
                continue
            top = begin + int(use[begin:end].argmax())
            size = int(use[top])
            if self.top is not None and self.top.part < part:
                before = self._settle(self.top)
                if before + 1 < part:
                    self._rest(before, part, place.after(begin - 1))
            elif self.top is None and self.begin is not None and part:
                self._rest(part - 1, part, sums)
            if self.top is None or size > self.top.size:
                self.top = _Top(min(part, PARTS - 1), place, top, int(time[top]), size)

    def finish(self, time: int, sums: Any) -> None:
        """`time`: of the last call; `sums`: after it."""
        self._begin(sums)
        if self.top is not None:
            self._settle(self.top)
        self._add(time, int(sums[IN_USE + 1].sum()), sums)

    def _begin(self, sums: Any) -> None:
        if self.begin is not None and not self.found:
            self._add(self.begin, int(sums[IN_USE + 1].sum()), sums)

    def _settle(self, top: _Top) -> int:
        """The part whose top is a moment now."""
        self._add(top.time, top.size, top.place.after(top.call))
        self.top = None
        return top.part

    def _rest(self, before: int, part: int, sums: Any) -> None:
        """Nothing happened between these parts."""
        for end in sorted({before, part - 1}):
            self._add(int(self.ends[end]), int(sums[IN_USE + 1].sum()), sums)

    def _add(self, time: int, size: int, sums: Any) -> None:
        np = numpy()
        changes = sums - widened(self.sums, sums.shape[1])
        paths = np.flatnonzero(changes.any(axis=0))
        words = np.concatenate([paths[None], changes[:, paths]]).astype("<i8")
        self.found.append(Moment(time, size, self.packer.compress(words.tobytes())))
        self.sums = sums
        if size > self.most:
            self.most, self.at_most, self.most_at = size, sums, time

    def _changes(self) -> Iterator[tuple[Any, Any]]:
        """Of each moment which paths changed, and how much was added to their sums."""
        np = numpy()
        unpacker = zstandard().ZstdDecompressor()
        for moment in self.found:
            words = np.frombuffer(unpacker.decompress(moment.changes), dtype="<i8")
            words = words.reshape(SUMS + 1, -1)
            yield words[0], words[1:]

    def paths(self, most: int, changes_most: int) -> list[Path]:
        """Those with the largest part of all that was allocated, or that had most in use at any
        moment, compared with the peak; with so many changes at most. The largest come first, and
        the sum of the others last."""
        np = numpy()
        use, most_use, counts = np.zeros((3, self.sums.shape[1]))
        for paths, changes in self._changes():
            counts[paths] += 1
            use[paths] += changes[IN_USE + 1]
            most_use[paths] = np.maximum(most_use[paths], use[paths])
        allocated = self.sums[ALLOCATED + 1]
        part = np.maximum(allocated / max(allocated.sum(), 1), most_use / max(self.most, 1))
        shown = np.zeros(len(part), dtype=bool)
        order = np.argsort(-part, kind="stable")[:most]
        shown[order[np.cumsum(counts[order]) <= changes_most]] = True
        rows = []
        for number, (paths, changes) in enumerate(self._changes()):
            some = shown[paths]
            few = np.stack([paths[some], np.full(some.sum(), number), *changes[:, some]])
            rows.append(few.astype("i8"))
            if not some.all():
                others = changes[:, ~some].sum(axis=1).tolist()
                rows.append(np.array([[-1], [number], *([one] for one in others)], dtype="i8"))
        every = np.concatenate(rows, axis=1)
        every = every[:, np.argsort(every[0], kind="stable")]
        begins = np.flatnonzero(np.diff(every[0], prepend=-2)).tolist()
        found = [
            Path(int(every[0, begin]), every[1:, begin:end].T.reshape(-1).tolist())
            for begin, end in itertools.pairwise([*begins, every.shape[1]])
        ]
        return sorted(found, key=lambda one: -part[one.number] if one.number >= 0 else 1)
