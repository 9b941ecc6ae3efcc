"""A recording in the format of heaptrack's data files, version 2: lines of text, packed with gzip.
heaptrack_print and heaptrack_gui read it. All numbers are hexadecimal; strings, addresses of code
and call paths count from 1, kinds of allocations (size and call path) from 0.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Mapping
from typing import Any

from hakmem.events import NEVER, Events
from hakmem.recording import numpy
from hakmem.symbols import Frame
from hakmem.traced import Traced

_HEAPTRACK = 0x10400  # whose files have this version
_VERSION = 2
_MS = 10  # between two times


def addresses(calls: Events) -> set[int]:
    """Addresses of code for which `data` wants names."""
    return {address for path in calls.paths.values() for address in path}


def data(told: Traced, frames: Mapping[int, Frame]) -> bytes:
    lines = [*_head(told), *_code(told, frames)]
    text = "\n".join([*lines, *_events(told)]) + "\n"
    return gzip.compress(text.encode(errors="replace"), compresslevel=1)


def _head(told: Traced) -> Iterator[str]:
    yield f"v {_HEAPTRACK:x} {_VERSION:x}"
    words = (word.replace("\n", " ") for word in told.process.facts["command"])
    yield f"X {' '.join(words)}"
    yield f"I {os.sysconf('SC_PAGESIZE'):x} {os.sysconf('SC_PHYS_PAGES'):x}"


def _code(told: Traced, frames: Mapping[int, Frame]) -> Iterator[str]:
    """Strings, addresses and call paths, then the kinds of allocations. A path is its innermost
    call and the number of the path that led there."""
    strings: dict[str, int] = {}
    numbers: dict[int, int] = {}
    nodes: dict[tuple[int, int], int] = {}
    made: list[str] = []

    def string(text: str) -> int:
        if text and text not in strings:
            strings[text] = len(strings) + 1
            made.append("s " + text.replace("\n", " "))
        return strings[text] if text else 0

    def address(call: int) -> int:
        if call not in numbers:
            frame = frames.get(call)
            module = string(frame.module.path if frame is not None and frame.module else "")
            words = [f"{call:x}", f"{module:x}"]
            for line in frame.lines if frame is not None else ():
                parts = string(line.function), string(line.file), line.line
                words += [f"{part:x}" for part in parts]
            numbers[call] = len(numbers) + 1
            made.append("i " + " ".join(words))
        return numbers[call]

    of_path: dict[int, int] = {}
    for number, path in told.calls.paths.items():
        node = 0
        for call in reversed(path):
            key = (address(call), node)
            if key not in nodes:
                nodes[key] = len(nodes) + 1
                made.append(f"t {key[0]:x} {node:x}")
            node = nodes[key]
        of_path[number] = node
    yield from made
    for size, number in _kinds(told)[0].tolist():
        yield f"a {size:x} {of_path.get(number, 0):x}"


def _kinds(told: Traced) -> tuple[Any, Any]:
    """Sizes and call paths that occur, and of each block which it has."""
    np = numpy()
    both = np.stack([told.blocks.size, told.blocks.path], axis=1)
    kinds, which = np.unique(both, axis=0, return_inverse=True)
    return kinds, which.reshape(-1)


def _events(told: Traced) -> Iterator[str]:
    np = numpy()
    held = told.blocks
    _, kind = _kinds(told)
    freed = held.end != NEVER
    # Of one call the free comes first; but clocks may have told a free before its allocation.
    ends = np.where(held.end < held.begin, held.begin * 3 + 2, held.end * 3)
    at = np.concatenate([held.begin * 3 + 1, ends[freed]])
    order = np.argsort(at, kind="stable")
    is_free = np.arange(len(at)) >= len(held.begin)
    kind = np.concatenate([kind, kind[freed]])[order].tolist()
    is_free = is_free[order].tolist()
    ms = (told.calls.time[at[order] // 3] // 1_000_000).tolist()
    told_at = -_MS
    for now, which, free in zip(ms, kind, is_free, strict=True):
        if now >= told_at + _MS:
            told_at = now
            yield f"c {now:x}"
        yield f"- {which:x}" if free else f"+ {which:x}"
