"""`hakmem sheet CORE` says of a core file what it says of the process: of cores that gdb wrote and
that the kernel wrote, with any setting of the heap that divides or joins its mappings."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.nightly import points
from tests.watch.watched import SECONDS, Command, Process, Sheet, running

SETTINGS = {
    "plain": {},
    "profile": {"HAKMEM_PROFILE": "on"},
    "sampled guards": {"HAKMEM_GUARDS_A_SECOND": "1000"},
    "both": {"HAKMEM_PROFILE": "on", "HAKMEM_GUARDS_A_SECOND": "1000", "HAKMEM_GUARDS": "on"},
    "hardened": {"HAKMEM_PRESET": "hardened"},
    "check_functions": {"HAKMEM_CHECK_FUNCTIONS": "on"},
    "extra_calls": {"HAKMEM_EXTRA_CALLS": "on"},
}
PLANTED = ("live", "holes", "kept", "caches")

# What of a sheet says nothing about residence.
OF_THE_HEAP = ("version", "live", "requested", "freed", "returned", "taken_again", "held", "limits")
OF_A_CLASS = ("size", "slabs", "live", "cached", "in_transfer", "free")
OF_A_CACHE = ("living", "blocks", "bytes")


def heap(sheet: Sheet) -> dict[str, Any]:
    return {
        **{key: sheet.said[key] for key in OF_THE_HEAP},
        "classes": [{key: row[key] for key in OF_A_CLASS} for row in sheet.said["classes"]],
        "caches": [{key: row[key] for key in OF_A_CACHE} for row in sheet.said["caches"]],
        # Of the window, whose slices two mappings may share.
        "skipped": sheet.said["skipped"],
    }


def sheet_of(command: Command, core: Path) -> Sheet:
    done = command("sheet", "--json", str(core))
    assert done.returncode == 0, done.stderr
    return Sheet(json.loads(done.stdout))


def by_gdb(process: Process, folder: Path) -> Path:
    if shutil.which("gcore") is None:
        pytest.skip("gdb is not installed")
    words = ["gcore", "-o", str(folder / "core"), str(process.pid)]
    subprocess.run(words, check=True, capture_output=True, timeout=SECONDS)
    return folder / f"core.{process.pid}"


def by_kernel(process: Process, folder: Path) -> Path:
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if "/" in pattern or pattern.startswith("|") or not pattern:
        pytest.skip(f"the kernel writes cores elsewhere: {pattern}")
    os.kill(process.pid, signal.SIGABRT)
    process.process.wait(SECONDS)
    (core,) = folder.iterdir()
    return core


def without_headers(process: Process, folder: Path) -> Path:
    """Of files, nothing: not even the page that says what they are."""
    Path(f"/proc/{process.pid}/coredump_filter").write_text("0x3")
    return by_kernel(process, folder)


def planted(
    programs: Path, library: Path, folder: Path, **variables: str
) -> AbstractContextManager[Process]:
    """In a folder of its own, where it may leave a core."""
    folder.mkdir()
    script = 'cd "$1" && ulimit -S -c unlimited && LD_PRELOAD=$3 exec "$2"'
    plant = programs / "watch_plant"
    words: list[str | Path] = ["/bin/sh", "-c", script, "sh", folder, plant, library]
    return running(*words, library=None, HAKMEM_SCAVENGER="off", **variables)


def always(dump: Callable[[Process, Path], Path], setting: str) -> bool:
    """Each setting once, and each dump of the setting that divides mappings most."""
    return dump is by_kernel or setting == "both"


@pytest.mark.parametrize(
    ("dump", "setting"),
    points(itertools.product((by_gdb, by_kernel, without_headers), SETTINGS), always),
)
def test_a_core_says_what_the_process_said(
    command: Command,
    programs: Path,
    library: Path,
    tmp_path: Path,
    dump: Callable[[Process, Path], Path],
    setting: str,
) -> None:
    with planted(programs, library, tmp_path / "here", **SETTINGS[setting]) as process:
        for word in PLANTED:
            process.ask(word)
        asleep(process)
        alive = command.sheet(process.pid)
        core = dump(process, tmp_path / "here")
        dumped = sheet_of(command, core)
        if setting == "both":
            for more in "--classes", "--threads":
                shown = command("sheet", more, str(core))
                assert shown.returncode == 0 and "dumped" in shown.stdout, shown.stderr
    assert heap(dumped) == heap(alive)
    assert alive.said["live"] > 1 << 20 and len(alive.said["caches"]) > 8
    assert dumped["live"] >= alive["live"], "a page of zeros may be in the core without having been"


def asleep(process: Process) -> None:
    """Threads that have said what they did are about to sleep."""
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        while (task / "stat").read_text().rpartition(")")[2].split()[0] != "S":
            time.sleep(0.01)


# ---- other tools ----

SEGMENT = struct.Struct("<IIQQQQQQ")
LOAD = 1


def segments_of(core: bytes) -> list[tuple[int, ...]]:
    (at,) = struct.unpack_from("<Q", core, 32)
    (count,) = struct.unpack_from("<H", core, 56)
    return [SEGMENT.unpack_from(core, at + i * SEGMENT.size) for i in range(count)]


def with_segments(core: bytes, segments: list[tuple[int, ...]]) -> bytes:
    """The same core with other segments, whose list comes last."""
    changed = bytearray(core + bytes(-len(core) % 8))
    struct.pack_into("<Q", changed, 32, len(changed))
    struct.pack_into("<H", changed, 56, len(segments))
    return bytes(changed) + b"".join(SEGMENT.pack(*segment) for segment in segments)


def divided(segment: tuple[int, ...]) -> list[tuple[int, ...]]:
    """In three, where it has the pages."""
    kind, flags, at, start, physical, dumped, size, align = segment
    third = size // 3 & ~4095
    if kind != LOAD or third == 0:
        return [segment]
    parts = [(0, third), (third, 2 * third), (2 * third, size)]
    return [
        (kind, flags, at + a, start + a, physical, max(min(dumped, b) - a, 0), b - a, align)
        for a, b in parts
    ]


def joined(segments: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """With the one before, where both memory and bytes follow on."""
    result: list[tuple[int, ...]] = []
    for kind, flags, at, start, physical, dumped, size, align in segments:
        if result and kind == result[-1][0] == LOAD and result[-1][5] == result[-1][6]:
            _, its_flags, its_at, its_start, _, its_dumped, its_size, _ = result[-1]
            if its_start + its_size == start and its_at + its_dumped == at:
                whole = (its_dumped + dumped, its_size + size)
                result[-1] = (kind, flags | its_flags, its_at, its_start, physical, *whole, align)
                continue
        result.append((kind, flags, at, start, physical, dumped, size, align))
    return result


def widened(segments: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """As if joined with one page of something else, where there is room for it."""
    result: list[tuple[int, ...]] = []
    end = 0
    for kind, flags, at, start, physical, dumped, size, align in segments:
        more = 4096 if kind == LOAD and 0 < end < start and dumped > 0 else 0
        parts = (at - more, start - more, physical, dumped + more, size + more)
        result.append((kind, flags, *parts, align))
        end = start + size if kind == LOAD else end
    return result


def test_mappings_divided_joined_and_left_out(
    command: Command, programs: Path, library: Path, tmp_path: Path
) -> None:
    """The same bytes in other segments."""
    with planted(programs, library, tmp_path / "here", HAKMEM_PROFILE="on") as process:
        for word in PLANTED:
            process.ask(word)
        asleep(process)
        alive = command.sheet(process.pid)
        core = by_gdb(process, tmp_path / "here").read_bytes()
    segments = segments_of(core)
    unchanged = [one for one in segments if not (one[0] == LOAD and one[5] == 0)]
    cases = {
        "divided": [part for one in segments for part in divided(one)],
        "joined": joined(segments),
        "widened": widened(segments),
        "backwards": segments[::-1],
        "without those that are of files alone": unchanged,
    }
    for name, changed in cases.items():
        file = tmp_path / "changed"
        file.write_bytes(with_segments(core, changed))
        assert heap(sheet_of(command, file)) == heap(alive), name


def test_a_library_that_is_another_one_now(
    command: Command, programs: Path, library: Path, tmp_path: Path
) -> None:
    """What the core lacks of the library is not read from another file of its name."""
    copy = tmp_path / library.name
    shutil.copy(library, copy)
    with planted(programs, copy, tmp_path / "here") as process:
        process.ask("live")
        core = by_kernel(process, tmp_path / "here")  # of the library the first page
    changed = bytearray(copy.read_bytes())
    (headers,) = struct.unpack_from("<Q", changed, 40)
    struct.pack_into("<Q", changed, 40, headers + 64)
    for at in range(4096, headers):
        changed[at] ^= 0xFF
    copy.unlink()
    copy.write_bytes(changed)
    done = command("sheet", str(core))
    assert done.returncode != 0 and done.stderr.count("\n") == 1, done
    assert done.stdout == ""
