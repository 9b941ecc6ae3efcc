"""The sheet of real programs at work: redis, and a service in C++. Its lines add up at
every look, hardly anything is left to explain, blocks in use are what the program itself counts,
and what could go back goes back."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.ran import ran
from tests.watch.watched import SECONDS, SHARE, Command, running

LOOKS = 10
# A look may take long on a busy machine, and the heap be another one at its end.
EXPLAINED = 0.8


def look_at_work(command: Command, pid: int) -> None:
    explained = 0
    for _ in range(LOOKS):
        sheet = command.sheet(pid)
        sheet.adds_up()
        assert sheet["live"] > 0
        explained += sheet.is_explained()
    assert explained >= EXPLAINED * LOOKS


def returns_what_it_says(command: Command, pid: int) -> None:
    """An idle process: what is said to be returnable at once goes back. For the order to be seen
    the program has to free something; `free` is called meanwhile."""
    before = command.sheet(pid)
    done = command("purge", pid)
    assert done.returncode == 0, done.stderr
    after = command.sheet(pid)
    for line in before.said["heap"]:
        if line.get("how") == "malloc_trim(0)":
            most = line["could_be"] + SHARE * line["resident"] + 2**18
            assert after[line["name"]] <= most, line


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


# ---- redis ----


@contextmanager
def redis(library: Path | None, folder: Path) -> Iterator[tuple[int, Callable[..., str]]]:
    """Its PID, and how to ask it."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis is not installed")
    port = str(free_port())
    server = subprocess.Popen(
        ["redis-server", "--port", port, "--save", "", "--dir", str(folder)],
        env=os.environ | ({"LD_PRELOAD": str(library)} if library is not None else {}),
        stdout=subprocess.DEVNULL,
    )

    def ask(*words: str) -> str:
        return ran("redis-cli", "-p", port, *words).stdout

    try:
        until = time.monotonic() + SECONDS
        while ask("ping") != "PONG\n":
            assert time.monotonic() < until
            time.sleep(0.05)
        yield server.pid, ask
    finally:
        server.kill()
        server.wait()


FILL = "for i = 0, 200000 do redis.call('set', 'key:' .. i, string.rep('x', i % 600)) end"
DELETE = "for i = 0, 150000 do redis.call('del', 'key:' .. i) end"


def test_redis(command: Command, library: Path, tmp_path: Path) -> None:
    with redis(library, tmp_path) as (pid, ask):
        ask("eval", FILL, "0")
        port = re.findall(r"tcp_port:(\d+)", ask("info", "server"))[0]
        load = subprocess.Popen(
            ["redis-benchmark", "-p", port, "-r", "200000", "-n", "100000000", "-q", "-t", "set"],
            stdout=subprocess.DEVNULL,
        )
        try:
            look_at_work(command, pid)
        finally:
            load.kill()
            load.wait()
        used = int(re.findall(r"used_memory:(\d+)", ask("info", "memory"))[0])
        assert abs(command.sheet(pid).said["live"] - used) <= SHARE * used
        assert used > 50 << 20
        ask("eval", DELETE, "0")
        with frees_now_and_then(lambda: ask("ping")):
            returns_what_it_says(command, pid)


@contextmanager
def frees_now_and_then(act: Callable[[], object]) -> Iterator[None]:
    """Has a program free something while the commands run, from another process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.set_blocking(reader, False)
        with suppress(BaseException):
            while True:
                act()
                time.sleep(0.02)
                with suppress(BlockingIOError):
                    if os.read(reader, 1) == b"":
                        break
        os._exit(0)
    os.close(reader)
    try:
        yield
    finally:
        os.close(writer)
        os.waitpid(child, 0)


# ---- C++ ----


def test_a_service_in_cxx(command: Command, programs: Path, library: Path) -> None:
    service = programs / "watch_service"
    with running(service, "forever", library=library) as process:
        look_at_work(command, process.pid)
        # Each of the eight threads has a cache, and the kernel says which is whose.
        caches = [one for one in command.sheet(process.pid).said["caches"] if one["living"]]
        numbers = {one["thread"] for one in caches}
        tasks = {int(one.name) for one in Path(f"/proc/{process.pid}/task").iterdir()}
        assert len(numbers) == len(caches) >= 8 and numbers <= tasks
        assert all(one["name"] for one in caches)
    with running(service, library=library) as process:
        used = process.ask("")
        assert abs(command.sheet(process.pid).said["live"] - used) <= SHARE * used
