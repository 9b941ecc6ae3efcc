"""Checkpoints of a recording: what was in use at some places of it, in a file beside it. A part of
the recording is read from the checkpoint before it, without the calls that came earlier.

The file is one of numpy's (.npz). Arrays are named after the process and the checkpoint; `facts`
say which recording it belongs to."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from hakmem.events import ADDRESS_BITS, ADDRESS_SPACE, PATHS_MOST, Calls, Process, Seam, calls_of
from hakmem.heap_profile import NoProfile, mappings
from hakmem.live import Held, Live
from hakmem.recording import numpy

SUFFIX = ".index"
EACH_CALLS = 2**21  # a checkpoint after so many calls,
EACH_BLOCKS = 16  # and after so many times as many as it has blocks
_FORMAT = 2
# What reading a damaged file raises: of zipfile, of numpy, of JSON that has other things.
_DAMAGED = (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error, NotImplementedError,
            RuntimeError, NoProfile, struct.error, TypeError, AttributeError, OverflowError,
            MemoryError)  # fmt: skip
_STEPS = "grain", "time"  # of blocks, as differences
_BLOCKS = [field.name for field in fields(Held)]
_CALLS = [field.name for field in fields(Calls)]


class NoIndex(Exception):
    """A line for the user: there is none that can be used."""


def beside(file: Path) -> Path:
    return file.with_name(file.name + SUFFIX)


def _facts(processes: Iterable[Process]) -> list[Any]:
    """By which a recording is known again."""
    found: list[Any] = [_FORMAT]
    for one in processes:
        parts = b"".join(struct.pack("<qqq", part.at, part.count, part.first) for part in one.parts)
        found.append([one.number, one.facts["ticks"], len(one.parts), zlib.crc32(parts)])
    return found


def _bytes(facts: Any) -> Any:
    return numpy().frombuffer(json.dumps(facts).encode(), "u1")


class Index:
    """Written while processes of a recording are read, one after the other. Raises OSError."""

    def __init__(self, path: Path, processes: Sequence[Process]) -> None:
        self.file = ZipFile(path, "w", ZIP_DEFLATED, compresslevel=1)
        self.ends: list[int] = []  # times of the checkpoints of a process
        self.calls = 0  # up to the last of them
        self._put("facts", _bytes(_facts(processes)))

    def _put(self, name: str, array: Any) -> None:
        np = numpy()
        with self.file.open(f"{name}.npy", "w", force_zip64=True) as file:
            np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)

    def look(self, process: Process, live: Live, seam: Seam, time: int) -> None:
        """After a window, whose last call was at this time."""
        most = max(EACH_CALLS, EACH_BLOCKS * len(live.table))
        if not seam.whole or live.calls - self.calls < most:
            return
        np = numpy()
        name = f"{process.number}/{len(self.ends)}"
        self.ends.append(time)
        self.calls = live.calls
        grain, held = live.table.in_order()
        thread = held.thread.astype("i8")
        # Who frees a block asks whether its thread allocated it by its last call; no more.
        held.begin = np.where(live.latest[thread] == held.begin, held.begin, _EARLIER)
        blocks = {"grain": grain.astype("i8")} | {one: getattr(held, one) for one in _BLOCKS}
        for one in _STEPS:
            blocks[one] = np.diff(blocks[one], prepend=0)
        for one, array in blocks.items():
            self._put(f"{name}/{one}", array)
        for number, calls in enumerate(seam.pool):
            for one in _CALLS:
                self._put(f"{name}/pool/{number}/{one}", getattr(calls, one))
        counts = [seam.parts, len(seam.pool), live.calls]
        self._put(f"{name}/counts", np.array(counts, dtype="i8"))
        self._put(f"{name}/latest", live.latest)

    def end(self, process: Process) -> None:
        """All of it was read."""
        np = numpy()
        self._put(f"{process.number}/ends", np.array(self.ends, dtype="i8"))
        first = [process.first.get(path) for path in process.paths]
        facts = {
            "maps": process.maps,
            "threads": list(process.threads),
            "names": process.names,
            "marks": list(process.marks),
            "paths": list(process.paths),
            "first": first,
        }
        self._put(f"{process.number}/facts", _bytes(facts))
        paths = [np.frombuffer(one, dtype="<u8") for one in process.paths.values()]
        self._put(f"{process.number}/lengths", np.array([len(one) for one in paths], dtype="i8"))
        self._put(f"{process.number}/paths", np.concatenate([np.zeros(0, "<u8"), *paths]))
        self.ends, self.calls = [], 0

    def __enter__(self) -> Index:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.file.close()
            return
        file, self.file.fp = self.file.fp, None  # else it is written again when it is forgotten
        with suppress(OSError):
            if file is not None:
                file.close()


_EARLIER = -2  # no number of a call, and not that of none


_HEAD_MOST = 2**16  # bytes of an array in the file, beside the array


def _check(blocks: dict[str, Any], seam: Seam, live: Live, threads: int, process: Process) -> None:
    """Whether these can be of one process. Raises ValueError."""
    np = numpy()

    def within(array: Any, most: int) -> bool:
        return bool((array >= 0).all() and (array < most).all())

    grain = blocks["grain"]
    alike = all(len(one) == len(grain) for one in blocks.values())
    rightly = (
        0 < seam.parts <= len(process.parts)
        and within(grain, 2**ADDRESS_BITS)
        and bool((np.diff(grain) > 0).all())
        and within(blocks["path"], PATHS_MOST)
        and within(blocks["size"], ADDRESS_SPACE)
        and within(blocks["thread"], min(threads, len(live.latest)))
        and len(live.latest) <= threads
        and 0 <= live.calls <= calls_of(process)
    )
    if not alike or not rightly:
        raise ValueError
    for calls in seam.pool:
        kinds = calls.what.dtype == calls.extra.dtype == "u8" and calls.thread.dtype == "u4"
        kinds = kinds and calls.size.dtype == calls.time.dtype == "i8"
        lengths = {len(getattr(calls, one)) for one in _CALLS}
        if not kinds or len(lengths) != 1 or not within(calls.thread, threads):
            raise ValueError
        if not within(calls.size[calls.grain != 0], ADDRESS_SPACE):
            raise ValueError


def _check_facts(facts: Any) -> None:
    """Likewise what JSON has. Raises ValueError, NoProfile, and what _DAMAGED has."""
    texts = [*facts["maps"].items(), *facts["names"].items()]
    mappings(list(facts["maps"].values()), 1, "")
    numbers = [*facts["threads"], *facts["paths"], *(time for time, _ in facts["marks"])]
    numbers += [time for time in facts["first"] if time is not None]
    rightly = (
        all(type(name) is type(text) is str for name, text in texts)
        and all(type(name) is str for _, name in facts["marks"])
        and all(type(number) is int and abs(number) < 2**63 for number in numbers)
        and len(set(facts["threads"])) == len(facts["threads"])
    )
    if not rightly:
        raise ValueError


class Checkpoints:
    """Those of a file."""

    def __init__(self, path: Path, processes: Sequence[Process]) -> None:
        """Raises NoIndex."""
        self.path = path
        with ExitStack() as opened:
            try:
                file = opened.enter_context(path.open("rb"))
                self.file = numpy().load(file, allow_pickle=False)
                found = json.loads(self.file["facts"].tobytes())
            except _DAMAGED as why:
                raise NoIndex(f"{path}: can't be read; --index makes it anew") from why
            if found != _facts(processes):
                raise NoIndex(f"{path}: of another recording; --index makes it anew")
            self.opened = opened.pop_all()

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *_: object) -> None:
        self.opened.close()

    def _array(self, name: str, most: int) -> Any:
        """Whole numbers, not more than the process has events. Raises _DAMAGED."""
        if self.file.zip.getinfo(f"{name}.npy").file_size > _HEAD_MOST + 8 * most:
            raise ValueError
        array = self.file[name]
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError
        return array

    def before(self, process: Process, time: int) -> tuple[Live, Seam]:
        """As if all calls up to one that comes before this time had been read. Raises NoIndex."""
        try:
            return self._before(process, time)
        except _DAMAGED as why:
            raise NoIndex(f"{self.path}: damaged; --index makes it anew") from why

    def _before(self, process: Process, time: int) -> tuple[Live, Seam]:
        np = numpy()
        live, seam = Live(), Seam()
        if f"{process.number}/ends" not in self.file:
            return live, seam
        number = int(np.searchsorted(self.file[f"{process.number}/ends"], time)) - 1
        if number < 0:
            return live, seam
        name = f"{process.number}/{number}"
        most = calls_of(process)
        blocks = {one: self._array(f"{name}/{one}", most) for one in ("grain", *_BLOCKS)}
        for one in _STEPS:
            blocks[one] = np.cumsum(blocks[one])
        parts, pools, live.calls = self._array(f"{name}/counts", most).tolist()
        live.latest = self._array(f"{name}/latest", most).astype("i8")
        seam.parts = parts
        for at in range(pools):
            columns = [self._array(f"{name}/pool/{at}/{one}", most) for one in _CALLS]
            seam.pool.append(Calls(*columns))
        facts = json.loads(self.file[f"{process.number}/facts"].tobytes())
        _check_facts(facts)
        _check(blocks, seam, live, len(facts["threads"]), process)
        live.table.put(blocks.pop("grain").astype("u8"), Held(**blocks))
        paths = facts["paths"]
        lengths = self._array(f"{process.number}/lengths", most)
        addresses = self._array(f"{process.number}/paths", 2 * most)
        if addresses.dtype != "<u8" or (lengths < 0).any() or lengths.sum() != len(addresses):
            raise ValueError
        every = np.split(addresses, np.cumsum(lengths))[:-1]  # none of none
        first = dict(zip(paths, facts["first"], strict=True))
        process.paths = {path: some.tobytes() for path, some in zip(paths, every, strict=True)}
        process.first, process.maps, process.names = first, facts["maps"], facts["names"]
        process.threads = {thread: place for place, thread in enumerate(facts["threads"])}
        process.marks = dict.fromkeys((time, name) for time, name in facts["marks"])
        return live, seam
