"""A recording in the format of heaptrack's data files, version 2: lines of text, packed with gzip.
heaptrack_print and heaptrack_gui read it. All numbers are hexadecimal; strings, addresses of code
and call paths count from 1, kinds of allocations (size and call path) from 0. The calls are read
once more for it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hakmem.events import Process
from hakmem.live import Live, Window
from hakmem.recording import numpy
from hakmem.symbols import Frame

_HEAPTRACK = 0x10400  # whose files have this version
_VERSION = 2
_MS = 10  # between two times


def addresses(process: Process) -> set[int]:
    """Addresses of code for which `data` wants names."""
    return {address for number in process.paths for address in process.path(number)}


def data(process: Process, frames: Mapping[int, Frame]) -> Iterator[bytes]:
    """In parts, so that it needs no more memory where the recording is longer. Raises
    NoRecording."""
    packer = zlib.compressobj(1, wbits=16 + zlib.MAX_WBITS)  # as gzip
    for lines in _parts(process, frames):
        yield packer.compress("".join(line + "\n" for line in lines).encode(errors="replace"))
    yield packer.flush()


def _parts(process: Process, frames: Mapping[int, Frame]) -> Iterator[Iterable[str]]:
    made = _Code(process, frames)
    yield _head(process)
    yield made.lines
    events = _Events(process, made.of_path)
    for window in Live().through(process):
        yield events.lines(window)


def _head(process: Process) -> Iterator[str]:
    yield f"v {_HEAPTRACK:x} {_VERSION:x}"
    words = (word.replace("\n", " ") for word in process.facts["command"])
    yield f"X {' '.join(words)}"
    yield f"I {os.sysconf('SC_PAGESIZE'):x} {os.sysconf('SC_PHYS_PAGES'):x}"


class _Code:
    """Strings, addresses and call paths. A path is its innermost call and the number of the path
    that led there."""

    def __init__(self, process: Process, frames: Mapping[int, Frame]) -> None:
        self.lines: list[str] = []
        self.of_path: dict[int, int] = {}
        self.frames = frames
        self.strings: dict[str, int] = {}
        self.addresses: dict[int, int] = {}
        nodes: dict[tuple[int, int], int] = {}
        for number in process.paths:
            node = 0
            for call in reversed(process.path(number)):
                key = (self._address(call), node)
                if key not in nodes:
                    nodes[key] = len(nodes) + 1
                    self.lines.append(f"t {key[0]:x} {node:x}")
                node = nodes[key]
            self.of_path[number] = node

    def _string(self, text: str) -> int:
        if text and text not in self.strings:
            self.strings[text] = len(self.strings) + 1
            self.lines.append("s " + text.replace("\n", " "))
        return self.strings[text] if text else 0

    def _address(self, call: int) -> int:
        if call not in self.addresses:
            frame = self.frames.get(call)
            module = self._string(frame.module.path if frame is not None and frame.module else "")
            words = [f"{call:x}", f"{module:x}"]
            for line in frame.lines if frame is not None else ():
                parts = self._string(line.function), self._string(line.file), line.line
                words += [f"{part:x}" for part in parts]
            self.addresses[call] = len(self.addresses) + 1
            self.lines.append("i " + " ".join(words))
        return self.addresses[call]


_SIZE_BITS = 47


class _Events:
    def __init__(self, process: Process, of_path: Mapping[int, int]) -> None:
        self.scale = process.scale
        self.of_path = of_path
        self.kinds: dict[int, int] = {}  # by path and size
        self.told_at = -_MS

    def lines(self, window: Window) -> list[str]:
        """Of one call the free comes first; but clocks may have told a free before its
        allocation."""
        np = numpy()
        calls, ended = window.calls, window.ended
        takes = np.flatnonzero(window.takes)
        at_once = ended.begin == window.at + window.number
        at = np.concatenate([takes * 3 + 1, window.at * 3 + 2 * at_once])
        path, size = calls.path[takes], calls.size[takes]
        key = np.concatenate([path << _SIZE_BITS | size, _wide(ended.path) | ended.size])
        keys, kind = np.unique(key, return_inverse=True)
        made = self._new(keys.tolist())
        kind = np.array([self.kinds[one] for one in keys.tolist()], dtype="i8")[kind.reshape(-1)]
        order = np.argsort(at, kind="stable")
        ms = (calls.time[at[order] // 3] * self.scale / 1e6).astype("i8").tolist()
        free = (order >= len(takes)).tolist()
        for now, which, is_free in zip(ms, kind[order].tolist(), free, strict=True):
            if now >= self.told_at + _MS:
                self.told_at = now
                made.append(f"c {now:x}")
            made.append(f"- {which:x}" if is_free else f"+ {which:x}")
        return made

    def _new(self, keys: list[int]) -> list[str]:
        """What describes kinds that were not there before."""
        made = []
        for key in keys:
            if key not in self.kinds:
                self.kinds[key] = len(self.kinds)
                path, size = (key % 2**64) >> _SIZE_BITS, key & (1 << _SIZE_BITS) - 1
                made.append(f"a {size:x} {self.of_path.get(path, 0):x}")
        return made


def _wide(path: Any) -> Any:
    return path.astype("i8") << _SIZE_BITS
