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

import functools
import json
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from hakmem.arguments import missing_status
from hakmem.modules import need

FIRST_LINE = b"hakmem recording 1\n"
_BLOCK = struct.Struct("<4sII")
_EVENTS = struct.Struct("<III")
LEVEL = 1
_NO_FILE = "a recording is read more than once; write it to a file, and name that"
BLOCK_MOST = 2**26  # bytes of a block, packed or not; the recorder writes some MiB at most
VALUES_MOST = 2**22  # of facts; a process has one for the name of each thread
PROCESS_MOST = 2**16  # bytes of what is said of a process at its begin
LINE_MOST = 2**15  # of its mappings

MALLOC, CALLOC, FREE, REALLOC, RESIZE, MORE, PATH = range(1, 8)


class NoRecording(Exception):
    """A line for the user: the file is no recording, or can't be read."""

    def __init__(self, line: str, status: int = 1) -> None:
        super().__init__(line)
        self.status = status


@functools.cache
def numpy() -> Any:
    return need("numpy")[0]


@functools.cache
def zstandard() -> Any:
    return need("zstandard")[0]


class Words:
    """The 16 bytes of each event, as a block of the file has them: of all events the first byte,
    then of all the second, and so on."""

    def __init__(self, planes: Any, time: Any | None = None) -> None:
        """`planes` has the times as differences, if they are not given."""
        self.planes = planes
        if time is None:
            time = numpy().cumsum(_joined(planes[8:12], "<u4"), dtype="<u4")
        self.time = time  # the lower half of the second word: of the time
        self.kind = planes[5] >> 4 & 7

    def __len__(self) -> int:
        return len(self.time)

    def part(self, which: Any) -> Words:
        return Words(self.planes[:, which], self.time[which])

    @property
    def what(self) -> Any:
        """The first word."""
        return _joined(self.planes[:8], "<u8")

    @property
    def bytes(self) -> Any:
        """The upper half of the second word."""
        return _joined(self.planes[12:], "<u4")

    @property
    def both(self) -> Any:
        """Two words for each event."""
        second = self.bytes.astype("<u8") << 32 | self.time
        return numpy().stack([self.what, second], axis=1)


def _joined(planes: Any, kind: str) -> Any:
    return planes.T.copy().view(kind).reshape(-1)


@dataclass
class Chunks:
    """Events of one process. The first five have an element for each chunk; `events`, chunk after
    chunk, are two words each where they are to be written, or Words as they were read."""

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
        raise NoRecording(f"{path}: {error.strerror}", missing_status(error)) from error


class Writer:
    """Each call writes whole blocks, or raises OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("wb", buffering=0)
        self.size = 0
        self.compressor = zstandard().ZstdCompressor(level=LEVEL)
        self.room = bytearray()  # what is to be compressed
        try:
            self._write(FIRST_LINE)
        except OSError:
            if path.is_file():
                path.unlink()
            raise

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


@dataclass
class Head:
    """Of a block of events: of which process, and what is known of its chunks."""

    process: int
    events: int
    chunks: Chunks  # without the events


def _head(payload: bytes) -> Head:
    """`payload` has the begin of a block at least. Raises ValueError, struct.error."""
    np = numpy()
    process, count, events = _EVENTS.unpack_from(payload)
    at = _EVENTS.size
    columns = []
    for kind in _CHUNK:
        columns.append(np.frombuffer(payload, dtype=kind, count=count, offset=at))
        at += columns[-1].nbytes
    if int(columns[1].sum()) != events:
        raise ValueError
    threads, counts, orders, ticks, times = columns
    return Head(process, events, Chunks(threads, counts, orders, ticks, times, None))


_CHUNK = "<u4", "<u4", "<u8", "<u8", "<u8"
_CHUNK_BYTES = 32


def _events(payload: bytes) -> Chunks:
    """Raises ValueError, struct.error."""
    head = _head(payload)
    at = len(payload) - 16 * head.events
    planes = numpy().frombuffer(payload, dtype="u1", offset=at).reshape(16, -1)
    head.chunks.events = Words(planes)
    return head.chunks


@dataclass
class Block:
    kind: bytes
    at: int  # where it is in the file
    process: int
    facts: dict[str, Any]  # of JSON
    head: Head | None = None  # of events


def _facts(text: bytes) -> Any:
    """Raises ValueError."""
    # A value takes many times the memory of its text, which takes many times what it was packed to.
    if sum(text.count(one) for one in (b",", b"[", b"{")) > VALUES_MOST:
        raise ValueError
    return json.loads(text)


# Which numbers a block of facts has at least, and which texts.
_NUMBERS = {
    b"PROC": ("pid", "parent", "tick_shift", "ticks", "time"),
    b"MAPS": (),
    b"SEEN": ("time",),
    b"DONE": ("lost", "waited_ns"),
}


def _check(kind: bytes, facts: Any) -> None:
    """Raises ValueError, KeyError, TypeError where anything is missing or of another kind."""
    given = ("time",) if kind == b"DONE" and "time" in facts else ()  # missing in older recordings
    for name in ("process", *_NUMBERS[kind], *given):
        if type(facts[name]) is not int or not 0 <= facts[name] < 2**63:
            raise ValueError
    if kind == b"PROC":
        command = facts["command"]
        if type(command) is not list or not all(type(word) is str for word in command):
            raise ValueError
        if facts["tick_shift"] > 32:
            raise ValueError
        for name in "started", "begun":
            when = facts.get(name, 0)
            if type(when) not in (int, float) or not 0 <= when < 2**63:
                raise ValueError
    elif kind == b"DONE":
        names = facts.get("threads", {})
        if type(names) is not dict or not all(type(name) is str for name in names.values()):
            raise ValueError
    elif kind == b"MAPS":
        maps = facts["maps"]
        if type(maps) is not str or max(map(len, maps.split("\n"))) > LINE_MOST:
            raise ValueError
    elif kind == b"SEEN":
        for address, pages in facts["blocks"]:
            if type(address) is not int or type(pages) is not int or pages < 0:
                raise ValueError


class Reader:
    """The blocks of a file, of events their heads alone; `whole` says in the end whether there was
    nothing else."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.whole = True
        self.unpacker = zstandard().ZstdDecompressor()

    def __iter__(self) -> Iterator[Block]:
        """Raises NoRecording."""
        with self._opened() as file:
            size = os.fstat(file.fileno()).st_size
            while (at := file.tell()) < size:
                try:
                    yield self._block(at, *_packed(file))
                except self._wrong:
                    self.whole = False
                    return

    def events(self, places: Iterable[int]) -> Iterator[Chunks]:
        """All of these blocks, which were found before. Raises NoRecording."""
        return self._again(places, _events)

    def facts(self, places: Iterable[int]) -> Iterator[dict[str, Any]]:
        """As events."""
        return self._again(places, _facts)

    def _again(self, places: Iterable[int], read: Callable[[bytes], Any]) -> Iterator[Any]:
        with self._opened() as file:
            for at in places:
                file.seek(at)
                try:
                    yield read(self._unpacked(_packed(file)[1]))
                except self._wrong as why:
                    raise NoRecording(f"{self.path}: damaged at byte {at}") from why

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        if self.path == Path("-"):
            raise NoRecording(f"{self.path}: {_NO_FILE}")
        try:
            with self.path.open("rb") as file:
                if file.readline(len(FIRST_LINE)) != FIRST_LINE:
                    raise NoRecording(f"{self.path}: not a recording of hakmem")
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise NoRecording(f"{self.path}: {_NO_FILE}")
                yield file
        except OSError as error:
            raise NoRecording(f"{self.path}: {error.strerror}", missing_status(error)) from error

    def _block(self, at: int, kind: bytes, packed: bytes) -> Block:
        if kind != b"EVTS":
            text = self._unpacked(packed)
            if kind == b"PROC" and len(text) > PROCESS_MOST:
                raise ValueError
            facts = _facts(text)
            _check(kind, facts)
            return Block(kind, at, facts["process"], facts)
        length = zstandard().frame_content_size(packed)
        begin = self.unpacker.stream_reader(packed)
        first = begin.read(_EVENTS.size)
        _, chunks, events = _EVENTS.unpack(first)
        if length != len(first) + _CHUNK_BYTES * chunks + 16 * events or length > BLOCK_MOST:
            raise ValueError
        head = _head(first + begin.read(_CHUNK_BYTES * chunks))
        return Block(kind, at, head.process, {}, head)

    def _unpacked(self, packed: bytes) -> bytes:
        if zstandard().frame_content_size(packed) > BLOCK_MOST:
            raise ValueError
        unpacked: bytes = self.unpacker.decompress(packed, max_output_size=BLOCK_MOST)
        return unpacked

    @property
    def _wrong(self) -> tuple[type[Exception], ...]:
        """What reading a damaged block raises."""
        wrong = ValueError, KeyError, TypeError, RecursionError, struct.error
        return *wrong, zstandard().ZstdError


def _packed(file: BinaryIO) -> tuple[bytes, bytes]:
    """The next block's kind and what it has. Raises ValueError, struct.error."""
    kind, length, check = _BLOCK.unpack(file.read(_BLOCK.size))
    if length > BLOCK_MOST:
        raise ValueError
    packed = file.read(length)
    if len(packed) < length or zlib.crc32(packed) != check:
        raise ValueError
    return kind, packed
