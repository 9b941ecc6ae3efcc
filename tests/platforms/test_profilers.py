"""Heap profilers beside hakmem: they must see the program's calls, and hakmem must serve them.

Where a profiler is not installed, its tests are skipped and say so: `apt-get install heaptrack`;
`pip install memray`, with its command in PATH."""

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.ran import ran

SECONDS = 300
PEAK = re.compile(r"peak heap memory consumption: ([\d.]+)([BKMG])")
UNITS = {"B": 1, "K": 10**3, "M": 10**6, "G": 10**9}
SCRIPT = """
import ctypes

def in_hakmem():
    fields = (ctypes.c_size_t * 2)()
    ctypes.CDLL(None).hakmem_stats(fields, ctypes.c_size_t(ctypes.sizeof(fields)))
    return fields[1]

def keep_a_block():
    return bytearray(32 << 20)

before = in_hakmem()
block = keep_a_block()
print("malloc is", "hakmem's" if in_hakmem() - before >= 32 << 20 else "another's")
"""


def _installed(tool: str) -> str:
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"{tool} is not installed")
    return found


def _done(command: Sequence[str | Path], **more: str) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HAKMEM_", "LD_", "PYTHON"))}
    ended = ran(*command, env=env | more)
    assert ended.returncode == 0, (command, ended.returncode, ended.stdout, ended.stderr)
    return ended.stdout


@pytest.fixture
def program(programs: Path) -> Path:
    return programs / "platforms_profiled"


def _record(out: Path) -> str:
    """What heaptrack found, as it prints it."""
    (file,) = out.parent.glob(f"{out.name}.*")
    return _done([_installed("heaptrack_print"), "-f", file])


def _peak(report: str) -> float:
    found = PEAK.search(report)
    assert found, report
    return float(found[1]) * UNITS[found[2]]


def test_heaptrack_before_hakmem(program: Path, library: Path, tmp_path: Path) -> None:
    """It puts itself before what LD_PRELOAD names, and passes each call on to the next malloc."""
    out = tmp_path / "record"
    command = [_installed("heaptrack"), "-o", str(out), str(program)]
    assert "malloc is hakmem's" in _done(command, LD_PRELOAD=str(library))
    report = _record(out)
    assert "keep_ten_blocks" in report, report
    assert 10 << 20 <= _peak(report) < 20 << 20, report


def test_heaptrack_after_hakmem(program: Path, library: Path, tmp_path: Path) -> None:
    """Started inside of heaptrack, hakmem comes first; heaptrack sees nothing of the program."""
    out = tmp_path / "record"
    run = f"LD_PRELOAD={library}:$LD_PRELOAD exec {program}"
    assert "malloc is hakmem's" in _done([_installed("heaptrack"), "-o", out, "sh", "-c", run])
    report = _record(out)
    assert "keep_ten_blocks" not in report, report
    assert _peak(report) < 10 << 20, report


def test_memray(library: Path, tmp_path: Path) -> None:
    """It changes the tables by which Python calls malloc, and passes each call on to hakmem's."""
    memray, script, out = _installed("memray"), tmp_path / "script.py", tmp_path / "record.bin"
    script.write_text(SCRIPT)
    command = [memray, "run", "--native", "--quiet", "-o", str(out), str(script)]
    assert "malloc is hakmem's" in _done(command, LD_PRELOAD=str(library))
    report = _done([memray, "stats", out], COLUMNS="200")
    assert "keep_a_block" in report, report
    assert "MALLOC" in report, report
