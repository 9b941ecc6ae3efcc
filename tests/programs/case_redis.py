"""redis under load: a known set is written while other clients load the server, saved by a forked
child and read back, before and after a restart from the saved file.

The server runs with two I/O threads, frees in the background where it can, and listens on a free
port of 127.0.0.1. The load goes to database 1; the known set lies in database 0 and is compared.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path

from tests.programs import inputs
from tests.programs.harness import Case, Failure, Run, free_port
from tests.programs.process import Child
from tests.ran import ran

KEYS = 4000
PARTS = 8  # the known set is written in so many parts
LOAD_PAUSE = 0.2  # seconds of pure load between two of them
SAVE_SECONDS = 300


def prepare(folder: Path) -> None:
    inputs.redis_writes(folder, KEYS, PARTS)
    inputs.redis_reads(folder / "reads", KEYS)


def redis(run: Run) -> None:
    port = free_port()
    with start_server(run, port) as child:
        with run.background("load", *load(port)) as clients:
            for part in sorted(run.input.glob("writes-*")):
                cli(run, port, "write", "--pipe", stdin=part)
                time.sleep(LOAD_PAUSE)
            save(run, port)
            if clients.poll() not in (None, 0):
                raise Failure(f"run '{run.name}': the load ended early\n{run.log('load')}")
        cli(run, port, "read", stdin=run.input / "reads")
        cli(run, port, "drop-load", "-n", "1", "FLUSHDB", "ASYNC")
        cli(run, port, "digest", "DEBUG", "DIGEST")
        cli(run, port, "save", "SAVE")
        finish(run, child, port)
    port = free_port()
    with start_server(run, port) as child:
        cli(run, port, "digest-again", "DEBUG", "DIGEST")
        cli(run, port, "read-again", stdin=run.input / "reads")
        finish(run, child, port)
    for before, after in (("digest", "digest-again"), ("read", "read-again")):
        one, two = (next(run.outputs.glob(f"*-{step}.stdout")) for step in (before, after))
        if one.read_bytes() != two.read_bytes():
            raise Failure(f"run '{run.name}': {before} before the restart is not {after}")


def start_server(run: Run, port: int) -> AbstractContextManager[Child]:
    return run.server("server", *server(port), ready=lambda: ask(run, port, "PING") == "PONG\n")


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
    done = ran("redis-cli", "-p", str(port), *words, env=run.env())
    return done.stdout


def save(run: Run, port: int) -> None:
    """BGSAVE in the middle of the load; its child is a fork of the loaded server."""
    cli(run, port, "bgsave", "BGSAVE")
    end = time.monotonic() + SAVE_SECONDS
    while "rdb_bgsave_in_progress:0" not in (info := ask(run, port, "INFO", "persistence")):
        if time.monotonic() > end:
            raise Failure(f"run '{run.name}': BGSAVE did not end\n{run.log('server')}")
        time.sleep(0.05)
    if "rdb_last_bgsave_status:ok" not in info:
        raise Failure(f"run '{run.name}': BGSAVE failed\n{run.log('server')}")


def finish(run: Run, child: Child, port: int) -> None:
    ask(run, port, "SHUTDOWN", "NOSAVE")
    run.finish("server", child)


REDIS = Case(
    "redis",
    ("redis-server", "redis-cli", "redis-benchmark"),
    prepare,
    redis,
    ("redis-server", "--version"),
    ("redis-server",),
    packages=("redis-server", "redis-tools"),
    group="servers and databases",
    what="a known set beside redis-benchmark; BGSAVE, restart, DEBUG DIGEST",
    may_differ=("dump.rdb",),  # holds times; its contents are compared through the restart
)
