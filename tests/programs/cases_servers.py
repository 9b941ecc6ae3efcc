"""Servers under load, each on a free port of 127.0.0.1 with its files in the run's folder."""

from __future__ import annotations

import os
import signal
import time

from tests.programs import inputs, inputs_servers
from tests.programs.case_postgres import POSTGRES
from tests.programs.case_redis import ask
from tests.programs.harness import SCRIPTS, Case, Failure, Run, answers, free_port, nothing

PYTHON = "/usr/bin/python3"
SERVERS = "servers and databases"


# redis: its own benchmark of every type, then both kinds of persistence


def redis(run: Run) -> None:
    port = free_port()
    command = (
        "redis-server", "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
        "--appendfsync", "no", "--dir", str(run.scratch), "--enable-debug-command", "yes",
        "--port", str(port),
    )  # fmt: skip
    cli = ("redis-cli", "-p", str(port))
    bench = ("redis-benchmark", "-p", str(port), "-q", "-P", "16", "-c", "50")
    with run.server("server", *command, ready=lambda: ask(run, port, "PING") == "PONG\n") as child:
        run.step("populate", *cli, "DEBUG", "POPULATE", "100000", "key", "300")
        mixed = "set,get,lpush,lpop,rpop,sadd,spop,hset,zadd,zpopmin,lrange_100,mset"
        fixed = "incr,lpush,rpush,sadd,hset,zadd,mset"
        run.step("types", *bench, "-n", "30000", "-d", "200", "-t", fixed, compared=False)
        run.step("digest", *cli, "DEBUG", "DIGEST")
        run.step(
            "random", *bench, "--dbnum", "1", "-r", "100000", "-n", "15000", "-d", "400",
            "-t", mixed, compared=False,
        )  # fmt: skip
        run.step("changing", *cli, "CONFIG", "SET", "activedefrag", "no")
        whole = run.step("whole", *cli, "DEBUG", "DIGEST", compared=False)
        run.step("rewrite", *cli, "BGREWRITEAOF", compared=False)
        idle(run, port)
        run.step("save", *cli, "BGSAVE", compared=False)
        idle(run, port)
        ask(run, port, "SHUTDOWN")
        run.finish("server", child)
    with run.server("server", *command, ready=lambda: ask(run, port, "PING") == "PONG\n") as child:
        if run.step("again", *cli, "DEBUG", "DIGEST", compared=False) != whole:
            raise Failure(f"run '{run.name}': the data are not the same after the restart")
        run.step("flush", *cli, "-n", "1", "FLUSHDB")
        run.step("digest-again", *cli, "DEBUG", "DIGEST")
        ask(run, port, "SHUTDOWN", "NOSAVE")
        run.finish("server", child)


def idle(run: Run, port: int) -> None:
    """Waits until redis has no child that saves."""
    end = time.monotonic() + 60
    while True:
        info = ask(run, port, "INFO", "persistence")
        if "aof_rewrite_in_progress:0" in info and "rdb_bgsave_in_progress:0" in info:
            break
        if time.monotonic() > end:
            raise Failure(f"run '{run.name}': saving did not end\n{run.log('server')}")
        time.sleep(0.05)
    if info.count("status:ok") < 3:
        raise Failure(f"run '{run.name}': saving failed:\n{info}")


def memcached(run: Run) -> None:
    port = free_port()
    command = ("memcached", "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-m", "256", "-t", "4")
    user = ("-u", "root") if os.geteuid() == 0 else ()
    with run.server("memcached", *command, *user, ready=lambda: answers(port)) as child:
        run.step("load", PYTHON, str(SCRIPTS / "memcached_load.py"), str(port), "12000")
        child.terminate()
        run.finish("memcached", child)


def mariadb(run: Run) -> None:
    data, port = str(run.scratch / "data"), free_port()
    root = ("--user=root",) if os.geteuid() == 0 else ()
    run.step(
        "install", "mariadb-install-db", "--no-defaults", f"--datadir={data}", *root,
        "--auth-root-authentication-method=normal", "--skip-test-db", compared=False,
    )  # fmt: skip
    command = (
        "mariadbd", "--no-defaults", *root, f"--datadir={data}", "--bind-address=127.0.0.1",
        f"--port={port}", "--socket=socket", "--innodb-flush-log-at-trx-commit=0",
        "--innodb-buffer-pool-size=64M", "--skip-log-bin", "--character-set-server=utf8mb4",
    )  # fmt: skip
    at = ("--no-defaults", "-h", "127.0.0.1", "-P", str(port), "-u", "root")
    with run.server("mariadbd", *command, ready=lambda: answers(port)) as child:
        run.step("queries", "mariadb", *at, "--batch", stdin=SCRIPTS / "mariadb.sql")
        run.step(
            "load", "mariadb-slap", *at, "--auto-generate-sql", "--concurrency=8",
            "--number-of-queries=2500", "--auto-generate-sql-load-type=mixed",
            "--auto-generate-sql-unique-query-number=40", "--number-char-cols=4", compared=False,
        )  # fmt: skip
        run.step("dump", "mariadb-dump", *at, "--skip-dump-date", "--databases", "proof")
        run.step("end", "mariadb-admin", *at, "shutdown")
        run.finish("mariadbd", child)


UNBOUND = """
server:
    interface: 127.0.0.1
    port: {port}
    do-daemonize: no
    username: ""
    chroot: ""
    directory: "{scratch}"
    use-syslog: no
    logfile: ""
    do-ip6: no
    num-threads: 2
    module-config: "iterator"
    do-not-query-localhost: no
    msg-cache-size: 2m
    rrset-cache-size: 4m
"""
AUTHORITY = """
auth-zone:
    name: "proof.example."
    zonefile: "{zone}"
    for-upstream: no
    fallback-enabled: no
"""
RESOLVER = """
stub-zone:
    name: "proof.example."
    stub-addr: 127.0.0.1@{back}
"""


def unbound_at(run: Run, name: str, port: int, zones: str) -> tuple[str, ...]:
    config = run.scratch / f"{name}.conf"
    config.write_text(UNBOUND.format(port=port, scratch=run.scratch) + zones)
    return ("unbound", "-d", "-p", "-c", str(config))


def unbound(run: Run) -> None:
    """One has the zone; another asks it, and has caches too small for all that it is told."""
    port, back = free_port(), free_port()
    authority = unbound_at(run, "authority", back, AUTHORITY.format(zone=run.input / "zone"))
    resolver = unbound_at(run, "resolver", port, RESOLVER.format(back=back))
    load = (PYTHON, str(SCRIPTS / "dns_load.py"))
    names = str(inputs_servers.NAMES)
    with (
        run.server("authority", *authority, ready=lambda: answers(back)) as first,
        run.server("resolver", *resolver, ready=lambda: answers(port)) as second,
    ):
        run.step("authority", *load, str(back), names, "3200")
        run.step("resolver", *load, str(port), names, "6400")
        second.send_signal(signal.SIGHUP)  # its settings are read anew, the caches are dropped
        time.sleep(0.5)
        run.step("resolver-again", *load, str(port), names, "3200")
        for name, child in (("resolver", second), ("authority", first)):
            child.terminate()
            run.finish(name, child)


MOSQUITTO = """
listener {port} 127.0.0.1
allow_anonymous true
user root
set_tcp_nodelay true
max_queued_messages 0
connection_messages false
persistence true
persistence_location {scratch}/
"""


def mosquitto(run: Run) -> None:
    """Subscribers that are there, others that come back later, and what is retained for all."""
    port = free_port()
    config = run.scratch / "mosquitto.conf"
    config.write_text(MOSQUITTO.format(port=port, scratch=run.scratch))
    command = ("mosquitto", "-c", str(config))
    at = ("-h", "127.0.0.1", "-p", str(port), "-q", "1")
    count = str(inputs_servers.MESSAGES)
    load = (PYTHON, str(SCRIPTS / "mqtt_load.py"), str(port), count)
    away = {name: ("-c", "-i", name, "-t", topic) for name, topic in ABSENT.items()}
    with run.server("broker", *command, ready=lambda: answers(port)) as child:
        for name, words in away.items():
            run.step(f"leave-{name}", "mosquitto_sub", *at, *words, "-E")
        run.step("load", *load)
        lines = run.input / "lines"
        run.step("lines", "mosquitto_pub", *at, "-l", "-t", "lines/all", stdin=lines)
        child.terminate()
        run.finish("broker", child)
    with run.server("broker", *command, ready=lambda: answers(port)) as child:
        run.step("retained", *load, "retained")
        for name, words in away.items():
            wanted = count if name == "house" else "8000"
            read = ("-R", "-F", "%t %p", "-C", wanted, "-W", "120")
            run.step(f"return-{name}", "mosquitto_sub", *at, *words, *read)
        child.terminate()
        run.finish("broker", child)


ABSENT = {"house": "house/0/#", "lines": "lines/#"}


def sqlite(run: Run) -> None:
    run.step("script", "sqlite3", "-batch", "rows.db", stdin=run.input / "rows.sql", watch=True)
    run.step("dump", "sqlite3", "-batch", "-readonly", "rows.db", ".dump item")


CASES = (
    Case(
        "redis-types", ("redis-server", "redis-cli", "redis-benchmark"), nothing, redis,
        ("redis-server", "--version"), packages=("redis-server", "redis-tools"), group=SERVERS,
        what="redis-benchmark of all types, 100,000 keys, BGREWRITEAOF, BGSAVE, restart",
        note="keys drawn at random are compared before and after the restart, the others also "
        "with the other runs",
    ),
    POSTGRES,
    Case(
        "mariadb", ("mariadbd", "mariadb", "mariadb-slap"), nothing, mariadb,
        ("mariadbd", "--no-defaults", "--version"), ("mariadbd",),
        packages=("mariadb-server", "mariadb-client"), group=SERVERS,
        what="30,000 rows, joins, full text, JSON, a procedure; mariadb-slap with 8 clients; dump",
    ),
    Case(
        "sqlite-rows", ("sqlite3",), lambda folder: inputs.sql(folder / "rows.sql", 500_000),
        sqlite, ("sqlite3", ":memory:", "select 1"), packages=("sqlite3",), group=SERVERS,
        what="500,000 rows: indexes, joins, windows, triggers, integrity_check, VACUUM, dump",
    ),
    Case(
        "memcached", ("memcached",), nothing, memcached, ("memcached", "-V"), group=SERVERS,
        what="four clients set, append, get and delete 48,000 times; every answer checked",
    ),
    Case(
        "unbound", ("unbound",), inputs_servers.zone, unbound, ("unbound", "-V"), group=SERVERS,
        what="one has 20,000 names, one asks it and caches; 51,200 questions over UDP and TCP",
    ),
    Case(
        "mosquitto", ("mosquitto", "mosquitto_pub", "mosquitto_sub"), inputs_servers.readings,
        mosquitto, ("mosquitto", "-h"), packages=("mosquitto", "mosquitto-clients"), group=SERVERS,
        what="18,000 messages to six subscribers; 14,000 queued, 1,500 retained over a restart",
    ),
)  # fmt: skip
