"""How `hakmem tune` records the program."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from hakmem import events
from hakmem_yardstick.compare_runs import Broken
from hakmem_yardstick.service import Service
from hakmem_yardstick.subject import Program
from hakmem_yardstick.tune_record import record
from yardstick.tests.tune.tuned import Tuned


@pytest.fixture
def front(tuned: Tuned, tmp_path: Path) -> Path:
    """The command where the Python that it starts lacks modules: tune itself runs in another."""
    made = tmp_path / "hakmem"
    made.write_text(f'#!/bin/sh\n[ "$1" = run ] || exit 2\nexec "{tuned.hakmem}" "$@"\n')
    return made


def test_by_the_python_that_has_the_modules(front: Path, library: Path, tmp_path: Path) -> None:
    file, told = record(front, library, Program(("ls", "/")), None, tmp_path)
    assert " events of 1 process" in told
    (process,), whole = events.processes(file)
    assert whole and process.name == "ls"


def test_the_program_failed(front: Path, library: Path, tmp_path: Path) -> None:
    with pytest.raises(Broken, match=r"^the program failed: exit status 3: told$"):
        record(front, library, Program(("sh", "-c", "echo told >&2; exit 3")), None, tmp_path)


def test_the_recorder_failed(front: Path, library: Path, tmp_path: Path) -> None:
    """Which is not the program's failure, and has the recorder's own words."""
    (tmp_path / "recording").mkdir()
    with pytest.raises(Broken, match=r"^could not record the program: .*/recording: Is a dir.*$"):
        record(front, library, Program(("ls", "/")), None, tmp_path)


def test_a_load_that_ends_before_the_program_begins(
    front: Path, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Early(Service):
        def started(self, pid: int) -> None:
            os.kill(pid, signal.SIGTERM)

        def answered(self) -> str:
            return ""

    python = tmp_path / "python"  # that never comes to its work
    python.write_text("#!/bin/sh\nexec sleep 600\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    service = Early("true", None, None, 600)
    with pytest.raises(Broken, match=r"--load ended before .* --ready makes it wait"):
        record(front, library, Program(("ls", "/")), service, tmp_path)
