"""Servers, measured while a client on the system's malloc loads them through a socket file."""

from __future__ import annotations

import csv
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hakmem.folders import Folder
from hakmem_yardstick.measure import Measured
from hakmem_yardstick.programs import inputs
from hakmem_yardstick.programs.program import (
    PATH,
    SCRIPTS,
    LoadFailed,
    Place,
    Ran,
    found,
    made,
    row,
)

LOAD = Path(__file__).resolve().parent / "load.py"
CLIENT = {"PATH": PATH, "LC_ALL": "C.UTF-8"}
LOADER_SECONDS = 10.0


@dataclass(frozen=True)
class Service:
    command: Sequence[str | Path]
    ready: Sequence[str | Path]
    pid: Path
    stop: signal.Signals
    steps: list[dict[str, Any]] = field(default_factory=list)

    def run(self, *words: str | Path, stdin: Path | None = None) -> None:
        given = None if stdin is None else str(stdin)
        self.steps.append({"run": [*map(str, words)], "stdin": given})

    def pause(self, seconds: float) -> None:
        self.steps.append({"pause": seconds})

    def resident(self) -> None:
        self.steps.append({"resident": True})


def serve(place: Place, service: Service) -> tuple[Measured, list[dict[str, Any]]]:
    """The server's whole run, and what each step of its load gave. Empty if the server failed."""
    plan, answer = place.folder / "plan.json", place.folder / "answer.json"
    plan.write_text(
        json.dumps(
            {
                "ready": [*map(str, service.ready)],
                "pid": str(service.pid),
                "steps": service.steps,
                "stop": service.stop,
            }
        )
    )
    # Before the server: whatever starts while it is measured would be taken for a part of it.
    loader = subprocess.Popen(
        [sys.executable, "-I", "-S", LOAD, plan, answer],
        env=CLIENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        measured = place.measure(service.command)
        if measured.outcome == "ok":
            with suppress(subprocess.TimeoutExpired):
                loader.wait(LOADER_SECONDS)
    finally:
        _end(loader)
    if measured.outcome != "ok":
        return measured, []
    if not answer.exists():
        raise LoadFailed("its client left no answer")
    told = json.loads(answer.read_text())
    if not told["ok"]:
        raise LoadFailed(f"its client: {told['said']}")
    return measured, list(told["steps"])


def _end(loader: subprocess.Popen[bytes]) -> None:
    """With the client that it may have started: waits until none of both runs."""
    end = time.monotonic() + LOADER_SECONDS
    with suppress(ProcessLookupError):
        while time.monotonic() < end:
            os.killpg(loader.pid, signal.SIGKILL)
            loader.poll()
            time.sleep(0.002)
    loader.wait()


# ---- redis ----

# In turn, so that blocks of one size are replaced by blocks of another.
SIZES = (16, 3000, 64, 5000, 700, 200, 1500, 32, 400, 100)
KEYS = 20_000
FLUSHED_SECONDS = 1.0


def redis_service(place: Place) -> Service:
    socket, pid = place.folder / "socket", place.folder / "pid"
    options: dict[str, str | Path] = {
        "port": "0", "unixsocket": socket, "pidfile": pid, "dir": place.folder, "save": "",
        "appendonly": "no", "enable-debug-command": "yes",
    }  # fmt: skip
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return Service(
        [found("redis-server"), *words], [*redis_client(place), "PING"], pid, signal.SIGTERM
    )


def redis_client(place: Place) -> list[str | Path]:
    return [found("redis-cli"), "-e", "-s", place.folder / "socket"]


def redis_values(place: Place) -> Ran:
    """SET and GET of ten sizes by redis-benchmark; then all is deleted."""
    service = redis_service(place)
    requests = place.sizes["requests"]
    for size in SIZES:
        options = f"-t set,get -c 20 -P 16 -n {requests} -r {KEYS} -d {size} --csv".split()
        service.run(found("redis-benchmark"), "-s", place.folder / "socket", *options)
    service.run(*redis_client(place), "INFO", "commandstats")
    _flush(place, service)
    measured, steps = serve(place, service)
    if not steps:
        return Ran(measured)
    *loads, info, _, _, flushed = steps
    rows = [row for load in loads for row in csv.DictReader(load["output"].splitlines())]
    if len(rows) != 2 * len(SIZES):
        raise LoadFailed(f"redis-benchmark gave {len(rows)} lines for {2 * len(SIZES)} tests")
    return Ran(
        measured,
        _calls(info["output"]),
        seconds=sum(requests / float(row["rps"]) for row in rows),
        operations=requests * len(rows),
        extra={"flushed": flushed["kib"]},
        raw={
            "tests": [(size, float(row["rps"])) for size, row in zip(_twice(), rows, strict=True)]
        },
    )


def _twice() -> Iterator[int]:
    return (size for size in SIZES for _ in range(2))


def redis_types(place: Place) -> Ran:
    """A fixed stream of commands; then all is deleted."""
    service = redis_service(place)
    service.run(*redis_client(place), "--pipe", stdin=place.inputs / "commands")
    service.run(*redis_client(place), "DEBUG", "DIGEST")
    service.run(*redis_client(place), "INFO", "commandstats")
    _flush(place, service)
    measured, steps = serve(place, service)
    if not steps:
        return Ran(measured)
    load, digest, info, _, _, flushed = steps
    return Ran(
        measured,
        [digest["output"].encode(), *_calls(info["output"])],
        seconds=load["seconds"],
        operations=place.sizes["commands"],
        extra={"flushed": flushed["kib"]},
    )


def redis_turnover(place: Place) -> Ran:
    """Most keys are deleted here and there; then the rest is set anew, time after time."""
    service = redis_service(place)
    service.run(*redis_client(place), "--pipe", stdin=place.inputs / "fill")
    service.run(*redis_client(place), "--pipe", stdin=place.inputs / "turnover")
    service.pause(FLUSHED_SECONDS)
    service.resident()
    service.run(*redis_client(place), "DEBUG", "DIGEST")
    measured, steps = serve(place, service)
    if not steps:
        return Ran(measured)
    _, load, _, turned, digest = steps
    return Ran(
        measured,
        [digest["output"].encode()],
        seconds=load["seconds"],
        operations=3 * (place.sizes["keys"] // 5),
        extra={"turned": turned["kib"]},
    )


def _turnover(folder: Path, sizes: Mapping[str, int]) -> None:
    inputs.redis_turnover(folder / "fill", folder / "turnover", sizes["keys"])


def _flush(place: Place, service: Service) -> None:
    service.run(*redis_client(place), "FLUSHALL", "SYNC")
    service.pause(FLUSHED_SECONDS)
    service.resident()


def _calls(info: str) -> list[bytes]:
    """Of the commands that loads are made of, how often each was called, refused, and failed."""
    counts = re.compile(r"cmdstat_(\w+):(calls=\d+).*(rejected_calls=\d+,failed_calls=\d+)")
    calls = [match.groups() for match in counts.finditer(info)]
    return [" ".join(words).encode() for words in sorted(calls) if words[0] not in ("ping", "info")]


# ---- postgres ----

USER = "postgres"
CLIENTS = 4
SETTINGS = {
    "listen_addresses": "", "fsync": "off", "shared_buffers": "64MB", "work_mem": "16MB",
    "autovacuum": "off", "jit": "off", "max_parallel_workers_per_gather": "0",
    "checkpoint_timeout": "1h", "dynamic_shared_memory_type": "mmap", "logging_collector": "off",
    "bgwriter_lru_maxpages": "0", "log_min_messages": "fatal",
}  # fmt: skip
CHECK = """SELECT sum(abalance), md5(string_agg(abalance::text, ',' ORDER BY aid))
FROM pgbench_accounts; SELECT count(*), sum(delta), sum(aid) FROM pgbench_history"""


def become(user: str | None) -> list[str]:
    """The words that run what follows them as `user`; none where this process is not root."""
    if user is None or os.geteuid():
        return []
    group = pwd.getpwnam(user).pw_gid
    return [found("setpriv"), f"--reuid={user}", f"--regid={group}", "--clear-groups"]


def hand_over(folder: Path, user: str | None) -> None:
    if become(user):
        subprocess.run(["chown", "-R", f"{user}:", folder], check=True)


def postgres_service(folder: Path) -> Service:
    data = folder / "data"
    options = {**SETTINGS, "unix_socket_directories": str(folder)}
    words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    return Service(
        [*become(USER), found("postgres"), "-D", data, *words],
        [found("pg_isready"), *reach(folder)],
        data / "postmaster.pid",
        signal.SIGINT,
    )


def reach(folder: Path) -> list[str | Path]:
    return ["-h", folder, "-U", "postgres"]


def postgres(place: Place) -> Ran:
    """Two loads of four clients each: short changes, and queries that sort, join and aggregate."""
    subprocess.run(["cp", "-a", place.inputs / "data", place.folder], check=True)
    hand_over(place.folder, USER)
    service = postgres_service(place.folder)
    bench: list[str | Path] = [found("pgbench"), *reach(place.folder), "-n", "--random-seed=7"]
    bench += ["-c", str(CLIENTS), "-j", "1"]
    turns: dict[str, list[str | Path]]
    turns = {"changes": [], "queries": ["-f", SCRIPTS / "queries.sql"]}
    for name, script in turns.items():
        service.run(*bench, *script, "-t", str(max(1, place.sizes[name] // CLIENTS)), "postgres")
    service.run(found("psql"), *reach(place.folder), "-XqAt", "-c", CHECK, "postgres")
    with no_shared_memory_left(place.folder):
        measured, steps = serve(place, service)
    if not steps:
        return Ran(measured)
    *loads, check = steps
    seconds, transactions = 0.0, 0
    for load in loads:
        done = re.search(r"actually processed: (\d+)/(\d+)", load["output"])
        rate = re.search(r"tps = ([\d.]+)", load["output"])
        if done is None or rate is None or done[1] != done[2]:
            raise LoadFailed(f"pgbench: {load['output'][-200:]}")
        seconds += int(done[1]) / float(rate[1])
        transactions += int(done[1])
    return Ran(
        measured,
        [check["output"].encode()],
        seconds=seconds,
        operations=transactions,
        raw={"tests": [load["output"] for load in loads]},
    )


@contextmanager
def no_shared_memory_left(folder: Path) -> Iterator[None]:
    """A server that was killed leaves a segment of shared memory, named in its file of the pid."""
    try:
        yield
    finally:
        with suppress(OSError, IndexError):
            segment = (folder / "data" / "postmaster.pid").read_text().splitlines()[6].split()[1]
            subprocess.run(["ipcrm", "-m", segment], check=False, capture_output=True)


def cluster(folder: Path, _sizes: Mapping[str, int]) -> None:
    """A new cluster with pgbench's tables, made on the system's malloc."""
    with Folder("hakmem-bench-") as place:
        hand_over(place, USER)
        made = place / "data"
        options = ["-A", "trust", "-U", "postgres", "--no-sync", "--locale=C", "-E", "UTF8"]
        _quietly(*become(USER), found("initdb"), "-D", made, *options, cwd=place)
        service = postgres_service(place)
        with no_shared_memory_left(place):
            started = Place(folder, place, CLIENT, {}, timeout=120, sample=None)
            service.run(found("pgbench"), *reach(place), "-i", "-q", "-s", "1", "postgres")
            serve(started, service)
        shutil.copytree(made, folder / "data")


def _quietly(*words: str | Path, cwd: Path) -> None:
    subprocess.run(words, cwd=cwd, env=CLIENT, check=True, capture_output=True)


FLUSHED = f"resident {FLUSHED_SECONDS:.0f} s after FLUSHALL"

# fmt: off
PROGRAMS = (
    row("redis", "A cache under its own benchmark: values of ten sizes in turn at random keys",
        redis_values, {"requests": 40_000}, packages="redis-server redis-tools",
        executables="redis-server redis-cli redis-benchmark",
        own="none; Debian's is linked with jemalloc, in whose place the others are preloaded",
        fixed={"keys": KEYS, "sizes": ",".join(map(str, SIZES)), "clients": 20, "pipeline": 16},
        tier="quick", per="request", extra={"flushed": FLUSHED}, judged=("cpu", "peak", "flushed"),
        brings="jemalloc"),
    row("redis-types", "The same server with lists, hashes, sets, sorted sets and growing strings",
        redis_types, {"commands": 400_000}, packages="redis-server redis-tools",
        executables="redis-server redis-cli", own="as redis", per="command",
        make=made(inputs.redis_commands, "commands", "commands"),
        extra={"flushed": FLUSHED}, judged=("cpu", "peak", "flushed"), brings="jemalloc"),
    row("redis-turnover",
        "The same server: four in five keys deleted at random, then the rest set three times over",
        redis_turnover, {"keys": 400_000}, packages="redis-server redis-tools",
        executables="redis-server redis-cli", own="as redis", make=_turnover, per="command",
        extra={"turned": f"resident {FLUSHED_SECONDS:.0f} s after the last command"},
        judged=("cpu", "turned"), brings="jemalloc"),
    row("postgres",
        "A process per connection: short changes, then queries that sort, join and aggregate",
        postgres, {"changes": 1200, "queries": 60}, packages="postgresql postgresql-client",
        executables="postgres initdb pgbench psql pg_isready",
        own="palloc: contexts in blocks of 8 KiB and more from malloc; shared buffers from mmap",
        make=cluster, fixed={"clients": CLIENTS, "shared_buffers": "64MB", "work_mem": "16MB"},
        per="transaction", threads=CLIENTS, judged=("cpu", "peak"), user=USER),
)
# fmt: on
