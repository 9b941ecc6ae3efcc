"""Runs the driver under strace, and reads which system calls it made between its markers."""

from pathlib import Path

import pytest

from tests.counts.work import Work
from tests.ran import clean_environment, ran

BEGIN, END = "counts: begin", "counts: end"


def skip_without_strace() -> None:
    """Some machines have no strace, and some containers permit no process to trace another."""
    try:
        done = ran("strace", "-f", "true")
    except FileNotFoundError:
        pytest.skip("strace is not installed")
    if done.returncode:
        pytest.skip(f"strace cannot trace here: {done.stderr.strip()}")


def system_calls(driver: Path, library: Path, work: Work, warm_ups: int, out: Path) -> list[str]:
    """System calls of all threads in the counted part; `out` gets the whole trace."""
    command = ["strace", "-f", "-o", str(out), "-e", "trace=all", "-e", "signal=none"]
    command += ["-E", f"LD_PRELOAD={library}", str(driver), *work.arguments(), str(warm_ups)]
    done = ran(*command, env=clean_environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == str(library), "another malloc was in force"
    return between_markers(out.read_text())


def between_markers(trace: str) -> list[str]:
    lines = trace.splitlines()
    begin, end = (_only(lines, marker) for marker in (BEGIN, END))
    return lines[begin + 1 : end]


def _only(lines: list[str], marker: str) -> int:
    found = [at for at, line in enumerate(lines) if "write(" in line and marker in line]
    assert len(found) == 1, f"{len(found)} system calls write {marker!r}"
    return found[0]
