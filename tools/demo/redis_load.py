"""One measured run of redis-server with one allocator; redis-benchmark is the load, on loopback.

The server stores nothing on disk and runs in a temporary folder. The client always uses the
system's allocator. It writes and reads values of ten sizes in turn under random keys, so that
blocks of one size are replaced by blocks of another. Then four of five keys are deleted at random,
the rest is replaced three times, and at last everything is deleted.
"""

from __future__ import annotations

import csv
import os
import random
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tools.demo import inforce
from tools.demo.allocators import Allocator, DemoError, find
from tools.demo.sample import Sample

SIZES = (16, 3000, 64, 5000, 700, 200, 1500, 32, 400, 100)
START_SECONDS = 60
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")

LOAD = ("requests/s", "CPU µs/request")
MEMORY = (
    "MiB, peak", "MiB after load", "MiB, 4/5 deleted", "MiB, rest replaced", "MiB after FLUSHALL",
)  # fmt: skip
PHASES = ("load", "4/5 deleted", "rest replaced", "FLUSHALL, rest")
TIMES_REPLACED = 3
LOOK_SECONDS = 0.03


@dataclass(frozen=True)
class Plan:
    requests: int  # for SET and for GET, for each size
    keys: int
    idle: float  # seconds between FLUSHALL and the last measurement
    port: int | None = None

    def total(self) -> int:
        return 2 * self.requests * len(SIZES)

    def deletion(self) -> bytes:
        return self._commands[0]

    def replacement(self) -> bytes:
        return self._commands[1]

    @cached_property
    def _commands(self) -> tuple[bytes, bytes]:
        """The same in each run."""
        rng = random.Random(1)
        names = [b"key:%012d" % number for number in range(self.keys)]
        rng.shuffle(names)
        cut = self.keys * 4 // 5
        deletion = b"".join(b"DEL %s\r\n" % name for name in names[:cut])
        replacement = b"".join(
            b"SET %s %s\r\n" % (name, b"x" * rng.choice(SIZES))
            for _ in range(TIMES_REPLACED)
            for name in names[cut:]
        )
        return deletion, replacement


def measure(allocator: Allocator, plan: Plan, tell: Callable[[str], None]) -> Sample:
    """One run from start to shutdown; `tell` is called with the progress."""
    sample = Sample()
    with tempfile.TemporaryDirectory(prefix="hakmem-demo-") as folder:
        port = plan.port or free_port()
        with server(allocator, port, Path(folder)) as process:
            pid = process.pid
            before = cpu_seconds(pid)
            seconds = 0.0
            with watched(pid, sample):
                for number, size in enumerate(SIZES, 1):
                    tell(f"values of {size} bytes ({number}/{len(SIZES)})")
                    seconds += benchmark(port, size, plan)
            sample.values[LOAD[0]] = plan.total() / seconds
            sample.values[LOAD[1]] = (cpu_seconds(pid) - before) / plan.total() * 1e6
            sample.values[MEMORY[1]] = resident(pid)
            sample.values[MEMORY[0]] = status_mib(pid, "VmHWM")
            sample.proof = proof(pid, allocator)
            for at, (what, commands) in enumerate(
                (("deletes four of five", plan.deletion()), ("replaces", plan.replacement())), 2
            ):
                tell(what)
                with watched(pid, sample):
                    pipe(port, commands)
                sample.values[MEMORY[at]] = resident(pid)
            tell(f"FLUSHALL, then idle for {plan.idle:.0f} s")
            with watched(pid, sample):
                ask(port, "FLUSHALL")
                time.sleep(plan.idle)
            sample.values[MEMORY[4]] = resident(pid)
            if process.poll() is not None:
                raise DemoError(f"redis-server ended during the run with {allocator.title}")
    return sample


@contextmanager
def server(allocator: Allocator, port: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    argv = [find("redis-server"), "--port", str(port), "--bind", "127.0.0.1"]
    argv += ["--save", "", "--appendonly", "no", "--dir", str(folder)]
    log = folder / "log"
    with log.open("wb") as out:
        # In a new session, so that Ctrl-C reaches only the demo, which then stops the server.
        process = subprocess.Popen(
            argv, env=allocator.env(), stdout=out, stderr=out, start_new_session=True
        )
    try:
        wait_for(process, port, log, allocator)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(process: subprocess.Popen[bytes], port: int, log: Path, allocator: Allocator) -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        if "Ready to accept connections" in log.read_text(errors="replace"):
            return
        time.sleep(0.02)
    said = log.read_text(errors="replace")
    if "Address already in use" in said:
        raise DemoError(f"port {port} is in use; leave out --port, or choose another port")
    last = "\n".join(said.splitlines()[-5:]) or "(nothing)"
    state = process.returncode
    how = "did not start in time" if state is None else f"ended at once (status {state})"
    raise DemoError(f"redis-server {how} with {allocator.title}; its output:\n{last}")


def benchmark(port: int, size: int, plan: Plan) -> float:
    """Seconds that the SETs and GETs of one value size took."""
    words = f"-p {port} -t set,get -c 20 -P 16 -n {plan.requests} -r {plan.keys} -d {size} --csv"
    done = subprocess.run(
        [find("redis-benchmark"), *words.split()], capture_output=True, text=True, check=False
    )
    try:
        rows = list(csv.DictReader(done.stdout.splitlines()))
        if done.returncode or len(rows) != 2:
            raise ValueError
        return sum(plan.requests / float(row["rps"]) for row in rows)
    except (ValueError, KeyError, ZeroDivisionError):
        last = (done.stdout + done.stderr).strip()[-300:]
        raise DemoError(f"redis-benchmark failed; the server may have crashed: {last}") from None


@contextmanager
def watched(pid: int, sample: Sample) -> Iterator[None]:
    """Adds a phase to the sample's curve: resident memory as the kernel counts it, now and then."""
    phase: list[float] = []
    sample.curve.append(phase)
    ended = threading.Event()

    def look() -> None:
        file = Path(f"/proc/{pid}/statm")
        while not ended.wait(LOOK_SECONDS):
            with suppress(OSError, IndexError):  # the server has ended, which is found out later
                phase.append(int(file.read_text().split()[1]) * PAGE / 2**20)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        phase.append(resident(pid))


def pipe(port: int, commands: bytes) -> None:
    argv = [find("redis-cli"), "-p", str(port), "--pipe"]
    done = subprocess.run(argv, input=commands, capture_output=True, check=False)
    if done.returncode or b"errors: 0" not in done.stdout:
        said = (done.stdout + done.stderr)[-300:].decode(errors="replace")
        raise DemoError(f"redis-cli --pipe failed; the server may have crashed: {said}")


def ask(port: int, *words: str) -> None:
    argv = [find("redis-cli"), "-p", str(port), *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.stdout.strip() != "OK":
        raise DemoError(f"{' '.join(words)} failed: {done.stdout}{done.stderr}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def proof(pid: int, allocator: Allocator) -> str:
    """What the kernel says about the running server."""
    if allocator.preload is None:
        return "not checked: the server is as it is installed"
    if not inforce.mapped(pid, allocator.preload):
        raise DemoError(f"{allocator.preload} is not in /proc/{pid}/maps of redis-server")
    heap = inforce.memory_named(pid, "[heap]")
    named = inforce.memory_named(pid, allocator.names) if allocator.names else 0
    words = f"redis-server (process {pid}) had {allocator.preload.name} in /proc/{pid}/maps; "
    if named:
        words += f"{named / 1024:.0f} MiB were resident in mappings named {allocator.names}...]; "
    return words + f"glibc's own heap had {heap / 1024:.1f} MiB"


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident(pid: int) -> float:
    """MiB, from the page tables: the counters in `status` may be out of date."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) / 1024
    raise DemoError("no Rss in smaps_rollup")


def status_mib(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise DemoError(f"no {field} in /proc/{pid}/status")
