"""What a program, its parent and its user notice of the search: nothing but what is said."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import resource
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.leaks.searched import SECONDS, Ended, Run, line

ONE = "lost 100 B in 1 block; reachable 0 B in 0 blocks"


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ([], 0),
        (["exit3"], 3),
        (["_exit"], 4),
        (["leave"], 5),
        (["abort"], -signal.SIGABRT),
        (["term"], -signal.SIGTERM),
        (["fault"], -signal.SIGSEGV),
    ],
)
def test_every_end(end: list[str], status: int, run: Run) -> None:
    ended = run.plant("one", *end)
    assert ended.status == status
    assert ended.one().startswith("lost 100 B in 1 block;")


def test_killed(run: Run) -> None:
    """Its memory goes at once: it may be wanted for others."""
    ended = run.plant("one", "kill")
    assert ended.status == -signal.SIGKILL
    assert ended.one().startswith("not searched: it was ended by SIGKILL")


def test_its_number_and_its_signals(run: Run) -> None:
    """The process that is started is the program."""
    process = run.start(run.programs / "leaks_plant", "one", "handle", "wait")
    try:
        assert line(process.stdout) == "ready"
        assert Path(f"/proc/{process.pid}/comm").read_text() == "leaks_plant\n"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    ended = Ended(process.returncode, out, err)
    assert ended.status == signal.SIGTERM and ended.one() == ONE
    assert ended.said()[0][1] == process.pid


@pytest.mark.parametrize("status", [[], ["--leaks-status=9"]])
def test_stopped_and_continued(status: list[str], run: Run) -> None:
    process = run.start(*status, run.programs / "leaks_plant", "stop", "one")
    try:
        _, how = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(how) and os.WSTOPSIG(how) == signal.SIGSTOP
        time.sleep(0.1)  # it stays so
        assert os.waitpid(process.pid, os.WUNTRACED | os.WNOHANG) == (0, 0)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    ended = Ended(process.returncode, out, err)
    assert ended.status == (9 if status else 0) and ended.one() == ONE


def test_a_forked_child(run: Run) -> None:
    ended = run.plant("fork")
    child = int(ended.out)
    said = {number: what for _, number, what in ended.said()}
    assert len(said) == 2 and said.pop(child) == ONE
    (own,) = said.values()
    assert own.startswith("nothing is lost")


def test_children_that_borrow_its_memory(run: Run) -> None:
    """Of vfork, and of posix_spawn: no search where they end without another program."""
    ended = run.plant("one", "spawn")
    assert ended.status == 0
    assert ended.one() == ONE


@pytest.mark.parametrize("how", ["exec", "thread_exec"])
def test_executes_another_program(how: str, run: Run) -> None:
    """What the former lost went with its memory."""
    ended = run.plant("lose", how, "one")
    assert ended.status == 0 and ended.one() == ONE


def test_threads_and_forks(run: Run) -> None:
    ended = run.plant("one", "work")
    assert ended.status == 0
    assert ended.one().startswith("lost 100 B in 1 block;")


def test_what_has_no_hakmem(run: Run) -> None:
    ended = run("env", "-u", "LD_PRELOAD", "sh", "-c", "exit 3")
    assert ended.status == 3
    assert ended.err.startswith("hakmem run: no process was searched") and len(
        ended.err.splitlines()
    ) == 1  # fmt: skip


def test_other_options(run: Run) -> None:
    """The search needs every block, whatever is set; a profile may be written as well."""
    ended = run("-o", "profile_rate=1M", "-o", "profile=off", "--profile=x.heap",
                run.programs / "leaks_plant", "one")  # fmt: skip
    assert ended.one() == ONE and (run.folder / "x.heap").exists()


def test_streams(run: Run) -> None:
    """The tracer keeps none of the program's open."""
    out, into = os.pipe()
    process = run.start(run.programs / "leaks_plant", "one", pass_fds=[into])
    os.close(into)
    try:
        assert process.wait(SECONDS) == 0
        assert os.read(out, 1) == b""
    finally:
        os.close(out)
        process.communicate()


# ---- another status ----


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["one"], 9),
        (["one", "_exit"], 4),
        (["one", "exit3"], 3),
        (["one", "term"], -signal.SIGTERM),
        (["one", "abort"], -signal.SIGABRT),
        (["kill"], -signal.SIGKILL),
        (["fork"], 9),
        (["keep"], 0),
        ([], 0),
    ],
)
def test_another_status(words: list[str], status: int, run: Run) -> None:
    assert run("--leaks-status=9", run.programs / "leaks_plant", *words).status == status


def test_another_status_passes_signals_on(run: Run) -> None:
    process = run.start("--leaks-status=9", run.programs / "leaks_plant", "one", "handle", "wait")
    try:
        assert line(process.stdout) == "ready"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == signal.SIGTERM and "lost 100 B" in err


@pytest.mark.parametrize("option", ["=0", "=256", "=x", "=", "=-1", "=01"])
def test_wrong_status(option: str, run: Run) -> None:
    ended = run("--leaks-status" + option, "true")
    assert ended.status == 125 and "expected a number from 1 to 255" in ended.err


def test_wrong_use(run: Run) -> None:
    for words, said in (
        (["--leaks="], "expected a file after it"),
        (["--leaks=/nowhere/x"], "/nowhere: there is no such folder"),
        (["--leaks-suppressions=/nowhere/x"], "cannot be read"),
    ):
        ended = run(*words, "true")
        assert ended.status == 125 and said in ended.err and len(ended.err.splitlines()) == 1
    ended = run.command("run", "--leaks-status=3", "true")
    assert ended.status == 125 and "need --leaks" in ended.err


def test_programs_that_are_none(run: Run, tmp_path: Path) -> None:
    assert run("/nowhere/at/all").status == 127
    script = tmp_path / "script"
    script.write_text("#!/nowhere/at/all\n")
    script.chmod(0o755)
    ended = run(script)
    assert ended.status == 127 and len(ended.err.splitlines()) == 1, ended


# ---- where nothing can be written ----


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


@pytest.mark.parametrize("words", [["one"], ["one", "_exit"], ["lose", "term"]])
@pytest.mark.parametrize("file", [[], ["--leaks=x.leaks"]])
def test_small_files(file: list[str], words: list[str], run: Run) -> None:
    """The sums remain, in one line."""
    plant = run.programs / "leaks_plant"
    before = run(plant, *words)
    ended = run(*file, plant, *words, preexec_fn=_small_files)
    assert (ended.status, ended.err.count("\n")) == (before.status, 1), ended
    assert re.match(
        r"lost [0-9.]+ (B|MiB) in [0-9]+ blocks?, .*; the report can't be .*", ended.one()
    )
    assert list(run.folder.iterdir()) == []


def test_small_files_and_a_status(run: Run) -> None:
    plant = run.programs / "leaks_plant"
    assert run("--leaks-status=9", plant, "one", preexec_fn=_small_files).status == 9


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk that is full."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", folder])
    if mounted.returncode:
        pytest.skip("only root can mount a small disk")
    try:
        (folder / "all").write_bytes(bytes(4096))
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("status", [[], ["--leaks-status=9"]])
def test_full_disk(status: list[str], full: Path, run: Run) -> None:
    """The whole report remains."""
    ended = run(*status, f"--leaks={full}/x.leaks", run.programs / "leaks_plant", "one")
    assert ended.status == (9 if status else 0)
    assert "No space left on device" in ended.err and ended.one().startswith("lost 100 B")
    assert "lost_direct" in ended.err and [path.name for path in full.iterdir()] == ["all"]


def test_full_disk_without_a_loss(full: Path, run: Run) -> None:
    ended = run("--leaks-status=9", f"--leaks={full}/x", run.programs / "leaks_plant", "exit3")
    assert ended.status == 3 and "No space left on device" in ended.err
    assert ended.one().startswith("nothing is lost")


# ---- where it is not permitted ----

CALLS = {"x86_64": 101, "aarch64": 117}


def _without_ptrace() -> None:
    """A filter of system calls: that one fails with EPERM."""
    libc = ctypes.CDLL(None, use_errno=True)
    program = [
        (0x20, 0, 0, 0),  # load the number of the call
        (0x15, 0, 1, CALLS[platform.machine()]),
        (0x06, 0, 0, 0x00050001),  # an error, EPERM
        (0x06, 0, 0, 0x7FFF0000),  # allow
    ]
    code = b"".join(struct.pack("HBBI", *one) for one in program)
    buffer = ctypes.create_string_buffer(code)
    filter_ = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    )
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, filter_, 0, 0) == 0


@pytest.mark.skipif(platform.machine() not in CALLS, reason="the number of the call is not known")
def test_not_permitted(run: Run) -> None:
    ended = run("/bin/true", preexec_fn=_without_ptrace)
    assert ended.status == 125
    assert "ptrace is not permitted" in ended.err and len(ended.err.splitlines()) == 1
