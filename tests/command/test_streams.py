"""Outputs that are no plain files: a pipe, or a descriptor by its name. They are written to as they
are, and stay what they are. (What is not so would put a file in the place of /dev/stderr.)"""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from hakmem import heap_profile, outputs
from tests.command.command import SECONDS, Built, clean_environment

FORKS = ["sh", "-c", "sh -c 'ls /' >/dev/null & wait"]


def _told(
    built: Built, option: str, *program: str, **variables: str
) -> tuple[subprocess.CompletedProcess[str], str]:
    """And what comes out of a pipe, whose name is put in place of FILE."""
    out, into = os.pipe()
    said: list[str] = []

    def read() -> None:
        with os.fdopen(out) as file:
            said.append(file.read())

    reader = threading.Thread(target=read)
    reader.start()
    words = [word.replace("FILE", f"/dev/fd/{into}") for word in (option, *variables.values())]
    command = [str(built.front), "run", words[0], *program] if option else list(program)
    try:
        done = subprocess.run(
            command,
            env=clean_environment() | dict(zip(variables, words[1:], strict=True)),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            pass_fds=[into],
        )
    finally:
        os.close(into)
        reader.join()
    return done, said[0]


def test_profiles_of_the_command(built: Built) -> None:
    """Of all processes, one after the other."""
    done, said = _told(built, "--profile=FILE", *FORKS)
    assert (done.returncode, done.stderr) == (0, "")
    begins = "heap profile: "
    profiles = [begins + one for one in said.split(begins)[1:]]
    assert len(profiles) >= 2 and said.startswith(begins)
    assert len({heap_profile.parse(one, "one").pid for one in profiles}) == len(profiles)


def test_leaks(built: Built) -> None:
    done, said = _told(built, "--leaks=FILE", "true")
    assert (done.returncode, done.stderr) == (0, "") or "nothing is lost" in done.stderr
    assert said.startswith("heap profile: ")


def test_what_the_library_writes(built: Built) -> None:
    library = {"LD_PRELOAD": str(built.library)}
    done, said = _told(built, "", "true", HAKMEM_STATS_FILE="FILE", **library)
    assert (done.returncode, done.stderr) == (0, "") and said.endswith("# EOF\n")
    profile = {"HAKMEM_PROFILE": "on", "HAKMEM_PROFILE_FILE": "FILE"}
    done, said = _told(built, "", "true", **profile, **library)
    assert (done.returncode, done.stderr) == (0, "")
    assert heap_profile.parse(said, "the profile").written


def test_a_pipe_stays_one(built: Built, tmp_path: Path) -> None:
    """Also where nobody reads it, which is said."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for option in f"--profile={pipe}", "":
        variables = {} if option else {"LD_PRELOAD": str(built.library)}
        done, _ = _told(built, option, "true", HAKMEM_STATS_FILE=str(pipe), **variables)
        assert done.returncode == 0 and str(pipe) in done.stderr, done
        assert stat.S_ISFIFO(pipe.stat().st_mode) and list(tmp_path.iterdir()) == [pipe]


def test_what_python_writes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    out = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for path in pipe, Path("/dev/null"):
            outputs.check(path)
            outputs.replace(path, [b"one ", b"two"])
        assert os.read(out, 100) == b"one two"
    finally:
        os.close(out)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and list(tmp_path.iterdir()) == [pipe]
    with pytest.raises(outputs.CannotWrite, match="/dev/fd/12345: "):
        outputs.check(Path("/dev/fd/12345"))


def test_what_is_refused(built: Built, tmp_path: Path) -> None:
    for words, said in (
        (["--max-peak=1G", "--junit=/dev/null"], "--junit: /dev/null: expected a plain file"),
        (["--max-peak=1G", f"--junit={tmp_path}"], f"--junit: {tmp_path}: it is a folder"),
        ([f"--profile={tmp_path}"], f"--profile: {tmp_path}: it is a folder"),
        (["--leaks=/dev/fd/12345"], "--leaks: /dev/fd/12345: no permission to write there"),
    ):
        done = built("run", *words, "echo", "ran")
        assert (done.status, done.out) == (125, "") and said in done.err, done
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
