"""`hakmem profile PID`: what is asked of the process and in which order, how the wait ends, and
what is said where there is nothing to read. Most of it with a reader that is made up; one test with
a process, where the reader can read profiles. And `hakmem run --profile`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hakmem import look
from tests.profile.planted import KEPT, RATE, SECONDS, by_function, named, near
from tests.profile.test_read import SMALL
from tests.ran import clean_environment, ran
from tests.watch.watched import Command, Process, running

PYTHON_PART = Path(__file__).parents[2] / "python/hakmem"


@dataclass(frozen=True)
class Made:
    """A reader that answers as its files say, and writes down what it was asked."""

    folder: Path

    def __init__(self, folder: Path) -> None:
        object.__setattr__(self, "folder", folder)
        reader = folder / "hakmem/look"
        reader.parent.mkdir()
        reader.write_text(
            f"""#!/bin/sh
cd '{folder}' || exit
echo "$@" >>asked
shift
case $* in
"set profile 1")
    [ ! -e on ] || {{ cat on >&2; exit "$(cat on_status)"; }}
    [ ! -e was_on ] || {{ echo '{{"result": 1}}'; exit; }} ;;
profile) [ ! -e read ] || {{ cat read >&2; exit "$(cat read_status)"; }}; cat profile; exit ;;
esac
echo '{{"result": 0}}'
"""
        )
        reader.chmod(0o755)
        (folder / "profile").write_text(SMALL)
        (folder / "asked").touch()

    def fails(self, what: str, status: int, said: str) -> None:
        (self.folder / what).write_text(said + "\n")
        (self.folder / f"{what}_status").write_text(str(status))

    def asked(self) -> list[str]:
        return [line.partition(" ")[2] for line in self._lines()]

    def _lines(self) -> list[str]:
        return (self.folder / "asked").read_text().splitlines()

    def start(self, *words: str | int | Path) -> subprocess.Popen[str]:
        library = self.folder / "libhakmem.so"
        return subprocess.Popen(
            [sys.executable, PYTHON_PART, "hakmem", library, "profile", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            start_new_session=True,
        )

    def __call__(self, *words: str | int | Path) -> tuple[int, str, str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=SECONDS)
        return process.returncode, out, err


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


@contextmanager
def sleeper(**variables: str) -> Iterator[int]:
    process = subprocess.Popen(["sleep", "1000"], env={**os.environ, **variables})
    try:
        # Until it is that program, it has the environment of this one.
        while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
            time.sleep(0.01)
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_on_and_off(made: Made) -> None:
    with sleeper() as pid:
        status, out, err = made("--seconds", 0, pid)
        assert (status, out) == (0, ""), err
        assert made.asked() == ["set profile 1", "profile", "set profile 0"]
        assert (made.folder / f"sleep.{pid}.html").exists()
        status, out, err = made("--seconds", 0, "--text", pid)
        assert status == 0 and out.startswith(f"sleep.{pid}: one sample")
        status, *_ = made("--seconds", 0, "--text", "--keep", pid)
        assert status == 0 and made.asked()[-1] == "profile"


def test_what_was_on_stays_on(made: Made) -> None:
    (made.folder / "was_on").touch()
    with sleeper() as pid:
        assert made("--seconds", 0, "--text", pid)[0] == 0
    assert made.asked() == ["set profile 1", "profile"]


@pytest.mark.parametrize(("value", "stays"), [("on", True), ("1", True), ("off", False)])
def test_what_an_idle_process_began_with_stays_on(made: Made, value: str, stays: bool) -> None:
    made.fails("on", 7, "process 1 is idle: it will do so when it next frees memory")
    with sleeper(HAKMEM_PROFILE=value) as pid:
        status, _, err = made("--seconds", 0, "--text", pid)
    assert status == 0, err
    assert (made.asked()[-1] == "profile") == stays


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("at_once", [False, True])
def test_interrupted(made: Made, at_once: bool, by: signal.Signals) -> None:
    """Ctrl-C ends the wait, and what was seen is written. `at_once`: while the reader is at work,
    which gets the signal as well."""
    if at_once:
        script = (made.folder / "hakmem/look").read_text()
        slow = '"set profile 1") until [ -e go ]; do sleep 0.01; done;'
        (made.folder / "hakmem/look").write_text(script.replace('"set profile 1")', slow))
    with sleeper() as pid:
        process = made.start("--seconds", 10**6, "-o", "x.heap", pid)
        try:
            while not made.asked():
                assert process.poll() is None
                time.sleep(0.01)
            os.killpg(process.pid, by)
            (made.folder / "go").touch()
            _, err = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert (made.folder / "x.heap").read_text() == SMALL
    assert made.asked() == ["set profile 1", "profile", "set profile 0"]


def test_idle(made: Made) -> None:
    """It begins when it works again; the wait goes on."""
    made.fails("on", 7, "process 1 is idle: it will do so when it next frees memory")
    with sleeper() as pid:
        status, out, err = made("--seconds", 0, "--text", pid)
    assert status == 0 and out
    assert err.startswith("hakmem profile: process 1 is idle")
    assert made.asked() == ["set profile 1", "profile", "set profile 0"]


@pytest.mark.parametrize(
    ("what", "ended", "said", "status", "asked"),
    [
        ("on", 5, "process 1 does not use hakmem", 1, ["set profile 1"]),
        ("on", 8, "process 1 refused", 1, ["set profile 1"]),
        ("on", 3, "there is no process 1", 2, ["set profile 1"]),
        ("read", 3, "there is no process 1", 2, ["set profile 1", "profile", "set profile 0"]),
        ("read", 6, "its tables are damaged", 1, ["set profile 1", "profile", "set profile 0"]),
    ],
)
def test_fails(made: Made, what: str, ended: int, said: str, status: int, asked: list[str]) -> None:
    made.fails(what, ended, said)
    with sleeper() as pid:
        ended_with, out, err = made("--seconds", 0, "-o", "x.html", pid)
    said = said if "process" in said else f"process {pid}: {said}"
    assert (ended_with, out, err) == (status, "", f"hakmem profile: {said}\n")
    assert made.asked() == asked and not (made.folder / "x.html").exists()


def test_nonsense(made: Made) -> None:
    (made.folder / "profile").write_text("nonsense\n")
    with sleeper() as pid:
        status, _, err = made("--seconds", 0, pid)
    assert status == 1 and err == f"hakmem profile: process {pid}: not a heap profile of hakmem\n"


def test_output_is_checked_first(made: Made) -> None:
    """Not after a wait."""
    with sleeper() as pid:
        status, _, err = made("--seconds", 10**6, "-o", "/nowhere/x.html", pid)
        assert status == 5 and "no such folder" in err
        status, _, err = made("--seconds", 10**6, "-o", "x.svg", pid)
        assert status == 2 and "expected a name" in err
    assert made.asked() == []


@contextmanager
def at_work(plant: Process) -> Iterator[None]:
    """It allocates and frees, over and over, so it obeys."""
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            plant.ask("pass")

    worker = threading.Thread(target=ask)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join()


def test_process(command: Command, programs: Path, library: Path, tmp_path: Path) -> None:
    program = programs / "profile_plant"
    with running(
        program,
        "serve",
        library=library,
        HAKMEM_PROFILE_RATE=str(RATE),
        HAKMEM_PROFILE_SAMPLES="0",
    ) as plant:
        reader = library.parent / "hakmem/look"
        told = ran(reader, str(plant.pid), "profile")
        if told.stderr.startswith("usage: "):
            pytest.skip("this reader reads no profiles")
        heap = tmp_path / "x.heap"
        with at_work(plant):
            done = command("profile", "--keep", "--seconds", 0, "--text", plant.pid)
            assert done.returncode == 0, done.stderr
        plant.ask("leak")
        # It is idle now, so it is told that it is on already, or will be.
        done = command("profile", "--seconds", 0, "-o", str(heap), plant.pid)
        assert done.returncode == 0, done.stderr
        leak = by_function(named(heap), "leak")
        assert near(leak.figures[1], KEPT)


def test_a_process_says_whether_a_profile_was_on(programs: Path, library: Path) -> None:
    """So the command leaves on what the user had turned on."""

    def was_on(pid: int, value: int) -> bool:
        for _ in range(20):
            try:
                return look.change(pid, library, "profile", value)
            except look.CannotLook as why:
                assert why.status == 4, why  # on a busy machine
        raise AssertionError("it takes no orders")

    with running(programs / "profile_plant", "serve", library=library) as plant, at_work(plant):
        for value in 1, 0:
            was_on(plant.pid, value)
            assert was_on(plant.pid, value) == bool(value)


# ---- hakmem run --profile ----


def run(command: Command, folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    others = clean_environment()
    return ran("/bin/sh", command.path, "run", *words, cwd=folder, env=others)


def test_run(command: Command, programs: Path, tmp_path: Path) -> None:
    program = programs / "profile_plant"
    exact = ("-o", f"profile_rate={RATE}", "-o", "profile_samples=0")
    done = run(command, tmp_path, *exact, "--profile", program)
    assert done.returncode == 0 and done.stderr == ""
    (heap,) = tmp_path.iterdir()
    assert re.fullmatch(r"profile_plant\.[0-9]+\.heap", heap.name)
    assert near(by_function(named(heap), "leak").figures[1], KEPT)
    # Another folder at the end, a name of one's own.
    done = run(command, tmp_path, "--profile=mine.heap", "sh", "-c", f"cd /; exec {program}")
    assert done.returncode == 0 and named(tmp_path / "mine.heap").stacks


EXECUTES = """
import os, sys, threading
left = int(sys.argv[1])
kept = []
def work():
    while True:
        kept.append(bytearray(3000))
        if len(kept) > 1000:
            del kept[:500]
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
while len(kept) < 100:
    pass
if left > 0:
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[2], str(left - 1), sys.argv[2]])
"""


def test_run_executes(command: Command, tmp_path: Path) -> None:
    """Another program in its place, over and over, while threads allocate: the last one's profile
    is written."""
    words = (sys.executable, "-c", EXECUTES, "10", EXECUTES)
    done = run(command, tmp_path, "-o", "profile_rate=4K", "--profile=x.heap", *words)
    assert done.returncode == 0 and done.stderr == ""
    (heap,) = tmp_path.iterdir()
    assert heap.name == "x.heap" and named(heap).stacks


def test_run_refuses(command: Command, tmp_path: Path) -> None:
    for word, said in (
        ("--profile=", "expected a file after it"),
        ("--profile=/nowhere/x.heap", "/nowhere: there is no such folder"),
        ("--profiles", "unknown option"),
    ):
        done = run(command, tmp_path, word, "true")
        assert done.returncode == 125 and said in done.stderr
        assert len(done.stderr.splitlines()) == 1
