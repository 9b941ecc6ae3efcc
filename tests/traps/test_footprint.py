"""The core that a process leaves behind, beside that with the system's malloc (trap 55)."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ran import clean_environment

KIB = 1024
MIB = 1024 * KIB

# What ours may take beyond the system's malloc.
MORE_IN_A_CORE = 16 * MIB
# Freed blocks that are kept for reuse are in a core, too.
MORE_CORE = 4 * MIB


def environment(library: Path | None) -> dict[str, str]:
    variables = clean_environment()
    if library is not None:
        variables["LD_PRELOAD"] = str(library)
    return variables


TEXT = "a text that the process puts together"
PROGRAM = f"""
import os
words = {TEXT.split()[::-1]!r}
kept = [" ".join(reversed(words)).encode() * 50 for _ in range(100)]
large = bytearray(" ".join(reversed(words)).encode() * 40000)
os.abort()
"""


def skip_without_core_files() -> None:
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith("|") or "/" in pattern or not pattern:
        pytest.skip(f"the kernel leaves no core in the process's folder: {pattern!r}")
    if resource.getrlimit(resource.RLIMIT_CORE)[1] not in (resource.RLIM_INFINITY,):
        pytest.skip("the size of cores is limited")


def unlimited_core() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def dump(library: Path | None, folder: Path) -> Path:
    """The core of a Python process; it asks malloc for every object."""
    folder.mkdir()
    variables = environment(library) | {"PYTHONMALLOC": "malloc"}
    done = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM],
        env=variables,
        cwd=folder,
        preexec_fn=unlimited_core,
        capture_output=True,
    )
    assert done.returncode == -6, done.stderr
    cores = list(folder.glob("core*"))
    if not cores:
        pytest.skip("no core was left")
    return cores[0]


def test_core_holds_the_blocks_and_little_else(library: Path, tmp_path: Path) -> None:
    skip_without_core_files()
    system, ours = dump(None, tmp_path / "system"), dump(library, tmp_path / "ours")
    sizes = {path: (path.stat().st_size, path.stat().st_blocks * 512) for path in (system, ours)}
    for path, (length, stored) in sizes.items():
        print(f"{path.parent.name:8} core of {length / MIB:.1f} MiB, {stored / MIB:.1f} stored")
    found = ours.read_bytes().count(TEXT.encode())
    expected = 100 * 50 + 40000
    print(f"{found} of {expected} texts in the core")
    assert found >= expected
    assert sizes[ours][0] <= sizes[system][0] + MORE_IN_A_CORE
    assert sizes[ours][1] <= sizes[system][1] + MORE_CORE
