#!/usr/bin/env python3
"""Damages recordings by chance and reads them as `hakmem trace` and `replay` do: there is one line
that says what is wrong, or the figures of what comes before the damage.

    tests/record/damaged.py [--inputs N] [--seed N] [--seconds S] [--again FILE ...]

Each input is read by the first pass, and where that finds other things than before the damage,
by `traced` and one more reader. `--again` reads files that failed, by all readers.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from hakmem import (  # noqa: E402
    checkpoints,
    events,
    moments,
    ops,
    symbols,
    trace_page,
    trace_text,
    traced,
)
from hakmem.live import Live  # noqa: E402
from hakmem.recording import FIRST_LINE, NoRecording, numpy  # noqa: E402
from tests.record.damages import Damages, Recording, altered  # noqa: E402
from tests.record.made import Made  # noqa: E402

SECONDS = 5  # of processor time that no input may take
MEMORY = 2**30  # bytes of addresses that no input may take
# These leave nothing but what comes before them, which is known; few of them are read on.
CHECKED = "cut", "flip", "length"
READ_ON = 0.1
CORPUS = Path(__file__).with_name("corpus")


# ---- what is read ----


def first_pass(found: list[events.Process], cut: list[Path]) -> str:
    """All that it has found."""
    lines = [str(len(cut))]
    for one in found:
        parts = [
            (part.at, part.count, part.first, None if part.late is None else part.late.tolist())
            for part in one.parts
        ]
        clock = one.scale, one.since, one.last, one.clocks, len(one.late)
        lines.append(str((one.number, one.facts, one.maps, one.names, one.looks, one.done, clock)))
        lines.append(str(parts))
    return "\n".join(lines)


def figures(process: events.Process) -> traced.Traced:
    result = traced.traced(process)
    assert result.peak >= result.left
    assert result.left >= 0 and result.left_blocks >= 0
    assert result.blocks >= result.left_blocks and result.calls >= 0
    return result


def as_calls(process: events.Process) -> str:
    """Each with the block that it has or ends: all other readers begin with that."""
    live = Live()
    calls = sum(len(window.calls) for window in live.through(process))
    assert calls == live.calls and len(live.held) == len(live.table)
    return f"{calls} {live.unclear} {live.unknown_frees} {live.held}"


def as_text(process: events.Process) -> str:
    result = figures(process)
    lines = [*trace_text.notes(result), *trace_text.head(result), str(hash(result.curve))]
    lines += trace_text.plain(trace_text.processes([result]))
    lines += [*trace_text.plain(trace_text.lifetimes([result])), str(result.profile.sites)]
    return "\n".join(lines)


def as_page(process: events.Process) -> str:
    result = figures(process)
    paths = trace_page.paths(result)
    assert sum(sum(path.changes[4::5]) for path in paths) == result.left
    return str(paths)


def as_whole_page(process: events.Process) -> str:
    """With names."""
    result = figures(process)
    paths = trace_page.paths(result)
    calls = trace_page.calls(process, paths) | result.profile.calls
    names = symbols.all_located([(result.profile, calls)], debug_dirs=(), servers=False)
    made = trace_page.page([trace_page.Part(result, paths, names[0])], "damaged", [], [])
    assert made.endswith("</html>\n")
    return str(len(calls))


LATE_PART = 0.8, 0.95  # of the time: there are checkpoints before it


def as_part(process: events.Process) -> str:
    """The middle of it, with an index, which is written beside the file, and without."""
    file = process.file
    found, _ = events.recordings([file])
    with checkpoints.Index(checkpoints.beside(file), found) as written:
        result = traced.traced(events.chosen(found, None, file), index=written)
    since, seconds = process.since, result.seconds
    bounds = since + LATE_PART[0] * seconds, since + LATE_PART[1] * seconds
    plain = traced.traced(process, part=bounds)
    part = part_of(file, since, seconds)
    assert part == _part_said(plain)
    return part


def part_of(path: Path, since: float, seconds: float) -> str:
    found, _ = events.recordings([path])
    process = events.chosen(found, None, path)
    bounds = since + LATE_PART[0] * seconds, since + LATE_PART[1] * seconds
    with checkpoints.Checkpoints(checkpoints.beside(path), found) as known:
        return _part_said(traced.traced(process, part=bounds, checkpoints=known))


def _part_said(result: traced.Traced) -> str:
    assert result.peak >= result.left >= 0
    return f"{list(trace_text.head(result))} {hash(result.curve)} {result.profile.sites}"


def as_spans(process: events.Process) -> str:
    since, seconds = process.since, events.last_time(process) * process.scale / 1e9
    asked = [(since, since + seconds / 2), (since + seconds / 3, since + seconds)]
    return str([span.profile.sites for span in traced.traced(process, asked).spans])


def as_replay(process: events.Process) -> str:
    made = ops.made(process)
    ops.write(made, io.BytesIO())
    assert int(made.counts.sum()) == len(made.ops)
    assert made.parts.min() >= 1
    return f"{len(made.ops)} {made.peak} {made.unknown}"


def as_marks(process: events.Process) -> str:
    looks = [len(some) for _, some in events.looks(process)]
    return f"{events.read_marks(process)} {looks} {process.names}"


def chosen(path: Path) -> events.Process:
    return events.chosen(events.recordings([path])[0], None, path)


# How often each reads an input.
READERS: dict[Callable[[events.Process], str], float] = {
    as_calls: 14, as_text: 6, as_page: 6, as_replay: 4, as_marks: 1, as_part: 0.5, as_spans: 0.5,
    as_whole_page: 0.3,
}  # fmt: skip


def said(path: Path, reader: Callable[[events.Process], str]) -> str:
    """All else that is raised is a defect."""
    try:
        return reader(chosen(path))
    except NoRecording as why:
        assert is_clear(str(why), path), why
        return f"error: {why}"


def is_clear(line: str, path: Path) -> bool:
    return "\n" not in line and (str(path) in line or "allocated nothing" in line)


def told(path: Path) -> str:
    """By all readers."""
    return "\n".join(said(path, reader) for reader in READERS)


# ---- limits ----


def takes_too_long(*_: object) -> NoReturn:
    raise TimeoutError(f"more than {SECONDS} seconds of processor time")


@contextmanager
def limited() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def set_limits() -> None:
    signal.signal(signal.SIGPROF, takes_too_long)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))


# ---- sound recordings ----


@dataclass
class Sound:
    """A recording; of each place where it may end what the first pass and all readers say."""

    recording: Recording
    settings: tuple[int, ...]
    first: set[str]
    told: set[str]
    index: bytes
    since: float  # of which part is asked
    seconds: float
    part: str  # what is said of it


# Small ones reach what large recordings reach: a checkpoint after so many calls, parts of the
# curve, windows, and chunks that come late.
SETTINGS = (
    (10, 3, 2**19, 2**18, 2**20, 1024),
    (7, 2, 2**19, 2**18, 2**20, 1024),
    (12, 6, 12, 8, 16, 1),
    (5, 9, 2**19, 20, 8, 1),
)
# And how many calls they have, how often what is there is written, and their seeds.
OFTEN = 5, 3, 1, 1  # is each of them damaged
CALLS = (4, 0.1, 0), (16, 0.1, 1), (40, 0.5, 9), (40, 0.5, 8)


def set_up(settings: tuple[int, ...]) -> None:
    checkpoints.EACH_BLOCKS = 0
    checkpoints.EACH_CALLS, moments.PARTS = settings[:2]
    events.WINDOW, events.WINDOW_LEAST, events.LATE, events.LATE_A_THREAD = settings[2:]


MAPS = """\
00400000-00500000 r-xp 00000000 fe:00 4711                             /bin/no such app
7ff000000-7ff001000 rw-p 00000000 00:00 0
7ffffffff000-7ffffffff100 r-xp 00000000 00:00 0                          [vdso]
"""
SCRIPT = "1000000000000000-1000000000001000 r-xp 00000000 00:00 0 [python:a.py:7:f]"
MODULE = "5000-6000 r-xp 00000000 00:00 0 /tmp/gone.so (deleted)\n# build-id 5000 00ff00"


def sound(file: Path, seed: int, calls: int, often: float) -> bytes:
    """All kinds of blocks and of events: a fork, threads, marks, modules that were closed, Python's
    functions."""
    made = Made(file, seed, slow=(2,), often=often)
    said = made.writer.said
    said(b"MAPS", {"process": 0, "maps": MAPS})
    made.line(1, SCRIPT)
    made.line(2, MODULE)
    made.path(3, [2**60 + 1, 0x401000, 0x5010])
    made.some(calls // 2, threads=3, early=0.1)
    made.mark("half")
    made.name(2, "worker 2")
    said(b"SEEN", {"process": 0, "time": 20, "blocks": [[16 * one, one] for one in range(1, 30)]})
    if calls > 20:
        facts = {"process": 1, "pid": 8, "parent": 7, "command": []}
        facts |= {"tick_shift": 2, "ticks": 10**6 + 40, "time": 40, "started": 2.5, "begun": 2.0}
        said(b"PROC", facts)
        said(b"MAPS", {"process": 1, "maps": "00400000-00500000 r-xp 00000000 fe:00 9 /bin/b\n"})
    made.some(calls - calls // 2, threads=3, early=0.1)
    if calls > 20:
        said(b"DONE", {"process": 1, "time": 90, "lost": 1, "waited_ns": 2, "threads": {"9": "w"}})
    made.end()
    return file.read_bytes()


class Damager:
    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.damages = Damages(self.chance)
        self.file = folder / "damaged.recording"
        self.reached: Counter[str] = Counter()
        self.kind = ""
        self.sound = [
            self._sound(settings, *calls) for settings, calls in zip(SETTINGS, CALLS, strict=True)
        ]
        self.others = [one.recording for one in self.sound]

    def _sound(self, settings: tuple[int, ...], calls: int, often: float, seed: int) -> Sound:
        set_up(settings)
        recording = Recording(sound(self.file, seed, calls, often))
        first, all_told = set(), set()
        ends = [len(FIRST_LINE)]
        for block in recording.blocks:
            ends.append(ends[-1] + len(block))
        for end in ends:
            for more in (b"", b"x"):
                self.file.write_bytes(recording.data[:end] + more)
                found, cut = events.recordings([self.file])
                first.add(first_pass(found, cut))
            all_told.add(told(self.file))
        self.file.write_bytes(recording.data)
        process = chosen(self.file)
        result = traced.traced(process)
        assert bool(process.late) == (settings[4] < 2**20)
        assert calls < 16 or (result.left and result.temporary and result.threads > 1)
        assert calls < 16 or (len(result.marks) == 1 and result.profile.scripts)
        part = as_part(chosen(self.file))
        if settings[2] < 100:
            with numpy().load(checkpoints.beside(self.file)) as arrays:
                assert arrays["0/ends"][0] < LATE_PART[0] * result.seconds * 1e9 / process.scale
        index = checkpoints.beside(self.file).read_bytes()
        since, seconds = result.process.since, result.seconds
        return Sound(recording, settings, first, all_told, index, since, seconds, part)

    def one(self) -> None:
        chance = self.chance
        (which,) = chance.choices(self.sound, OFTEN)
        set_up(which.settings)
        if chance.random() < 0.06:
            self.kind = chance.choice(("index", "forged index"))
            self._index(which)
            return
        self.kind, data = self.damages.one(which.recording, self.others)
        self.file.write_bytes(data)
        with limited():
            self._read(which)

    def _read(self, which: Sound) -> None:
        try:
            found, cut = events.recordings([self.file])
            process = events.chosen(found, None, self.file)
        except NoRecording as why:
            self._refused(why)
            return
        if self.kind in CHECKED:
            first = first_pass(found, cut)
            assert first in which.first or self.kind == "length"
            if first in which.first and self.chance.random() > READ_ON:
                self.reached["known after the first pass"] += 1
                return
        if self.kind in ("cut", "flip") and self.chance.random() < 0.1:
            assert told(self.file) in which.told
        try:
            (reader,) = self.chance.choices(list(READERS), list(READERS.values()))
            reader(process)
            self.reached[f"read {reader.__name__}"] += 1
        except NoRecording as why:
            self._refused(why)

    def _refused(self, why: NoRecording) -> None:
        assert is_clear(str(why), self.file), why
        self.reached["refused"] += 1

    def _index(self, which: Sound) -> None:
        """The recording is sound, and what is beside it is damaged."""
        chance = self.chance
        self.file.write_bytes(which.recording.data)
        way = forged_index if self.kind == "forged index" else damaged_index
        checkpoints.beside(self.file).write_bytes(way(which.index, chance))
        with limited():
            try:
                part = part_of(self.file, which.since, which.seconds)
                assert part == which.part or self.kind == "forged index"
                self.reached["index read"] += 1
            except checkpoints.NoIndex as why:
                assert "\n" not in str(why) and str(self.file) in str(why)
                self.reached["index refused"] += 1

    def keep(self, name: str) -> Path:
        """The input that failed, with what was set for it."""
        kept = Path(tempfile.gettempdir()) / name
        settings = [checkpoints.EACH_CALLS, moments.PARTS, events.WINDOW, events.WINDOW_LEAST]
        settings += [events.LATE, events.LATE_A_THREAD]
        kept.write_bytes(self.file.read_bytes())
        if "index" in self.kind:
            shutil.copy(checkpoints.beside(self.file), checkpoints.beside(kept))
        kept.with_suffix(".json").write_text(json.dumps(settings))
        return kept


def damaged_index(data: bytes, chance: random.Random) -> bytes:
    """Bytes of it are others or missing."""
    made = bytearray(data)
    kind = chance.randrange(4)
    if kind == 0:
        return bytes(made[: chance.randrange(len(made))])
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at = chance.randrange(len(made))
        if kind == 1:
            made[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            made[at] = chance.choice((0, 255, chance.randrange(256)))
        else:  # what says where files are in it
            head = made.rfind(b"PK\1\2", 0, at)
            end = made.rfind(b"PK\5\6")
            at = chance.choice((head, end)) + chance.randrange(46)
            width = chance.choice((1, 2, 4))
            made[at : at + width] = struct.pack("<Q", chance.getrandbits(64))[:width]
    return bytes(made)


def forged_index(data: bytes, chance: random.Random) -> bytes:
    """An array of it is another, or is missing, and all checks are right."""
    with numpy().load(io.BytesIO(data)) as file:
        arrays = {name: file[name] for name in file.files}
    for _ in range(chance.choice((1, 1, 2))):
        name = chance.choice([one for one in arrays if one != "facts"] or ["facts"])
        arrays[name] = _forged(arrays[name], name.endswith("/facts"), chance)
        if chance.random() < 0.05:
            del arrays[name]
    made = io.BytesIO()
    numpy().savez(made, **arrays)
    return made.getvalue()


def _forged(array: Any, is_text: bool, chance: random.Random) -> Any:
    np = numpy()
    if is_text:
        return np.frombuffer(altered(array.tobytes(), chance), "u1")
    array = array.copy()
    kind = chance.randrange(8)
    if kind < 5 and array.ndim == 1 and array.size:
        where = chance.randrange(array.size)
        near = int(array[where]) + chance.choice((-1, 1, 100))
        value = chance.choice((near, near, 0, -1, 2**20, 2**31, 2**44, 2**47, 2**63 - 1))
        array[where] = np.array([value % 2**64], "u8").astype("i8").astype(array.dtype)[0]
    elif kind == 5 and array.ndim == 1:
        array = array[: chance.randrange(array.size + 1)]
    elif kind == 6:
        array = array.astype(chance.choice(("u1", "f8", "i4", "u8", "U3")))
    else:
        array = np.resize(array, chance.choice(((), (3,), (2, 2), (0,), (array.size + 1,))))
    return array


def again(files: list[Path]) -> None:
    """Such as failed once."""
    with tempfile.TemporaryDirectory(prefix="hakmem-damaged-") as folder:
        for file in files:
            given = file.with_suffix(".json")
            set_up(tuple(json.loads(given.read_text())) if given.exists() else SETTINGS[0])
            path = Path(shutil.copy(file, folder))
            beside = checkpoints.beside(file)
            if beside.exists():
                shutil.copy(beside, folder)
                with limited(), suppress(checkpoints.NoIndex):
                    result = traced.traced(chosen(path))
                    part_of(path, result.process.since, result.seconds)
                continue
            for reader in READERS:
                with limited():
                    said(path, reader)


def _where(why: BaseException) -> str:
    """In one line."""
    frames = traceback.extract_tb(why.__traceback__)
    own = [one for one in frames if one.filename.startswith(str(ROOT))]
    return f"{why!r} at {' < '.join(f'{Path(one.filename).name}:{one.lineno}' for one in own[-4:])}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="then it ends, too")
    parser.add_argument("--keep-on", action="store_true", help="after a failure")
    parser.add_argument("--again", type=Path, nargs="+", default=[])
    given = parser.parse_args()
    set_limits()
    again(given.again or sorted(CORPUS.glob("*.recording")))
    if given.again:
        return 0
    counts: Counter[str] = Counter()
    failed = number = 0
    room = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="hakmem-damaged-", dir=room) as folder:
        damager = Damager(Path(folder), given.seed)
        began, used = time.monotonic(), time.process_time()
        while number < given.inputs and time.monotonic() - began < given.seconds:
            try:
                damager.one()
            except BaseException as why:
                kept = damager.keep(f"damaged-{given.seed}-{number}.recording")
                print(
                    f"input {number} of seed {given.seed}: {kept}: {_where(why)}", file=sys.stderr
                )
                failed += 1
                if not given.keep_on or isinstance(why, KeyboardInterrupt):
                    raise
            counts[damager.kind] += 1
            number += 1
        used = time.process_time() - used
    print(f"{number} damaged recordings, {number / max(used, 0.01):.0f} a second, {failed} failed")
    print(json.dumps({"kinds": counts, "reached": damager.reached}, sort_keys=True))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
