"""Outputs that are no plain files: a pipe, or a descriptor by its name. They are written to as they
are, and stay what they are. (What is not so would put a file in the place of /dev/stderr.)"""

from __future__ import annotations

import fcntl
import os
import select
import stat
import subprocess
from pathlib import Path

import pytest

from hakmem import heap_profile, outputs
from tests.command.command import SECONDS, Built, clean_environment

FORKS = ["sh", "-c", "sh -c 'ls /' >/dev/null & wait"]


def _said(command: list[str], pipe: Path, **variables: str) -> tuple[str, str]:
    """On standard error, and into the pipe."""
    out = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    done = subprocess.run(
        command,
        env=clean_environment() | variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done
    said = b""
    with os.fdopen(out, "rb", buffering=0) as file:
        while part := file.read(65536):
            said += part
    return done.stderr, said.decode()


def _pipe(folder: Path) -> Path:
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    return pipe


def _is_still_one(pipe: Path) -> bool:
    return stat.S_ISFIFO(pipe.stat().st_mode) and list(pipe.parent.iterdir()) == [pipe]


def test_profiles_of_the_command(built: Built, tmp_path: Path) -> None:
    """Of all processes, one after the other."""
    pipe = _pipe(tmp_path)
    command = [str(built.front), "run", f"--profile={pipe}", "-o", "profile_rate=1G", *FORKS]
    err, said = _said(command, pipe)
    begins = "heap profile: "
    profiles = [begins + one for one in said.split(begins)[1:]]
    assert not err and len(profiles) >= 2 and said.startswith(begins)
    assert len({heap_profile.parse(one, "one").pid for one in profiles}) == len(profiles)
    assert _is_still_one(pipe)


def test_a_profile_to_standard_error(built: Built) -> None:
    done = built("run", "--profile=/proc/self/fd/2", "true")
    assert (done.status, done.out) == (0, ""), done
    assert heap_profile.parse(done.err, "the profile").written


def test_leaks(built: Built, tmp_path: Path) -> None:
    pipe = _pipe(tmp_path)
    err, said = _said([str(built.front), "run", f"--leaks={pipe}", "true"], pipe)
    assert "nothing is lost" in err and err.count("\n") == 1
    assert said.startswith("heap profile: ") and _is_still_one(pipe)


def test_what_the_library_writes(built: Built, tmp_path: Path) -> None:
    pipe = _pipe(tmp_path)
    library = {"LD_PRELOAD": str(built.library)}
    assert _said(["true"], pipe, HAKMEM_STATS_FILE=str(pipe), **library)[1].endswith("# EOF\n")
    profile = library | {"HAKMEM_PROFILE": "on"}
    err, said = _said(["true"], pipe, HAKMEM_PROFILE_FILE=str(pipe), **profile)
    assert not err and heap_profile.parse(said, "the profile").written
    assert _is_still_one(pipe)
    out, into = os.pipe()
    done = subprocess.run(
        ["true"],
        env=clean_environment() | profile | {"HAKMEM_PROFILE_FILE": f"/dev/fd/{into}"},
        pass_fds=[into],
        timeout=SECONDS,
    )
    os.close(into)
    with os.fdopen(out) as file:
        assert done.returncode == 0 and heap_profile.parse(file.read(), "it").written


def test_where_nobody_reads_it(built: Built, tmp_path: Path) -> None:
    """That is said."""
    pipe = _pipe(tmp_path)
    for command in [str(built.front), "run", f"--profile={pipe}", "true"], ["true"]:
        variables = {"HAKMEM_STATS_FILE": str(pipe), "LD_PRELOAD": str(built.library)}
        done = subprocess.run(
            command,
            env=clean_environment() | (variables if len(command) == 1 else {}),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0 and str(pipe) in done.stderr, done
        assert _is_still_one(pipe)


def test_what_python_writes(tmp_path: Path) -> None:
    pipe = _pipe(tmp_path)
    out = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for path in pipe, Path("/dev/null"):
            outputs.check(path)
            outputs.replace(path, [b"one ", b"two"])
        assert os.read(out, 100) == b"one two"
    finally:
        os.close(out)
    assert _is_still_one(pipe)
    with pytest.raises(outputs.CannotWrite, match="/dev/fd/12345: "):
        outputs.check(Path("/dev/fd/12345"))


def test_what_is_refused(built: Built, tmp_path: Path) -> None:
    for words, said in (
        (["--max-peak=1G", "--junit=/dev/null"], "--junit: /dev/null: expected a plain file"),
        (["--max-peak=1G", f"--junit={tmp_path}"], f"--junit: {tmp_path}: it is a folder"),
        ([f"--profile={tmp_path}"], f"--profile: {tmp_path}: it is a folder"),
        (["--leaks=/dev/fd/12"], "--leaks: /dev/fd/12: expected a file, or /dev/stderr"),
        (["--profile=/dev/stdout"], "--profile: /dev/stdout: expected a file, or /dev/stderr"),
    ):
        done = built("run", *words, "echo", "ran")
        assert (done.status, done.out) == (125, "") and said in done.err, done
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize(
    "status, words",
    [
        (7, ["record", "-o", "a.recording", "--", "sh", "-c", "exit 7"]),
        (2, ["trace", "not-there"]),
        (122, ["run", "--max-peak=1", "sh", "-c", "exit 0"]),
    ],
)
def test_standard_error_that_takes_nothing(
    built: Built, tmp_path: Path, status: int, words: list[str]
) -> None:
    """A reader that has ended, or a full disk: the status is what it is without."""
    reader, ended = os.pipe()
    os.close(reader)
    full = os.open("/dev/full", os.O_WRONLY)
    for errors in ended, full:
        done = subprocess.run(
            [str(built.front), *words],
            env=clean_environment(),
            cwd=tmp_path,
            stdout=errors,
            stderr=errors,
            timeout=SECONDS,
        )
        os.close(errors)
        assert done.returncode == status, (done, errors == full)


def test_standard_output_that_does_not_wait(built: Built) -> None:
    """As another program may have set it: all of it is written, when there is room."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    command = [str(built.front), "options"]
    with subprocess.Popen(command, env=clean_environment(), stdout=writer) as started:
        os.close(writer)
        assert select.select([reader], [], [], SECONDS)[0]
        with os.fdopen(reader, "rb") as output:
            text = output.read()
    assert started.returncode == 0 and len(text) > 3 * 4096 and text.endswith(b"\n")
