"""Which blocks a process has, call by call: each window of calls ends some and begins some."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hakmem.events import WINDOW_BITS, Calls, Process, windows
from hakmem.recording import FREE, RESIZE, numpy

_COLUMNS = {"grain": "u8", "begin": "i8", "time": "i8", "size": "i8", "path": "i4", "thread": "u4"}


@dataclass
class Blocks:
    """An element of each array for each block."""

    grain: Any  # its address, in units of 16 bytes
    begin: Any  # the number of the call that allocated it
    time: Any  # of that call
    size: Any
    path: Any
    thread: Any

    def __len__(self) -> int:
        return len(self.grain)

    def part(self, which: Any) -> Blocks:
        return Blocks(*(getattr(self, name)[which] for name in _COLUMNS))


def _none() -> Blocks:
    return Blocks(*(numpy().zeros(0, dtype=kind) for kind in _COLUMNS.values()))


def _joined(parts: list[Blocks]) -> Blocks:
    np = numpy()
    return Blocks(*(np.concatenate([getattr(one, name) for one in parts]) for name in _COLUMNS))


@dataclass
class Window:
    """What a window of calls did. A realloc ends a block and begins one."""

    calls: Calls
    number: int  # of its first call
    takes: Any  # whether a call allocated a block
    ended: Blocks
    at: Any  # of each ended block the call that ended it, from the window's first on
    brief: Any  # and whether the next call of its thread freed it


class Live:
    """`blocks` are those in use after the window that came last."""

    def __init__(self) -> None:
        self.calls = 0
        self.unknown_frees = 0  # of blocks that were there before the recording
        self.unclear = 0  # allocated where they were already: their frees were not recorded
        self.table = _Table()
        self.latest = numpy().zeros(0, dtype="i8")  # the number of the last call of each thread

    @property
    def blocks(self) -> Blocks:
        return self.table.all()

    def through(self, process: Process) -> Iterator[Window]:
        """Raises NoRecording."""
        for calls in windows(process):
            yield self._window(calls)

    def _window(self, calls: Calls) -> Window:
        np = numpy()
        grain, at, take = _entries(calls)
        new = np.append(True, grain[1:] != grain[:-1])[: len(grain)]
        first = np.flatnonzero(new)
        before, known = self.table.out(grain[first])
        _swap(calls, at, take, new, known)
        there = np.append(False, take[:-1])[: len(take)]  # whether a block is, before each entry
        there[first] = known
        self.unclear += int((there & take).sum())
        self.unknown_frees += int((~there & ~take).sum())
        ends = there & ~new
        begun = np.append(ends[1:], False)[: len(ends)]
        stays = take & ~begun
        ended = _joined([before, self._taken(calls, grain[begun], at[begun])])
        ended_at = np.concatenate([at[first[known]], np.maximum(at[ends], at[begun])])
        self.table.put(self._taken(calls, grain[stays], at[stays]))
        brief = (calls.kind[ended_at] == FREE) & (self._before(calls)[ended_at] == ended.begin)
        takes = (calls.kind != FREE) & (calls.grain != 0)
        window = Window(calls, self.calls, takes, ended, ended_at, brief)
        self.calls += len(calls)
        return window

    def _taken(self, calls: Calls, grain: Any, at: Any) -> Blocks:
        path = (calls.what[at] >> 47).astype("i4")
        return Blocks(grain, at + self.calls, calls.time[at], calls.size[at], path, calls.thread[at])

    def _before(self, calls: Calls) -> Any:
        """The number of the call that the thread of each call made before it, or -1."""
        np = numpy()
        count = int(calls.thread.max(initial=0)) + 1
        if count > len(self.latest):
            self.latest = np.append(self.latest, np.full(count - len(self.latest), -1))
        order = np.argsort(calls.thread.astype("u2" if count <= 2**16 else "u4"), kind="stable")
        thread, number = calls.thread[order], order + self.calls
        change = np.append(True, thread[1:] != thread[:-1])[: len(thread)]
        before = np.append(0, number[:-1])[: len(number)]
        before[change] = self.latest[thread[change]]
        last = np.append(change[1:], True)[: len(thread)]
        self.latest[thread[last]] = number[last]
        found = np.empty_like(before)
        found[order] = before
        return found


def _entries(calls: Calls) -> tuple[Any, Any, Any]:
    """By block, then in the order of calls: whose it is, the call, and whether it takes the block
    or gives it. A call first gives, then takes."""
    np = numpy()
    kind, grain, former = calls.kind, calls.grain, calls.former
    moved = (former != 0) & (grain != 0)
    number = np.arange(len(calls), dtype="u8") << 1
    takes = (kind != FREE) & (grain != 0)
    own = takes | (kind == FREE)
    bits = WINDOW_BITS + 1
    keys = [(grain << bits | number | takes)[own]]
    for which, whose in ((kind == RESIZE, np.where(moved, former, grain)), (moved & (kind != RESIZE), former)):
        if which.any():
            keys.append((whose << bits | number)[which])
    key = np.concatenate(keys)
    key.sort()
    order = key & (1 << bits) - 1
    return key >> bits, (order >> 1).astype("i8"), (order & 1).astype(bool)


def _swap(calls: Calls, at: Any, take: Any, new: Any, known: Any) -> None:
    """Processors read their clocks up to some 100 ns too early, so what two threads did with a
    block may be noted in the wrong order. Where two allocations or two frees of a block follow each
    other, the second was noted too early: what comes after it comes before it.

    The first free of a block of which nothing is known may be of one from before the recording.
    What its thread did next came next."""
    np = numpy()
    there = np.append(False, take[:-1])[: len(take)]
    there[new] = known
    unknown = new.copy()
    unknown[new] = ~known
    maybe = np.flatnonzero(there == take)
    for _ in range(_SWAPS):
        maybe = maybe[maybe + 1 < len(take)]
        twice = (there[maybe] == take[maybe]) & ~new[maybe + 1] & (take[maybe + 1] != take[maybe])
        i = maybe[twice]
        i = i[calls.time[at[i + 1]] - calls.time[at[i]] < _NEAR]
        i = i[~unknown[i] | (calls.thread[at[i]] != calls.thread[at[i + 1]])]
        if not len(i):
            return
        for array in (take, at):
            array[i], array[i + 1] = array[i + 1].copy(), array[i].copy()
        there[i + 1] = take[i]
        follows = i[i + 2 < len(take)] + 2
        follows = follows[~new[follows]]
        there[follows] = take[follows - 1]
        maybe = np.unique(np.concatenate([i[i > 0] - 1, i, i + 1, follows]))


_SWAPS = 8  # of one block in a row
_NEAR = 1_000_000  # ns


class _Table:
    """Blocks in the order of addresses: many old ones, from which some are gone, and the few that
    came since these were put in order."""

    def __init__(self) -> None:
        self.old, self.new = _none(), _none()
        self.gone = numpy().zeros(0, dtype=bool)  # of the old ones
        self.lost = 0  # how many

    def out(self, grain: Any) -> tuple[Blocks, Any]:
        """Takes out those that are there; and says which are."""
        np = numpy()
        in_old, old = _find(self.old, grain)
        in_old[in_old] = ~self.gone[old]
        old = old[~self.gone[old]]
        in_new, new = _find(self.new, grain)
        place = np.cumsum(in_old | in_new) - 1
        found = _joined([self.old.part(old), self.new.part(new)])
        order = np.argsort(np.concatenate([place[in_old], place[in_new]]), kind="stable")
        self.gone[old] = True
        self.lost += len(old)
        left = np.ones(len(self.new), dtype=bool)
        left[new] = False
        self.new = self.new.part(left)
        return found.part(order), in_old | in_new

    def put(self, blocks: Blocks) -> None:
        """In the order of addresses."""
        self.new = _merged(self.new, blocks)
        if 8 * len(self.new) > len(self.old) or 4 * self.lost > len(self.old):
            self.old, self.new = self.all(), _none()
            self.gone = numpy().zeros(len(self.old), dtype=bool)
            self.lost = 0

    def all(self) -> Blocks:
        old = self.old.part(~self.gone) if self.lost else self.old
        return _merged(old, self.new)


def _find(blocks: Blocks, grain: Any) -> tuple[Any, Any]:
    """Whether each is there, and where those are."""
    np = numpy()
    if not len(blocks):
        return np.zeros(len(grain), dtype=bool), np.zeros(0, dtype="i8")
    at = np.minimum(np.searchsorted(blocks.grain, grain), len(blocks) - 1)
    there = blocks.grain[at] == grain
    return there, at[there]


def _merged(some: Blocks, more: Blocks) -> Blocks:
    np = numpy()
    if not len(some) or not len(more):
        return some if len(some) else more
    places = np.searchsorted(some.grain, more.grain) + np.arange(len(more))
    others = np.ones(len(some) + len(more), dtype=bool)
    others[places] = False
    columns = []
    for name, kind in _COLUMNS.items():
        column = np.empty(len(others), dtype=kind)
        column[places] = getattr(more, name)
        column[others] = getattr(some, name)
        columns.append(column)
    return Blocks(*columns)
