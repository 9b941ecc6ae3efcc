"""Stacks through code that a program made while it ran, and the names that it wrote for perf."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from hakmem import heap_profile, perf_map
from tests.profile.planted import Planted, by_function, functions, named, near, profile_of
from tests.ran import ran
from tests.watch.watched import Command

KEPT = 64 * 2**20  # in blocks that are all sampled
EXACT = ["-o", "profile_rate=16K", "-o", "profile_samples=0"]
PYTHON = f"""\
kept = []
def leaks():
    kept.append(bytearray(2**20))
class Service:
    def serves(self):
        leaks()
for _ in range({KEPT // 2**20}):
    Service().serves()
"""

x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="needs x86-64")


@x86_64
def test_stacks(command: Command, planted: Planted, tmp_path: Path) -> None:
    program, names = planted.programs / "profile_plant_made", tmp_path / "names.map"
    script = tmp_path / "run"
    script.write_text(f"#!/bin/sh\nexec {program} {names}\n")
    script.chmod(0o755)
    heap = profile_of(script, planted.library, tmp_path)
    assert len(heap_profile.read(heap).sites) >= 2
    profile = named(heap, made=perf_map.read(names))
    whole = by_function(profile, "first")
    called = functions(whole)
    assert called[called.index("keep") :][:6] == [
        "keep",
        "second",
        "middle",
        "first",
        "outer",
        "main",
    ]
    assert "_start" in called and near(whole.figures[1], KEPT)
    (line,) = (line for line in whole.lines() if line.function == "first")
    assert line.file == "one.py"
    # Of code that has no frame of its own the caller is missing: the frame pointer is the caller's.
    assert functions(by_function(profile, "third"))[:3] == ["keep", "third", "main"]
    done = command("profile", "--text", "--perf-map", str(names), str(heap))
    assert done.returncode == 0 and " first (one.py)" in done.stdout
    done = command("profile", "--text", "--perf-map", "/nowhere", str(heap))
    assert done.returncode == 0 and done.stderr.startswith("hakmem profile: /nowhere: ")


def pythons() -> Iterator[Path]:
    """That have trampolines for perf: 3.12 and later, on Linux."""
    for name in sorted({f"python3.{minor}" for minor in range(12, 20)} | {"python3"}):
        found = shutil.which(name)
        home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
        yield from (Path(one) for one in (found,) if one)
        yield from home.glob(f"versions/*/bin/{name}")


def python(option: str) -> Path:
    asks = "import sys; sys.exit(not sys.is_stack_trampoline_active())"
    for one in pythons():
        if subprocess.run([one, "-X", option, "-c", asks], capture_output=True).returncode == 0:
            return one
    pytest.skip(f"needs a Python that knows -X {option}: 3.12 perf, 3.13 perf_jit")


@x86_64
@pytest.mark.parametrize("option", ["perf", "perf_jit"])
def test_python(command: Command, option: str, tmp_path: Path) -> None:
    """What it writes names its trampolines, which are left out beside the functions."""
    program = tmp_path / "program.py"
    program.write_text(PYTHON)
    words: list[str | Path] = ["--profile=x.heap", *EXACT, python(option), "-X", option, program]
    done = ran("/bin/sh", command.path, "run", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    heap = heap_profile.read(tmp_path / "x.heap")
    assert heap.pid is not None
    name = f"perf-{heap.pid}.map" if option == "perf" else f"jit-{heap.pid}.dump"
    written = Path("/tmp", name)
    try:
        done = command(
            "profile",
            "--text",
            "--by",
            "peak",
            "-o",
            str(tmp_path / "x.collapsed"),
            str(tmp_path / "x.heap"),
        )
        profile = named(tmp_path / "x.heap", made=perf_map.read(written))
    finally:
        written.unlink()
    assert done.returncode == 0, done.stderr
    assert "leaks (program.py:3)" in done.stdout
    assert "?+0x" not in (tmp_path / "x.collapsed").read_text()
    stack = by_function(profile, "leaks")
    called = [
        name for name in functions(stack) if name in {"leaks", "Service.serves", "<module>", "main"}
    ]
    assert called[:3] == ["leaks", "Service.serves", "<module>"]
    assert near(stack.figures[5], KEPT)


def test_maps(tmp_path: Path) -> None:
    text = "10 8 a\n20 8 py::f.<locals>.g:/a:b.py\nnonsense\n10 4 c d\nffff 0 e\n"
    text += "30 1 JS:+k /l.js:2:9\n"
    one = perf_map.PerfMap(perf_map.codes_of(text))
    found = [one.function(at) for at in (0xF, 0x10, 0x13, 0x14, 0x20, 0x27, 0x28, 0x30, 0xFFFF)]
    a, c, g = ("a", "", 0), ("c d", "", 0), ("f.<locals>.g", "/a:b.py", 0)
    assert found == [None, c, c, a, g, g, None, ("k", "/l.js", 2), None]


def read_of(
    root: Path, *mapped: str, owner: int | None = None, written: perf_map.Times = perf_map.EVER
) -> tuple[list[str], str]:
    """Of process 7: the functions at 16 and 32, and the notes."""
    notes: list[str] = []
    owners = {os.geteuid() if owner is None else owner}
    found = perf_map.of_process(7, mapped, root, owners, notes, written)
    functions = [found.function(at) for at in (16, 32)] if found else []
    return [one[0] for one in functions if one], "\n".join(notes)


def test_maps_of_others(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    made = tmp_path / "tmp/perf-7.map"
    assert read_of(tmp_path) == ([], "")
    made.write_text("10 8 a\n")
    assert read_of(tmp_path) == (["a"], "")
    if os.geteuid() == 0:
        os.chown(made, 1234, 1234)
        found, notes = read_of(tmp_path)
        assert not found and "another user" in notes
        assert read_of(tmp_path, owner=1234) == (["a"], "")
        os.chown(made, 0, 0)
    made.rename(tmp_path / "other")
    made.symlink_to(tmp_path / "other")
    assert not read_of(tmp_path)[0] and read_of(tmp_path)[1]
    made.unlink()
    os.mkfifo(made)
    assert "not a plain file" in read_of(tmp_path)[1]
    # What is wrong with one file does not hide another.
    (tmp_path / "tmp/jit-7.dump").write_bytes(dump(7))
    found, notes = read_of(tmp_path)
    assert found == ["b"] and "not a plain file" in notes


def dump(pid: int) -> bytes:
    """With one function."""
    name = b"b\0"
    code = perf_map.LOADED.pack(pid, pid, 32, 32, 8, 1) + name
    size = perf_map.RECORD.size + len(code)
    head = perf_map.HEAD.pack(perf_map.MAGIC, 1, perf_map.HEAD.size, 62, 0, pid, 1, 0)
    return head + perf_map.RECORD.pack(perf_map.IS_LOADED, size, 1) + code


def test_a_dump_of_another_process(tmp_path: Path) -> None:
    """By its name it may be an earlier or a later process's with the same number."""
    (tmp_path / "tmp").mkdir()
    file, name = tmp_path / "tmp/jit-7.dump", "/tmp/jit-7.dump"
    file.write_bytes(dump(7))
    os.utime(file, (1000, 1000))
    for written, read in (((900, 1100), True), ((1001, 1100), False), ((900, 999), False)):
        found, notes = read_of(tmp_path, written=written)
        assert (found == ["b"], "another process" in notes) == (read, not read)
        assert read_of(tmp_path, name, written=written) == (["b"], ""), "it was mapped"
        made = tmp_path / "tmp/perf-7.map"
        made.write_text("10 8 a\n")
        os.utime(made, (1000, 1000))
        found, notes = read_of(tmp_path, written=written)
        assert ("a" in found, "perf-7.map: is of another process" in notes) == (read, not read)
        made.unlink()
    file.write_bytes(dump(8))
    found, notes = read_of(tmp_path)
    assert not found and "another process" in notes
    assert read_of(tmp_path, name) == (["b"], ""), "its number may be that of another namespace"


def lines_of(*entries: tuple[int, int, bytes], at: int = 32) -> bytes:
    """A record of a jitdump: the lines of the code at that address."""
    table = b"".join(
        perf_map.LINE.pack(start, line, 0) + name + b"\0" for start, line, name in entries
    )
    size = perf_map.RECORD.size + perf_map.LINES.size + len(table)
    head = perf_map.RECORD.pack(perf_map.HAS_LINES, size, 1)
    return head + perf_map.LINES.pack(at, len(entries)) + table


def test_lines(tmp_path: Path) -> None:
    """Of the code that follows, by the address of the call; code that moves takes them along."""
    whole = dump(7)
    head, loaded = whole[: perf_map.HEAD.size], whole[perf_map.HEAD.size :]
    table = lines_of((32, 4, b"a.x"), (36, 9, b"\xff"), (35, 8, b"inlined.x"))
    other = lines_of((16, 1, b"other.x"), at=16)
    move = perf_map.MOVED.pack(7, 7, 0, 32, 64, 8, 1)
    moved = perf_map.RECORD.pack(perf_map.IS_MOVED, perf_map.RECORD.size + len(move), 2) + move
    file = tmp_path / "jit-7.dump"
    file.write_bytes(head + other + table + loaded + moved)
    made = perf_map.read(file)
    for start in 32, 64:
        lines = [made.function(start + at) for at in (0, 2, 3, 4, 7)]
        assert [(file, line) for _, file, line in filter(None, lines)] == [
            ("a.x", 4), ("a.x", 4), ("inlined.x", 8), ("a.x", 9), ("a.x", 9)
        ]  # fmt: skip
    file.write_bytes(head + table[:-1] + loaded)
    perf_map.read(file)  # whatever it says


def test_no_memory_for_what_is_said(tmp_path: Path) -> None:
    """A function may be said to be of any size, and many lines to move many times."""
    (tmp_path / "a.map").write_text(
        "".join(f"{at << 36:x} ffffffffff f{at}\n" for at in range(300)) + "1000 8 small\n"
    )
    count, moves = 5000, 5000
    whole = dump(7)
    head, loaded = whole[: perf_map.HEAD.size], whole[perf_map.HEAD.size :]
    table = lines_of(*((32 + at, at, b"\xff") for at in range(count)))
    move = perf_map.MOVED.pack(7, 7, 0, 32, 64, 8, 1)
    moved = perf_map.RECORD.pack(perf_map.IS_MOVED, perf_map.RECORD.size + len(move), 2) + move
    (tmp_path / "jit-7.dump").write_bytes(head + table + loaded + moves * moved)
    tracemalloc.start()
    try:
        made = perf_map.read(tmp_path / "a.map")
        dumped = perf_map.read(tmp_path / "jit-7.dump")
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    assert made.function(0x1004) == ("small", "", 0)
    for at in (0, 1, 2, 250):
        assert made.function((at << 36) + 99) == (f"f{at}", "", 0)
    assert dumped.function(66) == ("b", "", 2)


@x86_64
@pytest.mark.parametrize("by", ["the command", "the library"])
def test_a_map_of_another_process(
    command: Command, planted: Planted, tmp_path: Path, by: str
) -> None:
    """That had the number of a process whose code has no names: a line says so. Whoever writes a
    profile writes when the process began, and when that was."""
    heap, names = tmp_path / "x.heap", tmp_path / "names.map"
    program = planted.programs / "profile_plant_made"
    if by == "the library":
        profile_of(program, planted.library, tmp_path, str(names), HAKMEM_PROFILE_FILE=str(heap))
    else:
        done = ran(
            "/bin/sh",
            command.path,
            "run",
            "--profile=x.heap",
            *EXACT,
            program,
            names,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
    profile = heap_profile.read(heap)
    began, ended = profile.started, profile.written
    assert began - 1 <= names.stat().st_mtime <= ended + 1
    assert abs(ended - heap.stat().st_mtime) <= 10
    left = Path(f"/tmp/perf-{profile.pid}.map")
    try:
        shutil.copy(names, left)
        os.utime(left, (ended, ended))
        done = command("profile", "--text", str(heap))
        assert done.stderr == "" and " first (one.py)" in done.stdout
        os.utime(left, (began - 100, began - 100))
        done = command("profile", "--text", str(heap))
        assert " first (one.py)" not in done.stdout
        said = f"hakmem profile: {left}: is of another process with this number, which "
        assert done.stderr == f"{said}ended before this one began: it is not read\n"
        # Also where the profile is a copy that was made later.
        os.utime(heap, (ended + 1000, ended + 1000))
        os.utime(left, (ended + 1000, ended + 1000))
        done = command("profile", "--text", str(heap))
        assert " first (one.py)" not in done.stdout
        assert done.stderr == f"{said}came later: it is not read\n"
    finally:
        left.unlink()


@pytest.mark.parametrize(
    ("runtime", "says"),
    [
        ("node", "functions of JavaScript have no names here: node --perf-prof"),
        ("php8.2", "functions of PHP have no names here: its compiler writes"),
        ("mono-sgen", "functions of Mono have no names here: MONO_DEBUG="),
        ("beam.smp", "functions of Erlang have no names here: its processes"),
        ("nodes", ""),
    ],
)
def test_what_to_switch_on(
    command: Command, planted: Planted, tmp_path: Path, runtime: str, says: str
) -> None:
    """A runtime that was not told to write names; one line says how it is."""
    program, names = tmp_path / runtime, tmp_path / "names.map"
    shutil.copy(planted.programs / "profile_plant_ends", program)
    heap = profile_of(program, planted.library, tmp_path, "keep", HAKMEM_PROFILE_RATE="1")
    done = command("profile", "--text", str(heap))
    assert " main" in done.stdout
    assert says in done.stderr and done.stderr.count("\n") == (1 if says else 0), done.stderr
    names.write_text("10 10 any\n")
    assert command("profile", "--text", "--perf-map", str(names), str(heap)).stderr == ""
