"""`hakmem top`, live and once: one process, several, none; on terminals of several sizes,
without one, and with processes that come and go."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.watch.watched import SECONDS, Command, Process, running


def test_figures_of_one(command: Command, plant: Process) -> None:
    plant.ask("kept")
    done = command("top", "--json", plant.pid)
    assert (done.returncode, done.stderr) == (0, ""), done
    (row,) = json.loads(done.stdout)
    sheet = command.sheet(plant.pid)
    assert row["pid"] == plant.pid and row["program"] == "watch_plant"
    assert row["resident"] == sheet.said["resident"] and row["live"] == sheet.said["live"]
    assert sheet["kept"] <= row["returnable"] <= row["free"] <= row["resident"]
    assert row["freed_per_second"] is None


def test_all_of_them(command: Command, programs: Path, library: Path) -> None:
    program = programs / "watch_plant"
    with running(program, library=library) as one, running(program, library=library) as other:
        rows = json.loads(command("top", "--json").stdout)
        assert {one.pid, other.pid} <= {row["pid"] for row in rows}
        lines = command("top", "--once").stdout.splitlines()
        assert lines[0].split()[:2] == ["PID", "PROGRAM"] and len(lines) >= 3
        table = command("top").stdout
        assert "processes on hakmem: " in table and str(one.pid) in table


def test_it_watches_until_they_end(command: Command, plant: Process) -> None:
    with subprocess.Popen(
        ["/bin/sh", command.path, "top", "--json", "--every", "0.2", str(plant.pid)],
        stdout=subprocess.PIPE,
        text=True,
    ) as watches:
        assert watches.stdout is not None
        first = json.loads(watches.stdout.readline())
        plant.ask("kept")
        freed = 0.0
        for _ in range(SECONDS):
            (row,) = json.loads(watches.stdout.readline())
            freed = max(freed, row["freed_per_second"])
            if freed > 0:
                break
        assert first[0]["freed_per_second"] is None and freed > 0
        plant.process.kill()
        plant.process.wait()
        assert watches.wait(SECONDS) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_watches_until_it_is_told_to_end(
    command: Command, plant: Process, number: signal.Signals
) -> None:
    words = ["top", "--once", "--every", "600", str(plant.pid)]
    with subprocess.Popen(
        ["/bin/sh", command.path, *words], stdout=subprocess.PIPE, text=True
    ) as watches:
        assert watches.stdout is not None
        watches.stdout.readline()
        assert str(plant.pid) in watches.stdout.readline()
        watches.send_signal(number)
        assert watches.wait(SECONDS) == 0


def test_what_is_wrong(command: Command, plant: Process) -> None:
    for words in (
        ["top", "--once", str(2**22 + 1)],
        ["top", "--once", "x"],
        ["top", "--once", "--every", "0"],
        ["top", "x"],
        ["top", "--seconds", "-1"],
    ):
        done = command(*words)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    done = command("top", "--once", plant.pid, 2**22)
    assert done.returncode == 2 and str(plant.pid) in done.stdout


@pytest.mark.parametrize("once", [["--once"], []], ids=["once", "no terminal"])
def test_one_that_has_no_figures(command: Command, plant: Process, once: list[str]) -> None:
    """This Python process is not on hakmem."""
    done = command("top", *once, os.getpid())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"hakmem top: process {os.getpid()}: it does not use hakmem")
    done = command("top", *once, os.getpid(), plant.pid)
    assert done.returncode == 1 and str(plant.pid) in done.stdout
    assert "does not use hakmem" in done.stderr


# ---- on a terminal ----


class Screen:
    """What was written to a terminal, without the codes that place it."""

    def __init__(self, end: int) -> None:
        self.end = end
        self.said = ""

    def press(self, keys: str) -> None:
        self.said = ""
        os.write(self.end, keys.encode())

    def shows(self, words: str, anew: bool = False) -> None:
        """One of the words, divided by bars. `anew`: only what changes is written, so the whole
        screen is asked for."""
        until = time.monotonic() + SECONDS
        while not self._has(words):
            assert time.monotonic() < until, f"{words!r} is not in {self.said!r}"
            if anew:
                self.press("\x0c")
            # A screen comes in parts, and those that show it may be busy.
            asked = time.monotonic()
            while not self._has(words) and time.monotonic() < asked + 1:
                if not select.select([self.end], [], [], 0.1)[0]:
                    continue
                try:
                    self.said += os.read(self.end, 65536).decode(errors="replace")
                except OSError:  # the program has ended
                    assert self._has(words), self.said
                    return

    def _has(self, words: str) -> bool:
        text = re.sub(r"\x1b[\[(][0-9;?]*[A-Za-z]", "", self.said)
        return any(one in text for one in words.split("|"))


@contextmanager
def on_screen(
    command: Command, *words: str, columns: int, lines: int, term: str = "xterm"
) -> Iterator[tuple[Screen, int]]:
    child, end = pty.fork()
    if child == 0:
        os.environ.update(TERM=term, LC_ALL="C")
        os.execv("/bin/sh", ["/bin/sh", str(command.path), "top", "--seconds", "0.3", *words])
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    os.kill(child, signal.SIGWINCH)
    try:
        yield Screen(end), child
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)
        os.close(end)


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (200, 60), (40, 5)])
def test_on_a_terminal(command: Command, plant: Process, columns: int, lines: int) -> None:
    with on_screen(command, str(plant.pid), columns=columns, lines=lines) as (screen, child):
        screen.shows("processes on hakmem: 1")
        screen.shows(str(plant.pid))
        screen.press("\r")
        screen.shows("blocks in use")
        screen.press("j" * 200)  # to its last line, that of the one thread's cache
        screen.shows("  watch_plant", anew=True)
        screen.press("s")
        screen.press("\x1b")
        screen.shows("processes on hakmem: 1")
        screen.press("q")
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("keys", ["q", "\x03"], ids=["q", "Ctrl-C"])
def test_it_ends(command: Command, plant: Process, keys: str) -> None:
    with on_screen(command, str(plant.pid), columns=80, lines=24) as (screen, child):
        screen.shows("processes on hakmem: 1")
        screen.press(keys)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_who_ends_it_has_the_terminal_back(
    command: Command, plant: Process, number: signal.Signals
) -> None:
    with on_screen(command, str(plant.pid), columns=80, lines=24) as (screen, child):
        screen.shows("processes on hakmem: 1")
        assert not termios.tcgetattr(screen.end)[3] & termios.ECHO
        os.kill(child, number)
        assert os.waitpid(child, 0)[1] == 0
        assert termios.tcgetattr(screen.end)[3] & termios.ECHO


def test_a_screen_without_figures(command: Command) -> None:
    with on_screen(command, str(os.getpid()), columns=80, lines=24) as (screen, child):
        screen.shows("does not use hakmem")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_keys_give_orders(command: Command, library: Path) -> None:
    frees = "import time\nprint('ready', flush=True)\nwhile 1: bytes(5000); time.sleep(0.001)"
    with (
        running("python3", "-c", frees, library=library, PYTHONMALLOC="malloc") as process,
        on_screen(command, str(process.pid), columns=120, lines=24) as (screen, _),
    ):
        screen.shows("processes on hakmem: 1")
        late = f"process {process.pid} is idle: it will do so"  # it had no processor for a while
        screen.press("p")
        screen.shows(f"MiB returned|{late}")
        screen.press("c")
        screen.shows(f"compact=off|{late}")


def test_they_come_and_go(command: Command, programs: Path, library: Path) -> None:
    program = programs / "watch_plant"
    with on_screen(command, columns=100, lines=40) as (screen, _):
        screen.shows("processes on hakmem: ")
        for _ in range(3):
            with running(program, library=library) as process:
                screen.shows(str(process.pid), anew=True)


def test_a_terminal_that_can_nothing(command: Command, plant: Process) -> None:
    with on_screen(command, str(plant.pid), columns=80, lines=24, term="unheard-of") as (screen, c):
        screen.shows(str(plant.pid))
        assert os.waitpid(c, 0)[1] == 0
