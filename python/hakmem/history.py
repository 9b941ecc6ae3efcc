"""All calls of a process and all its blocks at once, for what looks at them in another order than
that of time. It takes some 100 bytes of memory for each call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hakmem.events import Process
from hakmem.live import Live
from hakmem.recording import numpy

NEVER = 2**62  # where a block's free would be that was not freed


@dataclass
class Events:
    """The calls, in the order in which they took effect: an element of each array for each."""

    kind: Any
    address: Any  # of the block; 0 where the call failed
    former: Any  # of the block that realloc got, if the block moved
    size: Any
    align: Any  # its logarithm, or 0
    path: Any
    thread: Any
    time: Any  # ns since the process began


@dataclass
class Blocks:
    """An element of each array for each block, and one more for each realloc, which ends it."""

    begin: Any  # the number of the call that allocated it
    end: Any  # of the one that freed it, or NEVER
    size: Any
    path: Any
    unknown_frees: int  # of blocks that were there before the recording
    unclear: int  # allocated where they were already: their frees were not recorded


def history(process: Process) -> tuple[Events, Blocks]:
    """Raises NoRecording."""
    live = Live()
    calls: list[tuple[Any, ...]] = []
    held: list[tuple[Any, ...]] = []
    for window in live.through(process):
        some = window.calls
        address, former = some.grain << 4, some.former << 4
        calls.append(
            (some.kind, address, former, some.size, some.align, some.path, some.thread, some.time)
        )
        ended = window.ended
        held.append((ended.begin, window.by + window.number, ended.size, ended.path))
    left = live.held
    held.append((left.begin, numpy().full(len(left), NEVER), left.size, left.path))
    begin, end, size, path = _joined(held, 4)
    found = Blocks(begin, end, size, path, live.unknown_frees, live.unclear)
    return _events(process, calls), found


def _events(process: Process, calls: list[tuple[Any, ...]]) -> Events:
    np = numpy()
    kind, *columns, thread, time = _joined(calls, 8)
    address, former, size, align, path = columns
    thread = np.array([*process.threads, 0], dtype="u4")[thread.astype("i8")]
    time = np.clip(np.maximum.accumulate(time) * process.scale, -NEVER, NEVER).astype("i8")
    return Events(kind, address.astype("i8"), former.astype("i8"), size, align, path, thread, time)


def _joined(parts: list[tuple[Any, ...]], columns: int) -> list[Any]:
    np = numpy()
    if not parts:
        return [np.zeros(0, dtype="i8")] * columns
    return [np.concatenate([part[at] for part in parts]) for at in range(columns)]
