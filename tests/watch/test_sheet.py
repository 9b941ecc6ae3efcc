"""`hakmem sheet`: its lines add up to what the kernel says is resident, planted memory is found in
the line that it belongs to, what could be less becomes less when it is tried, and a process that
can't be read gives one clear line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.nobody import as_nobody

SECONDS = 120
LOOKS = 24
SHARE = (
    0.02  # of what is planted, that may be missing or too much; of what is resident, unexplained
)


@dataclass(frozen=True)
class Sheet:
    said: dict[str, Any]

    def __getitem__(self, name: str) -> int:
        return int(self._line(name)["resident"])

    def could_be(self, name: str) -> int:
        return int(self._line(name).get("could_be", self[name]))

    def _line(self, name: str) -> dict[str, Any]:
        lines = [*self.said["heap"], *self.said["others"]]
        (line,) = (one for one in lines if one["name"] == name)
        return dict(line)

    def adds_up(self) -> None:
        lines = [line["resident"] for line in (*self.said["heap"], *self.said["others"])]
        assert sum(lines) == self.said["resident"]

    def is_explained(self) -> bool:
        return bool(abs(self["unexplained"]) <= SHARE * self.said["resident"])

    def agrees(self) -> None:
        """With the kernel's sums, while nothing changes."""
        self.adds_up()
        for sum_ in self.said["kernel"].values():
            assert abs(self.said["resident"] - sum_) <= SHARE * sum_
        assert self.is_explained()


@dataclass(frozen=True)
class Command:
    path: Path

    def __call__(
        self, *words: str | int, by: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*by, "/bin/sh", str(self.path), *map(str, words)],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
        )

    def sheet(self, pid: int) -> Sheet:
        done = self("sheet", "--json", pid)
        assert done.returncode == 0, done.stderr
        return Sheet(json.loads(done.stdout))


@pytest.fixture
def command(given: Callable[[str], Path]) -> Command:
    path = given("--hakmem")
    return Command(path)


@dataclass(frozen=True)
class Process:
    process: subprocess.Popen[str]

    @property
    def pid(self) -> int:
        return self.process.pid

    def ask(self, word: str) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@contextmanager
def running(*words: str | Path, library: Path | None = None, **variables: str) -> Iterator[Process]:
    """One that has said "ready"."""
    environment = {n: v for n, v in os.environ.items() if not n.startswith(("LD_", "HAKMEM_"))}
    if library is not None:
        environment["LD_PRELOAD"] = str(library)
    process = subprocess.Popen(
        list(map(str, words)),
        env=environment | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield Process(process)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def plant(given: Callable[[str], Path], library: Path) -> Iterator[Process]:
    """It keeps what it frees: nothing goes back while nobody looks."""
    program = given("--programs") / "watch_plant"
    with running(program, library=library, HAKMEM_SCAVENGER="off") as process:
        yield process


@pytest.mark.parametrize(
    "kind",
    ["live", "holes", "free_pages", "slices", "kept", "caches", "anonymous", "file", "stack"],
)
def test_planted(command: Command, plant: Process, kind: str) -> None:
    before = command.sheet(plant.pid)
    planted = plant.ask(kind)
    after = command.sheet(plant.pid)
    before.agrees()
    after.agrees()
    assert planted > 1 << 20
    # The program's own files become resident, too.
    assert abs(after[kind] - before[kind] - planted) <= SHARE * planted + (kind == "file") * 2**19
    assert after["unexplained"] == 0, "nothing changed meanwhile"


@pytest.mark.parametrize("kind", ["free_pages", "caches", "kept", "slices"])
def test_what_could_be_less_becomes_so(
    command: Command, given: Callable[[str], Path], library: Path, kind: str
) -> None:
    with running(
        given("--programs") / "watch_plant",
        library=library,
        HAKMEM_SCAVENGER="off",
        HAKMEM_EXTRA_CALLS="on",
    ) as plant:
        plant.ask(kind)
        before = command.sheet(plant.pid)
        plant.ask("trim")
        after = command.sheet(plant.pid)
    assert before[kind] > 1 << 20
    # The main thread says what it did, for which it takes some blocks.
    assert after[kind] <= before.could_be(kind) + 2**17


def test_at_work(command: Command, given: Callable[[str], Path], library: Path) -> None:
    """Looks at a program whose threads allocate, hand over and fork. On a machine that does much
    else a look may take so long that the heap is another one at its end."""
    with subprocess.Popen(
        [given("--stress"), "--threads", "16", "--forks", "100000000", "--timeout", "300"],
        env=os.environ | {"LD_PRELOAD": str(library)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as stress:
        try:
            time.sleep(0.5)
            explained = 0
            for _ in range(LOOKS):
                sheet = command.sheet(stress.pid)
                sheet.adds_up()
                assert sheet["live"] > 0
                explained += sheet.is_explained()
            assert stress.poll() is None, "it goes on"
            assert explained >= LOOKS / 2
        finally:
            stress.kill()


# ---- what is wrong ----


def fails(done: subprocess.CompletedProcess[str], status: int, *words: str) -> None:
    assert done.returncode == status, done
    assert done.stdout == ""
    assert done.stderr.startswith("hakmem sheet: ") and done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr


def test_no_process(command: Command) -> None:
    fails(command("sheet", 2**22 + 1), 2, "there is no process 4194305")
    fails(command("sheet", 0), 2, "PID")
    fails(command("sheet", "redis"), 2, "redis: expected a PID")


def test_one_without_hakmem(command: Command) -> None:
    with subprocess.Popen(["/bin/sleep", "100"]) as sleeps:
        try:
            fails(command("sheet", sleeps.pid), 1, "does not use hakmem")
        finally:
            sleeps.kill()


def test_a_kernel_thread(command: Command) -> None:
    kernel = [
        int(status.parent.name)
        for status in Path("/proc").glob("[0-9]*/status")
        if "\nVmSize:" not in status.read_text() and "kthread" in status.read_text()
    ]
    if not kernel:
        pytest.skip("this system shows no threads of the kernel's")
    assert command("sheet", kernel[0]).returncode in (1, 2, 3)


def test_another_users(command: Command, plant: Process) -> None:
    done = command("sheet", plant.pid, by=as_nobody())
    if "Permission denied" in done.stderr or done.returncode == 2:
        pytest.skip("a user without rights can't read this folder")
    fails(done, 3, "no permission to read process")


def test_one_that_ends_meanwhile(
    command: Command, given: Callable[[str], Path], library: Path
) -> None:
    """Killed at some moment of a look: the sheet is whole, or one line says that it ended."""
    for wait in range(12):
        with running(given("--programs") / "watch_plant", library=library) as process:
            process.ask("live")
            with subprocess.Popen(
                ["/bin/sh", command.path, "sheet", "--json", str(process.pid)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as looks:
                time.sleep(0.01 * wait)
                os.kill(process.pid, signal.SIGKILL)
                process.process.wait()
                out, err = looks.communicate(timeout=SECONDS)
        if looks.returncode == 0:
            Sheet(json.loads(out)).adds_up()
        else:
            assert (looks.returncode, out, err.count("\n")) == (2, "", 1), (looks.returncode, err)


@pytest.mark.parametrize("seed", range(16))
def test_one_that_means_to_mislead(
    command: Command, given: Callable[[str], Path], seed: int
) -> None:
    with running(given("--programs") / "watch_hostile", str(seed)) as process:
        done = command("sheet", process.pid)
        if done.returncode == 0:
            assert re.search("hakmem 9.9.9", done.stdout)
        else:
            fails(done, 1, "is invalid")
        assert "\x1b" not in done.stdout + done.stderr


def test_without_the_reader(command: Command, tmp_path: Path, plant: Process) -> None:
    """A part of the installation is missing."""
    reader = command.path.parent.parent / "hakmem" / "look"
    aside = reader.with_name("look-aside")
    if not reader.exists() or not os.access(reader.parent, os.W_OK):
        pytest.skip("not a build folder")
    reader.rename(aside)
    try:
        fails(command("sheet", plant.pid), 2, "install hakmem again")
    finally:
        with suppress(FileNotFoundError):
            aside.rename(reader)
