"""Which blocks a process has, call by call: each window of calls ends some and begins some."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hakmem.events import ADDRESS_BITS, Calls, Process, windows
from hakmem.recording import FREE, RESIZE, numpy

_COLUMNS = {"grain": "u8", "begin": "i8", "time": "i8", "size": "i8", "path": "i4", "thread": "u4"}


@dataclass
class Held:
    """Blocks: an element of each array for each."""

    grain: Any  # its address, in units of 16 bytes
    begin: Any  # the number of the call that allocated it
    time: Any  # of that call
    size: Any
    path: Any
    thread: Any

    def __len__(self) -> int:
        return len(self.grain)

    def part(self, which: Any) -> Held:
        return Held(*(getattr(self, name)[which] for name in _COLUMNS))


def _none() -> Held:
    return Held(*(numpy().zeros(0, dtype=kind) for kind in _COLUMNS.values()))


def _joined(parts: list[Held]) -> Held:
    np = numpy()
    return Held(*(np.concatenate([getattr(one, name) for one in parts]) for name in _COLUMNS))


@dataclass
class Window:
    """What a window of calls did. A realloc ends a block and begins one."""

    calls: Calls
    number: int  # of its first call
    takes: Any  # whether a call allocated a block
    ended: Held
    at: Any  # of each ended block the place of the call that ended it
    brief: Any  # and whether that was the next call of its thread, and freed it


class Live:
    """`held` is what is in use after the window that came last."""

    def __init__(self) -> None:
        self.calls = 0
        self.near = 0.0  # as in _swap
        self.unknown_frees = 0  # of blocks that were there before the recording
        self.unclear = 0  # allocated where they were already: their frees were not recorded
        self.table = _Table()
        self.latest = numpy().zeros(0, dtype="i8")  # the number of the last call of each thread

    @property
    def held(self) -> Held:
        return self.table.all()

    def through(self, process: Process) -> Iterator[Window]:
        """Raises NoRecording."""
        self.near = _NEAR / process.scale
        for calls in windows(process):
            if len(calls):
                yield self._window(calls)

    def _window(self, calls: Calls) -> Window:
        np = numpy()
        kind = calls.kind
        takes = (kind != FREE) & (calls.grain != 0)
        grain, at, take = _entries(calls, kind, takes)
        new = np.append(True, grain[1:] != grain[:-1])[: len(grain)]
        first = np.flatnonzero(new)
        before, known = self.table.out(grain[first])
        _swap(calls, at, take, new, known, self.near)
        there = np.append(False, take[:-1])[: len(take)]  # whether a block is, before each entry
        there[first] = known
        self.unclear += int(np.count_nonzero(there & take))
        self.unknown_frees += int(np.count_nonzero(~(there | take)))
        there[first] = False
        ends = np.flatnonzero(there)
        stays = take.copy()
        stays[ends - 1] = False
        begun, stays = ends - 1, np.flatnonzero(stays)
        ended = _joined([before, self._taken(calls, grain[begun], at[begun])])
        ended_at = np.concatenate([at[first[known]], np.maximum(at[ends], at[begun])])
        self.table.put(self._taken(calls, grain[stays], at[stays]))
        brief = (kind[ended_at] == FREE) & (self._before(calls)[ended_at] == ended.begin)
        window = Window(calls, self.calls, takes, ended, ended_at, brief)
        self.calls += len(calls)
        return window

    def _taken(self, calls: Calls, grain: Any, at: Any) -> Held:
        path = (calls.what[at] >> (ADDRESS_BITS + 3)).astype("i4")
        return Held(grain, at + self.calls, calls.time[at], calls.size[at], path, calls.thread[at])

    def _before(self, calls: Calls) -> Any:
        """The number of the call that the thread of each call made before it, or -1."""
        np = numpy()
        count = int(calls.thread.max(initial=0)) + 1
        if count == 1:
            return np.arange(self.calls - 1, self.calls - 1 + len(calls))
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


def _entries(calls: Calls, kind: Any, takes: Any) -> tuple[Any, Any, Any]:
    """By block, then in the order of calls: whose it is, the call, and whether it takes the block
    or gives it. A call first gives, then takes."""
    np = numpy()
    number = np.arange(len(calls), dtype="u8") << 1
    key = calls.what << _ORDER_BITS  # the upper bits are no address
    key |= number
    key |= takes
    own = takes | (kind == FREE)
    keys = [key if own.all() else key[own]]
    gives = np.flatnonzero((kind == RESIZE) | (calls.extra != 0))
    if len(gives):
        some = calls.part(gives)
        moved = (some.former != 0) & (some.grain != 0)
        whose = np.where(moved, some.former, some.grain)
        more = whose << _ORDER_BITS | number[gives]
        keys.append(more[moved | (kind[gives] == RESIZE)])
    key = keys[0] if len(keys) == 1 else np.concatenate(keys)
    key.sort()
    at = (key >> 1) & (1 << (_ORDER_BITS - 1)) - 1
    return key >> _ORDER_BITS, at.view("i8"), (key.view("u1")[::8] & 1).view(bool)


_ORDER_BITS = 64 - ADDRESS_BITS  # of a place among twice as many as a window has calls


def _swap(calls: Calls, at: Any, take: Any, new: Any, known: Any, near: float) -> None:
    """Processors read their clocks up to some 100 ns too early, so what two threads did with a
    block may be noted in the wrong order. Where two allocations or two frees of a block follow each
    other, the second was noted too early: what comes after it comes before it.

    They are swapped if less than `near` lies between them. The first free of a block of which
    nothing is known may be of one from before the recording: what its thread did next came next."""
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
        i = i[calls.time[at[i + 1]] - calls.time[at[i]] < near]
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
    """Held in the order of addresses: many old ones, from which some are gone, and the few that
    came since these were put in order."""

    def __init__(self) -> None:
        self.old, self.new = _none(), _none()
        self.gone = numpy().zeros(0, dtype=bool)  # of the old ones
        self.lost = 0  # how many

    def out(self, grain: Any) -> tuple[Held, Any]:
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

    def put(self, blocks: Held) -> None:
        """In the order of addresses."""
        self.new = _merged(self.new, blocks)
        if 8 * len(self.new) > len(self.old) or 4 * self.lost > len(self.old):
            self.old, self.new = self.all(), _none()
            self.gone = numpy().zeros(len(self.old), dtype=bool)
            self.lost = 0

    def all(self) -> Held:
        old = self.old.part(~self.gone) if self.lost else self.old
        return _merged(old, self.new)


def _find(blocks: Held, grain: Any) -> tuple[Any, Any]:
    """Whether each is there, and where those are."""
    np = numpy()
    if not len(blocks):
        return np.zeros(len(grain), dtype=bool), np.zeros(0, dtype="i8")
    at = np.minimum(np.searchsorted(blocks.grain, grain), len(blocks) - 1)
    there = blocks.grain[at] == grain
    return there, at[there]


def _merged(some: Held, more: Held) -> Held:
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
    return Held(*columns)
