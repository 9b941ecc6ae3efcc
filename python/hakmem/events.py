"""What a recording says of a process: its calls in one order, and its blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hakmem.recording import (
    FREE,
    MORE,
    PATH,
    RESIZE,
    Chunks,
    NoRecording,
    Reader,
    numpy,
)

NEVER = 2**62  # where a block's free would be that was not freed


@dataclass
class Process:
    """As the recorder found it."""

    number: int
    facts: dict[str, Any]
    maps: list[str] = field(default_factory=list)
    parts: list[Chunks] = field(default_factory=list)
    # When the recorder looked, in ns, and of some blocks the address and the pages there.
    looks: list[tuple[int, list[tuple[int, int]]]] = field(default_factory=list)
    done: dict[str, Any] | None = None  # None: the recording was cut off
    scale: float = 1.0  # ns for each unit of an event's time

    @property
    def name(self) -> str:
        words: list[str] = self.facts["command"]
        return Path(words[0]).name if words else f"process {self.facts['pid']}"


@dataclass
class Events:
    """The calls of a process, in the order in which they took effect: an element of each array for
    each call."""

    kind: Any
    address: Any  # of the block; 0 where the call failed
    former: Any  # of the block that realloc got, if the block moved
    size: Any
    align: Any  # its logarithm, or 0
    path: Any
    thread: Any
    time: Any  # ns since the recording began
    paths: dict[int, tuple[int, ...]]  # where the calls are, the innermost first


@dataclass
class Blocks:
    """An element of each array for each block, and one more for each realloc, which ends it."""

    begin: Any  # the number of the call that allocated it
    end: Any  # of the one that freed it, or NEVER
    size: Any
    path: Any
    unknown_frees: int  # of blocks that were there before the recording
    unclear: int  # allocated where they were already: their frees were not recorded


def processes(path: Path) -> tuple[list[Process], bool]:
    """And whether the file is whole. Raises NoRecording."""
    reader = Reader(path)
    found: dict[int, Process] = {}
    for block in reader:
        if block.kind == b"PROC":
            found[block.process] = Process(block.process, block.facts)
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
            process.parts.append(block.chunks)
    _give_scale(found.values())
    return list(found.values()), reader.whole


def calls_of(process: Process) -> int:
    """About how many; quick."""
    return sum(len(part.events) for part in process.parts)


def chosen(found: list[Process], pid: int | None, file: Path) -> Process:
    """The process with this PID, or that with most calls. Raises NoRecording."""
    some = [one for one in found if pid is None or one.facts["pid"] == pid]
    if not some:
        raise NoRecording(f"{file}: has no process" + (f" {pid}" if pid else ""))
    return max(some, key=calls_of)


def events(process: Process) -> Events:
    """Raises NoRecording."""
    np = numpy()
    if not process.parts:
        no = np.zeros(0, dtype="i8")
        return Events(no, no, no, no, no, no, no, no, {})
    words, counts, ticks, threads = (
        np.concatenate([getattr(part, name) for part in process.parts])
        for name in ("events", "counts", "ticks", "threads")
    )
    counts = counts.astype("i8")
    shift = process.facts["tick_shift"]
    what, when = words[:, 0], words[:, 1]
    kind = (what >> 44 & 7).astype("u1")
    main = (kind != 0) & (kind != PATH) & (kind != MORE)
    timed = np.flatnonzero(main | (kind == PATH))
    time = np.zeros(len(kind), dtype="i8")
    time[timed] = _times(when, timed, counts, (ticks >> shift).astype("i8"))
    former = np.zeros(len(kind), dtype="u8")
    align = np.zeros(len(kind), dtype="u1")
    size = when >> 32
    more = np.flatnonzero(kind[:-1] == MORE)
    former[more + 1] = (what[more] & _ADDRESS) << 4
    align[more + 1] = what[more] >> 47
    size[more + 1] |= (when[more] & 0xFFFFFFFF) << 32
    at = np.flatnonzero(main)
    if (size[at][what[at] & _ADDRESS != 0] >= _ADDRESS_SPACE).any():
        raise NoRecording("damaged: it has a block that no address space holds")
    at = at[np.argsort(time[at], kind="stable")]
    since = time[at] - (process.facts["ticks"] >> shift)
    return Events(
        kind[at],
        ((what[at] & _ADDRESS) << 4).astype("i8"),
        former[at].astype("i8"),
        size[at].astype("i8"),
        align[at],
        (what[at] >> 47).astype("i8"),
        np.repeat(threads, counts)[at],
        (since * process.scale).astype("i8"),
        _paths(what, when, kind),
    )


_ADDRESS = 2**44 - 1
_ADDRESS_SPACE = 2**47


def _times(when: Any, timed: Any, counts: Any, begun: Any) -> Any:
    """In full, of the events that have one. An event has the lower half, and follows the one before
    it, or the begin of its chunk, by less than half of what that can express."""
    np = numpy()
    chunk = np.repeat(np.arange(len(counts)), counts)[timed]
    low = (when[timed] & 0xFFFFFFFF).astype("i8")
    first = np.diff(chunk, prepend=-1) != 0
    steps = np.diff(low, prepend=0)
    steps[first] = low[first] - (begun[chunk[first]] & 0xFFFFFFFF)
    steps = (steps + 2**31) % 2**32 - 2**31
    sums = np.cumsum(steps)
    before = (sums - steps)[first]
    return begun[chunk] + sums - before[np.cumsum(first) - 1]


def _give_scale(found: Iterable[Process]) -> None:
    """ns for each unit of an event's time, by both clocks of the start and of the last chunk, where
    most time is between these."""
    longest, scale = 0, 1.0
    for process in found:
        if process.parts and len(process.parts[-1].times):
            last = process.parts[-1]
            time = int(last.times[-1]) - process.facts["time"]
            ticks = int(last.ticks[-1]) - process.facts["ticks"]
            if time > longest and ticks > 0:
                longest, scale = time, time / ticks
    for process in found:
        process.scale = scale * 2 ** process.facts["tick_shift"]


def _paths(what: Any, when: Any, kind: Any) -> dict[int, tuple[int, ...]]:
    np = numpy()
    first = what & _ADDRESS | what >> 47 << 44
    found = {}
    at = np.flatnonzero(kind == PATH)
    numbers, counts = (what[at] >> 47).tolist(), (when[at] >> 32).tolist()
    for begin, number, count in zip((at + 1).tolist(), numbers, counts, strict=True):
        rows = slice(begin, begin + (count + 1) // 2)
        addresses = np.stack([first[rows], when[rows]], axis=1).reshape(-1)
        found[number] = tuple(addresses[:count].tolist())
    return found


def blocks(calls: Events) -> Blocks:
    """From when to when each block was in use.

    Processors read their clocks up to some 100 ns too early, so what two threads did with a block
    may be noted in the wrong order."""
    np = numpy()
    moved = calls.former != 0
    there = calls.address != 0
    gives = (calls.kind == FREE) | (calls.kind == RESIZE) | (moved & there)
    takes = (calls.kind != FREE) & there
    # Of each call first what it frees, then what it allocates.
    after = np.cumsum(gives.astype("i8") + takes)
    count = int(after[-1]) if len(after) else 0
    address = np.zeros(count, dtype="i8")
    at = np.zeros(count, dtype="i8")
    take = np.zeros(count, dtype=bool)
    number = np.arange(len(calls.kind))
    place = (after - takes)[gives] - 1
    address[place] = np.where(moved, calls.former, calls.address)[gives]
    at[place] = number[gives]
    place = after[takes] - 1
    address[place] = calls.address[takes]
    at[place] = number[takes]
    take[place] = True
    order = np.argsort(address, kind="stable")
    address, at, take = address[order], at[order], take[order]
    _swap(address, take, at, calls)
    same = np.append(address[1:] == address[:-1], False)
    ended = take & same & ~np.append(take[1:], True)
    again = take & same & np.append(take[1:], False)
    began = np.append(False, (take & same)[:-1])
    begin = at[take]
    end = np.full(len(at), NEVER)
    end[ended] = np.append(at[1:], 0)[ended]
    end[again] = np.append(at[1:], 0)[again]  # its free was not recorded
    return Blocks(
        begin,
        end[take],
        calls.size[begin],
        calls.path[begin],
        int((~take & ~began).sum()),
        int(again.sum()),
    )


def _swap(address: Any, take: Any, at: Any, calls: Events) -> None:
    """Where two allocations or two frees of an address follow each other, the second was noted too
    early: what comes after it comes before it."""
    np = numpy()
    same = address[1:] == address[:-1]
    for _ in range(_SWAPS):
        twice = take[:-2] == take[1:-1]
        twice = np.flatnonzero(same[:-1] & same[1:] & twice & (take[1:-1] != take[2:])) + 1
        i = twice[calls.time[at[twice + 1]] - calls.time[at[twice]] < _NEAR]
        if not len(i):
            return
        for array in (take, at):
            array[i], array[i + 1] = array[i + 1].copy(), array[i].copy()


_SWAPS = 8  # of one address in a row
_NEAR = 1_000_000  # ns
