"""A recording: a file with all events of the processes that were recorded, compressed.

After a first line come blocks: four letters, the length of what follows, its CRC-32, and that,
compressed with zstd. A file that was cut off is read up to the last whole block.

  PROC  a process, as JSON: its number, parent, program, clock
  MAPS  the text of its /proc/PID/maps, as JSON
  SEEN  how many pages of some blocks are there, as JSON (touched.py)
  EVTS  chunks of events, as in the process's ring (ring.py), by columns
  DONE  a process has ended, or was no longer recorded, as JSON
"""

from __future__ import annotations

import json
import os
import stat
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from hakmem.modules import need

FIRST_LINE = b"hakmem recording 1\n"
_BLOCK = struct.Struct("<4sII")
_EVENTS = struct.Struct("<III")
LEVEL = 1
BLOCK_MOST = 2**26  # bytes of a block, packed or not; the recorder writes some MiB at most

MALLOC, CALLOC, FREE, REALLOC, RESIZE, MORE, PATH = range(1, 8)


class NoRecording(Exception):
    """A line for the user: the file is no recording, or can't be read."""

    status = 1


def numpy() -> Any:
    return need("numpy")[0]


def zstandard() -> Any:
    return need("zstandard")[0]


@dataclass
class Chunks:
    """Events of one process. The first five have an element for each chunk; `events` has two words
    for each event, chunk after chunk."""

    threads: Any
    counts: Any
    orders: Any
    ticks: Any
    times: Any
    events: Any


def check(path: Path) -> None:
    """Whether it begins as a recording, which needs no module. Raises NoRecording."""
    try:
        with path.open("rb") as file:
            if file.readline(len(FIRST_LINE)) != FIRST_LINE:
                raise NoRecording(f"{path}: not a recording of hakmem")
    except OSError as error:
        raise NoRecording(f"{path}: {error.strerror}") from error


class Writer:
    """Each call writes whole blocks, or raises OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("wb", buffering=0)
        self.size = 0
        self.compressor = zstandard().ZstdCompressor(level=LEVEL)
        self.room = bytearray()  # what is to be compressed
        self._write(FIRST_LINE)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self.file.write(view) :]
        self.size += len(data)

    def block(self, kind: bytes, payload: bytes | memoryview) -> None:
        packed = self.compressor.compress(payload)
        head = _BLOCK.pack(kind, len(packed), zlib.crc32(packed))
        try:
            self._write(head + packed)
        except OSError:
            self.file.truncate(self.size)
            raise

    def said(self, kind: bytes, facts: dict[str, Any]) -> None:
        self.block(kind, json.dumps(facts).encode())

    def events(self, process: int, chunks: Chunks) -> None:
        """Changes the times of the events in place."""
        words = chunks.events.view("<u4").reshape(-1, 4)
        words[1:, _TIME] = numpy().diff(words[:, _TIME])
        columns = chunks.threads, chunks.counts, chunks.orders, chunks.ticks, chunks.times
        head = _EVENTS.pack(process, len(chunks.counts), len(words))
        head += b"".join(column.tobytes() for column in columns)
        length = len(head) + 16 * len(words)
        if len(self.room) < length:
            self.room = bytearray(length)
        self.room[: len(head)] = head
        planes = numpy().frombuffer(self.room, "u1", 16 * len(words), len(head))
        planes.reshape(16, -1)[:] = words.view("u1").T
        self.block(b"EVTS", memoryview(self.room)[:length])

    def close(self) -> None:
        self.file.close()


# Of all events the first byte is written, then the second, and so on: bytes that hardly change take
# no room so. Of times the differences.
_TIME = 2  # of the four halves of an event's words


def _unpacked(payload: bytes) -> tuple[int, Chunks]:
    np = numpy()
    process, count, events = _EVENTS.unpack_from(payload)
    at = _EVENTS.size
    columns = []
    for kind in ("<u4", "<u4", "<u8", "<u8", "<u8"):
        columns.append(np.frombuffer(payload, dtype=kind, count=count, offset=at))
        at += columns[-1].nbytes
    if int(columns[1].sum()) != events:
        raise ValueError
    planes = np.frombuffer(payload, dtype="u1", count=16 * events, offset=at).reshape(16, events)
    words = planes.T.copy().view("<u4")
    words[:, _TIME] = np.cumsum(words[:, _TIME], dtype="<u4")
    threads, counts, orders, ticks, times = columns
    return process, Chunks(threads, counts, orders, ticks, times, words.view("<u8"))


@dataclass
class Block:
    kind: bytes
    at: int  # where it is in the file
    facts: dict[str, Any]  # of JSON
    process: int = 0
    chunks: Chunks | None = None


# Which numbers a block of facts has at least, and which texts.
_NUMBERS = {
    b"PROC": ("pid", "parent", "tick_shift", "ticks", "time"),
    b"MAPS": (),
    b"SEEN": ("time",),
    b"DONE": ("lost", "waited_ns"),
}


def _check(kind: bytes, facts: Any) -> None:
    """Raises ValueError, KeyError, TypeError where anything is missing or of another kind."""
    for name in ("process", *_NUMBERS[kind]):
        if type(facts[name]) is not int or not 0 <= facts[name] < 2**63:
            raise ValueError
    if kind == b"PROC":
        if facts["tick_shift"] > 32 or not all(type(word) is str for word in facts["command"]):
            raise ValueError
    elif kind == b"MAPS" and type(facts["maps"]) is not str:
        raise ValueError
    elif kind == b"SEEN":
        for address, pages in facts["blocks"]:
            if type(address) is not int or type(pages) is not int or pages < 0:
                raise ValueError


_WRONG = ValueError, KeyError, TypeError, RecursionError  # what reading facts that are none raises


class Reader:
    """The blocks of a file; `whole` says in the end whether there was nothing else."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.whole = True
        self.unpacker = zstandard().ZstdDecompressor()

    def __iter__(self) -> Iterator[Block]:
        """Raises NoRecording."""
        with self._opened() as file:
            size = os.fstat(file.fileno()).st_size
            while (at := file.tell()) < size:
                block = self._block(file)
                if block is None:
                    self.whole = False
                    return
                yield replace(block, at=at)

    def events(self, places: Iterable[int]) -> Iterator[Chunks]:
        """Of blocks that were read before, by where they are. Raises NoRecording."""
        with self._opened() as file:
            for at in places:
                file.seek(at)
                block = self._block(file)
                if block is None or block.chunks is None:
                    raise NoRecording(f"{self.path}: changed while it was read: try again")
                yield block.chunks

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        try:
            with self.path.open("rb") as file:
                if file.readline(len(FIRST_LINE)) != FIRST_LINE:
                    raise NoRecording(f"{self.path}: not a recording of hakmem")
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise NoRecording(f"{self.path}: a recording is read twice: give a file")
                yield file
        except OSError as error:
            raise NoRecording(f"{self.path}: {error.strerror}") from error

    def _block(self, file: BinaryIO) -> Block | None:
        """The next one, or nothing if it is cut off or damaged."""
        head = file.read(_BLOCK.size)
        if len(head) < _BLOCK.size:
            return None
        kind, length, check = _BLOCK.unpack(head)
        packed = file.read(length) if length <= BLOCK_MOST else b""
        if len(packed) < length or zlib.crc32(packed) != check:
            return None
        try:
            if zstandard().frame_content_size(packed) > BLOCK_MOST:
                return None
            payload = self.unpacker.decompress(packed, max_output_size=BLOCK_MOST)
            if kind == b"EVTS":
                return Block(kind, 0, {}, *_unpacked(payload))
            facts = json.loads(payload)
            _check(kind, facts)
            return Block(kind, 0, facts, facts["process"])
        except (*_WRONG, struct.error, zstandard().ZstdError):
            return None
