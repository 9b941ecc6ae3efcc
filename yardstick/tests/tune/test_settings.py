"""Files of settings: for which program and machine they are used."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hakmem_yardstick import settings_file
from hakmem_yardstick.settings_file import Settings
from yardstick.tests.tune.tuned import Tuned


def _written(tuned: Tuned, program: Path, **changed: object) -> Path:
    facts: dict[str, object] = {
        "options": {"profile_samples": "70"},
        "base": "hakmem",
        "command": (str(program), "again", "1", "1"),
        "identity": settings_file.identity((str(program),)),
        "cpus": settings_file.cpus(),
        "told": ("measured: never",),
        "how": {"load": None, "measures": "pss"},
    } | changed
    tuned.settings.write_text(Settings(**facts).text())  # type: ignore[arg-type]
    return tuned.settings


def _config(tuned: Tuned, *words: str) -> tuple[str, str]:
    """What a program sees of it, and what is said."""
    done = tuned.call("run", *words)
    return done.stdout, done.stderr


def test_read_again(tuned: Tuned) -> None:
    file = _written(tuned, tuned.plant)
    found = settings_file.read(file)
    assert found.options == {"profile_samples": "70"}
    assert found.command[1:] == ("again", "1", "1")
    assert found.how == {"load": None, "measures": "pss"}
    assert found.identity.startswith("build-id ")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A program without a build id."""
    made = tmp_path / "script"
    made.write_text('#!/bin/sh\necho "$HAKMEM_CONFIG"\n')
    made.chmod(0o755)
    return made


def test_used(tuned: Tuned, script: Path) -> None:
    file = _written(tuned, script)
    assert _config(tuned, "--settings", str(file), str(script)) == (f"{file}\n", "")
    # Also by a path that does not begin at the root, and by one name with =.
    assert _config(tuned, f"--settings={file.name}", "--", str(script)) == (f"{file}\n", "")


def test_by_build_id(tuned: Tuned) -> None:
    env = shutil.which("env")
    assert env is not None
    file = _written(tuned, Path(env))
    out, said = _config(tuned, "--settings", str(file), "env")
    assert f"HAKMEM_CONFIG={file}" in out.splitlines() and said == ""


def test_the_library_takes_the_options(tuned: Tuned) -> None:
    env = shutil.which("env")
    assert env is not None
    file = _written(tuned, Path(env), options={"profile_samples": "nonsense"})
    said = _config(tuned, "--settings", str(file), "env")[1]
    assert f"{file}:" in said and "profile_samples" in said


def test_another_program(tuned: Tuned, script: Path) -> None:
    file = _written(tuned, script)
    script.write_text(script.read_text() + "# another\n")
    out, said = _config(tuned, "--settings", str(file), str(script))
    assert out == "\n" and said.count("\n") == 1
    assert "another build of it" in said and "hakmem tune --check" in said
    file = _written(tuned, tuned.plant)
    assert "another program" in _config(tuned, "--settings", str(file), str(script))[1]


def test_another_machine(tuned: Tuned, script: Path) -> None:
    cpus = settings_file.cpus()
    file = _written(tuned, script, cpus=cpus + 1)
    out, said = _config(tuned, "--settings", str(file), str(script))
    assert out == "\n"
    assert f"measured with {cpus + 1} processors, here are {cpus}" in said


def test_wrong_files(tuned: Tuned, script: Path) -> None:
    other = tuned.folder / "other"
    other.write_text("profile_samples = 70\n")
    for words, says in (
        (("--settings", str(other)), "not a file of 'hakmem tune'"),
        (("--settings", "/none"), "cannot be read"),
        (("--settings=",), "expected a file"),
    ):
        assert says in tuned.call("run", *words, str(script), status=125).stderr
    if os.geteuid() != 0:
        other.chmod(0)
        done = tuned.call("run", "--settings", str(other), str(script), status=125)
        assert "cannot be read" in done.stderr
