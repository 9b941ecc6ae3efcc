"""redis under load: a known set is written while other clients load the server, saved by a forked
child and read back, before and after a restart from the saved file.

The server runs with two I/O threads, frees in the background where it can, and listens on a free
port of 127.0.0.1. The load goes to database 1; the known set lies in database 0 and is compared.
"""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

from tests.programs import inputs
from tests.programs.harness import Case, Failure, Run, describe, stop, tail
from tools.demo import inforce

KEYS = 4000
PARTS = 8  # the known set is written in so many parts
LOAD_PAUSE = 0.2  # seconds of pure load between two of them
START_SECONDS = 15
SAVE_SECONDS = 60


def prepare(folder: Path) -> None:
    inputs.redis_writes(folder, KEYS, PARTS)
    inputs.redis_reads(folder / "reads", KEYS)


def redis(run: Run) -> None:
    port = free_port()
    with run.background("server", *server(port)) as child:
        wait_for(run, child, port)
        look(run, child)
        with run.background("load", *load(port)) as clients:
            for part in sorted(run.input.glob("writes-*")):
                cli(run, port, "write", "--pipe", stdin=part)
                time.sleep(LOAD_PAUSE)
            save(run, port)
            if clients.poll() not in (None, 0):
                raise Failure(f"run '{run.name}': the load ended early\n{log(run, 'load')}")
        cli(run, port, "read", stdin=run.input / "reads")
        cli(run, port, "drop-load", "-n", "1", "FLUSHDB", "ASYNC")
        cli(run, port, "digest", "DEBUG", "DIGEST")
        cli(run, port, "save", "SAVE")
        finish(run, child, port)
    port = free_port()
    with run.background("server", *server(port)) as child:
        wait_for(run, child, port)
        look(run, child)
        cli(run, port, "digest-again", "DEBUG", "DIGEST")
        cli(run, port, "read-again", stdin=run.input / "reads")
        finish(run, child, port)
    for before, after in (("digest", "digest-again"), ("read", "read-again")):
        one, two = (next(run.outputs.glob(f"*-{step}.stdout")) for step in (before, after))
        if one.read_bytes() != two.read_bytes():
            raise Failure(f"run '{run.name}': {before} before the restart is not {after}")


def server(port: int) -> list[str]:
    options = {
        "port": port, "bind": "127.0.0.1", "save": "", "appendonly": "no", "io-threads": 2,
        "io-threads-do-reads": "yes", "lazyfree-lazy-user-del": "yes",
        "lazyfree-lazy-server-del": "yes", "enable-debug-command": "yes",
    }  # fmt: skip
    return ["redis-server", *(w for k, v in options.items() for w in (f"--{k}", str(v)))]


def load(port: int) -> list[str]:
    return [
        "redis-benchmark", "-p", str(port), "--dbnum", "1", "-c", "50", "-P", "8", "-r", "5000",
        "-d", "500", "-n", "20000", "-l", "-q",
        "-t", "set,get,incr,lpush,lpop,sadd,spop,hset,zadd,zpopmin,mset",
    ]  # fmt: skip


def cli(run: Run, port: int, step: str, *words: str, stdin: Path | None = None) -> None:
    run.step(step, "redis-cli", "-p", str(port), *words, stdin=stdin)


def ask(run: Run, port: int, *words: str) -> str:
    """A command whose answer is not compared."""
    done = subprocess.run(
        ["redis-cli", "-p", str(port), *words],
        env=run.env(), capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    return done.stdout


def wait_for(run: Run, child: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while ask(run, port, "PING") != "PONG\n":
        status = child.poll()
        if status is not None or time.monotonic() > end:
            state = "does not answer" if status is None else f"ended: {describe(status)}"
            raise Failure(f"run '{run.name}': redis-server {state}\n{log(run, 'server')}")
        time.sleep(0.05)


def look(run: Run, child: subprocess.Popen[bytes]) -> None:
    if run.library:
        if not inforce.mapped(child.pid, run.library):
            raise Failure(f"redis-server {child.pid}: {run.library} is not in /proc/PID/maps")
        run.seen_in.add("redis-server")


def save(run: Run, port: int) -> None:
    """BGSAVE in the middle of the load; its child is a fork of the loaded server."""
    cli(run, port, "bgsave", "BGSAVE")
    end = time.monotonic() + SAVE_SECONDS
    while "rdb_bgsave_in_progress:0" not in (info := ask(run, port, "INFO", "persistence")):
        if time.monotonic() > end:
            raise Failure(f"run '{run.name}': BGSAVE did not end\n{log(run, 'server')}")
        time.sleep(0.05)
    if "rdb_last_bgsave_status:ok" not in info:
        raise Failure(f"run '{run.name}': BGSAVE failed\n{log(run, 'server')}")


def finish(run: Run, child: subprocess.Popen[bytes], port: int) -> None:
    ask(run, port, "SHUTDOWN", "NOSAVE")
    try:
        status = child.wait(20)
    except subprocess.TimeoutExpired:
        stop(child)
        raise Failure(f"run '{run.name}': redis-server did not shut down") from None
    if status != 0:
        raise Failure(f"run '{run.name}': redis-server: {describe(status)}\n{log(run, 'server')}")


def log(run: Run, name: str) -> str:
    return tail(run.logs / f"{name}.log").replace("stderr", f"{name}.log")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


REDIS = Case(
    "redis",
    ("redis-server", "redis-cli", "redis-benchmark"),
    prepare,
    redis,
    ("redis-server", "--version"),
    ("redis-server",),
    may_differ=("dump.rdb",),  # holds times; its contents are compared through the restart
)
