"""A recording of a Python program has its functions, files and lines in each call path."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hakmem import events, traced
from hakmem.heap_profile import Profile, Script
from tests.ran import ran
from tests.record.recorded import Recorded

PROGRAM = """\
def key(one):
    bytearray(20001)
    return one
def sorts():
    return sorted(range(50), key=key)
def calls():
    bytearray(20101)
    return sorts()
calls()
"""
MODULE = ("<module>", 9)
CALLS = {20002: [("key", 2), ("sorts", 5), ("calls", 8), MODULE], 20102: [("calls", 7), MODULE]}


def test_functions_and_lines(recorded: Recorded, tmp_path: Path) -> None:
    python = shutil.which("/usr/bin/python3")
    if python is None:
        pytest.skip("there is no /usr/bin/python3")
    program = tmp_path / "a.py"
    program.write_text(PROGRAM)
    command = ["/bin/sh", str(recorded.hakmem)]
    words = ["record", "-o", str(recorded.file), "--", python, str(program)]
    done = ran(*command, *words)
    assert done.returncode == 0, done.stderr
    (process,), _ = events.processes(recorded.file)
    found: dict[int, list[tuple[int, ...]]] = {size: [] for size in CALLS}
    for window in events.windows(process):
        for size, path in zip(window.size.tolist(), window.path.tolist(), strict=True):
            if size in found:
                found[size].append(process.path(path))
    scripts = Profile("", 1, 0, (), traced.mappings(process)).scripts
    for size, expected in CALLS.items():
        assert len(found[size]) == (50 if size == 20002 else 1)
        for path in found[size]:
            named = [scripts[address] for address in path if address in scripts]
            assert named == [Script(name, str(program), line) for name, line in expected]
    words = ["trace", str(recorded.file)]
    done = ran(*command, *words)
    assert done.returncode == 0 and "key (a.py:2) < sorts (a.py:5)" in done.stdout
