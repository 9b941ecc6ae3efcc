"""Programs whose file can't be found by a name that is text: the path has other bytes, or the file
was removed, or never had a name. While such a program runs, the kernel has its file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.nobody import as_nobody
from tests.profile.planted import KEPT, RATE, SECONDS, by_function, named, near
from tests.profile.test_process import at_work
from tests.watch.watched import Command, Process, running

NO_TEXT, SHOWN = os.fsdecode(b"caf\xe9"), r"caf\xe9"
FROM_MEMORY = """
import os, sys
file = os.memfd_create("of-memory")
with open(sys.argv[1], "rb") as program:
    os.write(file, program.read())
os.execve(file, sys.argv[1:], os.environ)
"""
ON = {"HAKMEM_PROFILE": "on", "HAKMEM_PROFILE_RATE": str(RATE), "HAKMEM_PROFILE_SAMPLES": "0"}


@pytest.fixture
def program(given: Callable[[str], Path], tmp_path: Path) -> Path:
    return Path(shutil.copy(given("--programs") / "profile_plant", tmp_path / NO_TEXT))


@contextmanager
def _serving(program: Path, way: str, library: Path) -> Iterator[Process]:
    words = [sys.executable, "-c", FROM_MEMORY] if way == "of-memory" else []
    with running(*words, program, "serve", library=library, **ON) as plant:
        if way == "removed":
            program.unlink()
        plant.ask("leak")
        yield plant


@pytest.mark.parametrize("way", ["no text", "removed", "of-memory"])
def test_a_running_program(command: Command, program: Path, library: Path, way: str) -> None:
    with _serving(program, way, library) as plant:
        with at_work(plant):
            done = command("profile", "--seconds", 0, "--text", plant.pid)
        assert done.returncode == 0 and "leak (plant.c:" in done.stdout, done
        done = command("sheet", "--sites", plant.pid)
        assert done.returncode == 0 and "leak (plant.c:" in done.stdout, done
        named_in_sheet = "of-memory (deleted)" if way == "of-memory" else "caf"
        assert named_in_sheet in command("sheet", "--json", plant.pid).stdout


def test_less_rights_suffice_for_the_program_itself(
    command: Command, program: Path, library: Path
) -> None:
    """Of other files that were removed the kernel shows only root what it has."""
    with _serving(program, "removed", library) as plant:
        by = [*as_nobody()[:1], "--bounding-set=-sys_admin,-checkpoint_restore", "--"]
        if subprocess.run([*by, "true"], capture_output=True).returncode:
            pytest.skip("capabilities can't be dropped here")
        with at_work(plant):
            done = command("profile", "--seconds", 0, "--text", plant.pid, by=by)
        assert done.returncode == 0 and "leak (plant.c:" in done.stdout, done


def _run(command: Command, folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    others = {n: v for n, v in os.environ.items() if not n.startswith(("LD_", "HAKMEM_"))}
    done = subprocess.run(
        ["/bin/sh", command.path, *words],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        cwd=folder,
        env=others | ON,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_a_profile(command: Command, program: Path, tmp_path: Path) -> None:
    """Also of a name that is none, and all that is made of it."""
    _run(command, tmp_path, "run", f"--profile={NO_TEXT}.heap", program)
    profile = named(tmp_path / f"{NO_TEXT}.heap")
    leak = by_function(profile, "leak")
    assert near(leak.figures[1], KEPT)
    assert {frame.module.path for frame in leak.frames if frame.module} >= {f"{tmp_path}/{SHOWN}"}
    outputs = ["x.html", "x.collapsed", "x.speedscope.json", "x.heap", "x.pb.gz"]
    words = [word for name in outputs for word in ("-o", name)]
    done = _run(command, tmp_path, "profile", "--text", *words, f"{NO_TEXT}.heap")
    assert "leak (plant.c:" in done.stdout
    assert all((tmp_path / name).stat().st_size for name in outputs)
    program.unlink()
    assert by_function(named(tmp_path / "x.heap"), "leak").frames[0].lines
    notes = "".join(named(tmp_path / f"{NO_TEXT}.heap").notes)
    assert f"{tmp_path}/{SHOWN}: can't be read" in notes


def test_a_recording(command: Command, program: Path, tmp_path: Path) -> None:
    _run(command, tmp_path, "record", "-o", f"{NO_TEXT}.recording", "--", program)
    outputs = ["x.html", "x.collapsed", "x.speedscope.json"]
    words = [word for name in outputs for word in ("-o", name)]
    done = _run(command, tmp_path, "trace", f"{NO_TEXT}.recording")
    assert "leak (plant.c:" in done.stdout and SHOWN in done.stdout
    _run(command, tmp_path, "trace", *words, f"{NO_TEXT}.recording")
    assert all((tmp_path / name).stat().st_size for name in outputs)
