"""The calls of a recorded process, made ready for the player (replay/ops.h is the format)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, BinaryIO

from hakmem.events import Process
from hakmem.history import NEVER, Blocks, Events, history
from hakmem.recording import CALLOC, FREE, REALLOC, RESIZE, NoRecording, numpy
from hakmem.touched import touched

EPOCH, OP_MALLOC, OP_CALLOC, OP_FREE, OP_REALLOC, OP_TAKE, START, END = range(8)
TOUCH_ALL = 2**22 - 1
EPOCH_OPS = 4096
EPOCH_NS = 2_000_000
EPOCHS_A_PEAK = 64  # an epoch allocates at most such a part of the peak

_HEAD = struct.Struct("<8sIIIIQQQQ")


@dataclass(frozen=True)
class Ops:
    """Made ready. The arrays of epochs have an element for each."""

    ops: Any  # 16 bytes each, thread after thread
    counts: Any  # of each thread's
    slots: int
    times: Any  # ns since the recording began, when an epoch ended
    parts: Any
    live: Any  # bytes requested and not freed when it ended
    peak: int  # most bytes requested and not freed
    calls: int
    unknown: int  # calls that can't be replayed: of blocks that were there before


def made(process: Process) -> Ops:
    """Raises NoRecording where there is nothing to replay."""
    np = numpy()
    calls, held = history(process)
    if not len(held.begin):
        raise NoRecording(f"process {process.facts['pid']} allocated nothing")
    thread = _threads(calls, process.facts["pid"])
    pages = touched(process, calls, held)
    rows = _rows(
        calls, held, thread, np.where(pages < 0, TOUCH_ALL, np.minimum(pages, TOUCH_ALL - 1))
    )
    order = np.argsort(rows["at"], kind="stable")
    rows = {name: column[order] for name, column in rows.items()}
    # Without those that only did what can't be replayed.
    others, thread = np.unique(rows["thread"][rows["thread"] > 0], return_inverse=True)
    rows["thread"][rows["thread"] > 0] = thread.reshape(-1) + 1
    change = rows["change"]
    live = np.cumsum(change)
    peak = int(live.argmax())
    time = calls.time[rows["at"] // _PLACES]
    epoch = _epochs(rows, time, peak, int(live[peak]))
    ends = np.flatnonzero(np.diff(epoch, append=-1))
    ops, counts, parts = _streams(rows, epoch, len(others) + 1)
    return Ops(
        ops,
        counts,
        int(rows["slot"].max()) + 1,
        np.maximum.accumulate(time[ends]),
        parts,
        live[ends],
        int(live[peak]),
        int((np.diff(rows["at"] // _PLACES) != 0).sum()) + 1,
        held.unknown_frees,
    )


def write(ops: Ops, file: BinaryIO) -> None:
    np = numpy()
    first = np.cumsum(ops.counts) - ops.counts
    threads = np.stack([first, ops.counts], axis=1).astype("<u8")
    epochs = np.zeros(len(ops.times), dtype=[("time", "<u8"), ("parts", "<u4"), ("unused", "<u4")])
    epochs["time"], epochs["parts"] = ops.times, ops.parts
    threads_at = 64
    epochs_at = threads_at + threads.nbytes
    ops_at = epochs_at + epochs.nbytes
    head = _HEAD.pack(
        *(b"hakmem-o", 1, len(threads), len(epochs), ops.slots),
        *(threads_at, epochs_at, ops_at, len(ops.ops)),
    )
    file.write(head.ljust(threads_at, b"\0"))
    for array in (threads, epochs, ops.ops):
        file.write(array.tobytes())


def _threads(calls: Events, first: int) -> Any:
    """Of each call the number of its thread: 0 for the process's first."""
    np = numpy()
    numbers, thread = np.unique(calls.thread, return_inverse=True)
    at = np.flatnonzero(numbers == first)
    main = int(at[0]) if len(at) else int(thread[0])
    renumbered = np.arange(len(numbers))
    renumbered[main], renumbered[:main] = 0, np.arange(1, main + 1)
    return renumbered[thread.reshape(-1)]


# Where an operation of a call comes among those of the call.
_LOST, _TAKEN, _MAIN, _LATE, _PLACES = range(5)


def _rows(calls: Events, held: Blocks, thread: Any, touch: Any) -> dict[str, Any]:
    """The operations, in no order: an element of each array for each."""
    np = numpy()
    begin, end = held.begin, held.end
    freed = end != NEVER
    last = np.where(freed, end, 0)
    kind = calls.kind[last]
    address = calls.address[begin]
    # Two clocks may have told that a block was freed before it was allocated.
    late = freed & (end < begin)
    moves_it = (kind == REALLOC) & (calls.former[last] == address)
    by_realloc = freed & ~late & ((kind == RESIZE) | moves_it)
    by_free = freed & ~late & (kind == FREE)
    lost = freed & ~late & ~by_realloc & ~by_free
    mine = ~freed | late | lost | (thread[last] == thread[begin])
    slot = _slots(address, thread[begin], mine)

    before = np.full(len(calls.kind), -1)  # the block that a call's realloc got
    before[end[by_realloc]] = np.flatnonzero(by_realloc)
    from_block = before[begin]
    is_realloc = from_block >= 0
    from_slot = np.where(is_realloc, slot[from_block], 0)
    moves = is_realloc & (from_slot != slot)
    what = np.where(
        is_realloc, OP_REALLOC, np.where(calls.kind[begin] == CALLOC, OP_CALLOC, OP_MALLOC)
    )
    change = held.size - np.where(is_realloc, held.size[from_block], 0)
    zero = np.zeros(len(begin), dtype="i8")
    everyone = np.ones(len(begin), dtype=bool)

    def part(which: Any, at: Any, by: Any, op: Any, **more: Any) -> dict[str, Any]:
        columns = {"at": at, "thread": by, "kind": op + zero, "slot": slot, "size": zero,
                   "align": zero, "touch": zero, "change": zero} | more  # fmt: skip
        return {name: column[which] for name, column in columns.items()}

    parts = [
        part(moves, begin * _PLACES + _TAKEN, thread[begin], OP_TAKE, slot=from_slot),
        part(everyone, begin * _PLACES + _MAIN, thread[begin], what, size=held.size,
             align=calls.align[begin].astype("i8"), touch=touch, change=change),
        part(by_free, last * _PLACES + _MAIN, thread[last], OP_FREE, change=-held.size),
        part(late, begin * _PLACES + _LATE, thread[begin], OP_FREE, change=-held.size),
        part(lost, last * _PLACES + _LOST, thread[begin], OP_FREE, change=-held.size),
    ]  # fmt: skip
    return {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}


def _slots(address: Any, thread: Any, mine: Any) -> Any:
    """A place for each block. Blocks of one thread alone share one if they had the same address,
    since they were there one after the other; others have their own."""
    np = numpy()
    slot = np.zeros(len(address), dtype="i8")
    _, place = np.unique(address, return_inverse=True)
    key = place.reshape(-1) * (int(thread.max()) + 1) + thread
    _, shared = np.unique(key[mine], return_inverse=True)
    slot[mine] = shared.reshape(-1)
    first = int(slot.max()) + 1
    slot[~mine] = first + np.arange(int((~mine).sum()))
    return slot


def _epochs(rows: dict[str, Any], time: Any, top: int, peak: int) -> Any:
    """The number of the epoch of each operation: the order of those of different threads is kept
    between epochs. One ends at the peak."""
    np = numpy()
    number = np.arange(len(time))
    allocated = np.cumsum(np.maximum(rows["change"], 0))
    most = max(peak // EPOCHS_A_PEAK, 2**16)
    changes = np.zeros(len(time), dtype=bool)
    for measure in (number // EPOCH_OPS, allocated // most, time // EPOCH_NS):
        changes[1:] |= np.diff(measure) != 0
    if top + 1 < len(changes):
        changes[top + 1] = True
    return np.cumsum(changes)


def _streams(rows: dict[str, Any], epoch: Any, threads: int) -> tuple[Any, Any, Any]:
    """The operations of each thread after the other's, and how many each has; and how many threads
    have a part in each epoch."""
    np = numpy()
    thread = rows["thread"]
    others = np.arange(1, threads)
    count = int(epoch[-1]) + 1
    pairs = np.unique(thread * count + epoch)
    starts = pairs[np.searchsorted(pairs, others * count)] % count
    ends = pairs[np.searchsorted(pairs, (others + 1) * count) - 1] % count
    first = np.zeros(threads - 1, dtype="i8")
    pairs = np.unique(np.concatenate([pairs, starts, ends]))
    part_thread, part_epoch = pairs // count, pairs % count
    parts = np.bincount(part_epoch, minlength=count)

    main = np.zeros(len(thread), dtype=_OP)
    main["slot"], main["size"] = rows["slot"], rows["size"]
    main["bits"] = rows["kind"] | rows["align"] << 4 | rows["touch"] << 10
    groups = (
        (main, thread, epoch, 2),
        (_simple(EPOCH, part_epoch), part_thread, part_epoch, 0),
        (_simple(START, others), first, starts, 1),
        (_simple(END, others), first, ends, 3),
    )
    ops, whose, when = (np.concatenate([group[at] for group in groups]) for at in range(3))
    which = np.concatenate([np.full(len(group[0]), group[3], dtype="u1") for group in groups])
    order = np.lexsort((which, when, whose))
    return ops[order], np.bincount(whose, minlength=threads), parts


_OP = [("slot", "<u4"), ("bits", "<u4"), ("size", "<u8")]


def _simple(kind: int, numbers: Any) -> Any:
    np = numpy()
    ops = np.zeros(len(numbers), dtype=_OP)
    ops["slot"], ops["bits"] = numbers, kind
    return ops
