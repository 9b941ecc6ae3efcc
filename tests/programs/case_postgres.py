"""PostgreSQL: a new cluster, two loads of eight clients, queries of every kind, dump and restart.

The server runs as user `postgres` where the test runs as root, as it demands. What pgbench changed
depends on its seed alone; the rows of `postgres.sql` are dumped too.
"""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager
from pathlib import Path

from tests.programs.harness import SCRIPTS, Case, Run, answers, free_port
from tests.programs.process import Child

BIN = "/usr/lib/postgresql/15/bin"
SCALE = 2
# Without a key of its own, each dump is locked by a random one.
DUMPED = ("-t", "part", "-t", "use", "--restrict-key=compared", "postgres")
CHECK = """
SELECT sum(abalance), md5(string_agg(abalance::text, ',' ORDER BY aid)) FROM pgbench_accounts;
SELECT tid, tbalance FROM pgbench_tellers ORDER BY tid;
SELECT bid, bbalance FROM pgbench_branches ORDER BY bid;
SELECT count(*), sum(delta), sum(aid) FROM pgbench_history;
"""


def prepare(folder: Path) -> None:
    (folder / "check.sql").write_text(CHECK)


def postgres(run: Run) -> None:
    data = str(run.scratch / "data")
    run.step(
        "initdb", f"{BIN}/initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync",
        "--locale=C", "-E", "UTF8", "--data-checksums", compared=False,
    )  # fmt: skip
    port = free_port()
    with start(run, data, port) as child:
        bench = (
            f"{BIN}/pgbench",
            *place(port),
        )
        run.step("fill", *bench, "-i", "-q", "-s", str(SCALE), compared=False)
        load = ("-n", "--random-seed=7", "-c", "8", "-j", "2")
        run.step("load", *bench, *load, "-t", "300", watch=True, compared=False)
        prepared = ("-M", "prepared", "-S", "-t", "1500")
        run.step("read", *bench, *load, *prepared, compared=False)
        sql(run, port, "check", run.input / "check.sql")
        sql(run, port, "queries", SCRIPTS / "postgres.sql")
        dump(run, port, "dump")
        run.step("vacuum", f"{BIN}/psql", *place(port), "-Xqc", "VACUUM FULL")
        child.send_signal(signal.SIGINT)  # end the clients and shut down
        run.finish("server", child)
    port = free_port()
    with start(run, data, port) as child:
        sql(run, port, "check-again", run.input / "check.sql")
        dump(run, port, "dump-again")
        child.send_signal(signal.SIGINT)
        run.finish("server", child)
    run.step("checksums", f"{BIN}/pg_checksums", "--check", "-D", data, compared=False)


def start(run: Run, data: str, port: int) -> AbstractContextManager[Child]:
    options = {
        "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off",
        "shared_buffers": "64MB", "work_mem": "16MB", "max_parallel_workers_per_gather": "2",
        "port": port,
    }  # fmt: skip
    settings = (word for k, v in options.items() for word in ("-c", f"{k}={v}"))
    return run.server(
        "server", f"{BIN}/postgres", "-D", data, *settings, ready=lambda: answers(port)
    )


def place(port: int) -> tuple[str, ...]:
    return ("-h", "127.0.0.1", "-p", str(port), "-U", "postgres")


def sql(run: Run, port: int, step: str, file: Path) -> None:
    run.step(step, f"{BIN}/psql", *place(port), "-XqAt", "-v", "ON_ERROR_STOP=1", stdin=file)


def dump(run: Run, port: int, step: str) -> None:
    run.step(step, f"{BIN}/pg_dump", *place(port), *DUMPED)


POSTGRES = Case(
    "postgres",
    (f"{BIN}/postgres", f"{BIN}/initdb", f"{BIN}/pgbench"),
    prepare,
    postgres,
    (f"{BIN}/postgres", "--version"),
    ("postgres",),
    packages=("postgresql-15", "postgresql-client-15"),
    group="servers and databases",
    what="pgbench with 8 clients, queries, JSON, GIN indexes, PL/pgSQL, dump, restart",
    note="sums and hashes of what pgbench changed; its own rows are not in the dump",
    user="postgres",
)
