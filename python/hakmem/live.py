"""Which blocks a process has, call by call: each window of calls ends some and begins some."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hakmem.events import ADDRESS_BITS, Calls, Process, Seam, windows
from hakmem.recording import FREE, RESIZE, numpy

_COLUMNS = {"begin": "i8", "time": "i8", "size": "i8", "path": "i4", "thread": "u4"}


@dataclass
class Held:
    """Blocks: an element of each array for each."""

    begin: Any  # the number of the call that allocated it
    time: Any  # of that call
    size: Any
    path: Any
    thread: Any

    def __len__(self) -> int:
        return len(self.begin)

    def part(self, which: Any) -> Held:
        return Held(*(getattr(self, name)[which] for name in _COLUMNS))


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
    by: Any  # of each ended block the place of the call that ended it
    at: Any  # and from which call on it is gone: not before it was there, as clocks may have said
    brief: Any  # and whether the next call of its thread freed it
    unknown: Any  # places of calls that freed a block from before the recording
    unclear: Any  # and that allocated one where there was one

    def between(self, first: int, last: int) -> Window:
        """Of these calls, the last one not included."""
        np = numpy()
        own = (self.at >= first) & (self.at < last)
        unknown, unclear = (
            places[(places >= first) & (places < last)] - first
            for places in (self.unknown, self.unclear)
        )
        return Window(
            self.calls.part(slice(first, last)),
            self.number + first,
            self.takes[first:last],
            self.ended.part(own),
            np.maximum(self.by[own] - first, 0),
            self.at[own] - first,
            self.brief[own],
            unknown,
            unclear,
        )


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

    def through(self, process: Process, seam: Seam | None = None) -> Iterator[Window]:
        """`seam`: what this has seen of the process ends there. Raises NoRecording."""
        self.near = _NEAR / process.scale
        for calls in windows(process, seam):
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
        unclear, unknown = at[there & take], at[~(there | take)]
        self.unclear += len(unclear)
        self.unknown_frees += len(unknown)
        there[first] = False
        ends = np.flatnonzero(there)
        stays = take.copy()
        stays[ends - 1] = False
        begun, stays = ends - 1, np.flatnonzero(stays)
        ended = _joined([before, self._taken(calls, at[begun])])
        by = np.concatenate([at[first[known]], at[ends]])
        gone = np.concatenate([at[first[known]], np.maximum(at[ends], at[begun])])
        self.table.put(grain[stays], self._taken(calls, at[stays]))
        brief = (kind[by] == FREE) & (self._before(calls)[by] == ended.begin)
        window = Window(calls, self.calls, takes, ended, by, gone, brief, unknown, unclear)
        self.calls += len(calls)
        return window

    def _taken(self, calls: Calls, at: Any) -> Held:
        path = (calls.what[at] >> (ADDRESS_BITS + 3)).astype("i4")
        return Held(at + self.calls, calls.time[at], calls.size[at], path, calls.thread[at])

    def _before(self, calls: Calls) -> Any:
        """The number of the call that the thread of each call made before it, or -1."""
        np = numpy()
        count = max(int(calls.thread.max()) + 1, len(self.latest))
        self.latest = np.append(self.latest, np.full(count - len(self.latest), -1))
        if count == 1:
            self.latest[0] = self.calls + len(calls) - 1
            return np.arange(self.calls - 1, self.calls - 1 + len(calls))
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
    block = np.cumsum(new)
    maybe = np.flatnonzero(there == take)
    for _ in range(_SWAPS):
        maybe = maybe[maybe + 1 < len(take)]
        twice = (there[maybe] == take[maybe]) & ~new[maybe + 1] & (take[maybe + 1] != take[maybe])
        i = maybe = maybe[twice]
        i = i[calls.time[at[i + 1]] - calls.time[at[i]] < near]
        i = i[~unknown[i] | (calls.thread[at[i]] != calls.thread[at[i + 1]])]
        # The first of each block: it may be the reason for those after it.
        i = i[np.append(True, block[i[1:]] != block[i[:-1]])[: len(i)]]
        if not len(i):
            return
        for array in (take, at):
            array[i], array[i + 1] = array[i + 1].copy(), array[i].copy()
        there[i + 1] = take[i]
        follows = i[i + 2 < len(take)] + 2
        follows = follows[~new[follows]]
        there[follows] = take[follows - 1]
        maybe = np.unique(np.concatenate([maybe, follows]))


_SWAPS = 1000  # of one block in a window
_NEAR = 1_000_000  # ns


class _Layer:
    """Addresses of blocks in their order, and the places of these blocks. Some are gone."""

    def __init__(self, grain: Any, place: Any) -> None:
        self.grain, self.place = grain, place
        self.gone = numpy().zeros(len(grain), dtype=bool)
        self.left = len(grain)

    def out(self, grain: Any) -> tuple[Any, Any]:
        """Takes out those that are there: which of the addresses these are, and the places."""
        np = numpy()
        if not self.left:
            return np.zeros(0, dtype="i8"), np.zeros(0, dtype="u4")
        at = np.minimum(np.searchsorted(self.grain, grain), len(self.grain) - 1)
        which = np.flatnonzero((self.grain[at] == grain) & ~self.gone[at])
        at = at[which]
        self.gone[at] = True
        self.left -= len(at)
        return which, self.place[at]


def _merged(some: _Layer, more: _Layer) -> _Layer:
    np = numpy()
    grain = some.grain[~some.gone], more.grain[~more.gone]
    new = np.searchsorted(*grain) + np.arange(more.left)
    old = np.ones(some.left + more.left, dtype=bool)
    old[new] = False
    merged = _Layer(np.empty(len(old), dtype="u8"), np.empty(len(old), dtype="u4"))
    merged.grain[old], merged.grain[new] = grain
    del grain
    merged.place[old], merged.place[new] = some.place[~some.gone], more.place[~more.gone]
    return merged


class _Table:
    """The blocks in use. They stay at their places; where the block of an address is, layers know,
    each a fraction of the one before it: so what comes and goes changes the last ones only."""

    def __init__(self) -> None:
        np = numpy()
        self.rows = np.empty(0, dtype=list(_COLUMNS.items()))
        self.free = np.zeros(0, dtype="u4")  # places
        self.layers: list[_Layer] = []

    def out(self, grain: Any) -> tuple[Held, Any]:
        """Takes out those that are there; and says which are."""
        np = numpy()
        found = [layer.out(grain) for layer in self.layers]
        there = np.zeros(len(grain), dtype=bool)
        if not found:
            return self._held(self.free[:0]), there
        which, place = (np.concatenate([one[at] for one in found]) for at in range(2))
        there[which] = True
        place = place[np.argsort(which)]
        self.free = np.append(self.free, place)
        return self._held(place), there

    def put(self, grain: Any, held: Held) -> None:
        """In the order of addresses."""
        np = numpy()
        lacking = len(held) - len(self.free)
        if lacking > 0:
            count = len(self.rows)
            self.free = np.append(self.free, np.arange(count, count + lacking, dtype="u4"))
            self.rows.resize(count + lacking, refcheck=False)
        left = len(self.free) - len(held)
        place, self.free = self.free[left:], self.free[:left]
        rows = np.empty(len(held), dtype=self.rows.dtype)
        for name in _COLUMNS:
            rows[name] = getattr(held, name)
        self.rows[place] = rows
        self.layers.append(_Layer(grain, place))
        while len(self.layers) > 1 and self.layers[-2].left < _FRACTION * self.layers[-1].left:
            last = self.layers.pop()
            self.layers[-1] = _merged(self.layers[-1], last)

    def __len__(self) -> int:
        return sum(layer.left for layer in self.layers)

    def all(self) -> Held:
        np = numpy()
        places = [layer.place[~layer.gone] for layer in self.layers]
        return self._held(np.concatenate([self.free[:0], *places]))

    def in_order(self) -> tuple[Any, Held]:
        """Their addresses, and they."""
        np = numpy()
        none = np.zeros(0, dtype="u8")
        grain = np.concatenate([none, *(layer.grain[~layer.gone] for layer in self.layers)])
        order = np.argsort(grain)
        return grain[order], self.all().part(order)

    def _held(self, place: Any) -> Held:
        rows = self.rows[place]
        return Held(*(rows[name].copy() for name in _COLUMNS))


_FRACTION = 4
