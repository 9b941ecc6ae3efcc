"""Servers under load, each on a free port of 127.0.0.1 with its files in the run's folder."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

from tests.programs import inputs
from tests.programs.case_postgres import POSTGRES
from tests.programs.case_redis import ask
from tests.programs.harness import Case, Failure, Run, answers, free_port

SCRIPTS = Path(__file__).resolve().parent / "scripts"
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


# web servers: bodies compared by a client of threads, then a load of many connections


def site(folder: Path) -> None:
    rng = random.Random(11)
    paths = []
    for number in range(150):
        name = f"{rng.choice(inputs.WORDS)}-{number}.{rng.choice(('html', 'txt', 'css', 'json'))}"
        place = folder / "site" / f"part{number % 7}"
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(inputs.text(rng, rng.choice((3, 40, 400, 4000))))
        paths.append(f"/part{number % 7}/{name}")
    (folder / "paths").write_text("\n".join([*paths, "/absent"]))
    (folder / "site" / "index.html").write_text(inputs.text(rng, 60))


def read_and_load(run: Run, port: int, requests: int, connections: int) -> None:
    read = (PYTHON, str(SCRIPTS / "http_read.py"), str(port), str(run.input / "paths"), "3")
    run.step("read", *read)
    for number, extra in enumerate((("-k",), ("-k", "-H", "Accept-Encoding: gzip"), ())):
        count = requests if extra else requests // 8
        text = run.step(
            f"load-{number}", "ab", "-q", "-n", str(count), "-c", str(connections), *extra,
            f"http://127.0.0.1:{port}/", compared=False,
        )  # fmt: skip
        words = [line.split() for line in text.splitlines()]
        if ["Complete", "requests:", str(count)] not in words or "Non-2xx" in text:
            raise Failure(f"run '{run.name}': the load was not answered\n{text}")
        if ["Failed", "requests:", "0"] not in words:
            raise Failure(f"run '{run.name}': answers that differ\n{text}")
    run.step("read-again", *read)


NGINX = """
daemon off; worker_processes 2; pid {scratch}/pid; error_log {scratch}/error.log;
{user}
events {{ worker_connections 1024; }}
http {{
    access_log {scratch}/access.log; types {{ text/html html; text/css css; text/plain txt; }}
    client_body_temp_path {scratch}/body; proxy_temp_path {scratch}/proxy;
    fastcgi_temp_path {scratch}/fastcgi; uwsgi_temp_path {scratch}/uwsgi;
    scgi_temp_path {scratch}/scgi; keepalive_requests 1000000;
    gzip on; gzip_types *; gzip_comp_level 5; gzip_min_length 100;
    proxy_cache_path {scratch}/cache keys_zone=kept:1m;
    server {{ listen 127.0.0.1:{port}; root {site}; }}
}}
"""


def nginx(run: Run) -> None:
    port = free_port()
    user = "user root;" if os.geteuid() == 0 else ""
    config = run.scratch / "nginx.conf"
    config.write_text(
        NGINX.format(scratch=run.scratch, port=port, site=run.input / "site", user=user)
    )
    command = ("nginx", "-c", str(config), "-e", str(run.scratch / "start.log"))
    with run.server("nginx", *command, ready=lambda: answers(port)) as child:
        read_and_load(run, port, 20000, 200)
        child.send_signal(signal.SIGHUP)  # new workers, the old ones end
        time.sleep(0.5)
        read_and_load(run, port, 8000, 50)
        child.send_signal(signal.SIGQUIT)
        run.finish("nginx", child)


LIGHTTPD = """
server.modules = ("mod_deflate", "mod_status", "mod_accesslog", "mod_dirlisting")
server.document-root = "{site}"
server.bind = "127.0.0.1"
server.port = {port}
server.max-keep-alive-requests = 1000000
server.errorlog = "{scratch}/error.log"
accesslog.filename = "{scratch}/access.log"
deflate.mimetypes = ("text/", "application/")
deflate.allowed-encodings = ("gzip")
mimetype.assign = (".html" => "text/html", ".css" => "text/css", "" => "text/plain")
index-file.names = ("index.html")
"""


def lighttpd_at(run: Run, port: int) -> tuple[str, ...]:
    config = run.scratch / "lighttpd.conf"
    config.write_text(LIGHTTPD.format(scratch=run.scratch, port=port, site=run.input / "site"))
    return ("lighttpd", "-D", "-f", str(config))


def lighttpd(run: Run) -> None:
    port = free_port()
    with run.server("lighttpd", *lighttpd_at(run, port), ready=lambda: answers(port)) as child:
        read_and_load(run, port, 30000, 200)
        child.send_signal(signal.SIGINT)  # end when the connections have
        run.finish("lighttpd", child)


HAPROXY = """
global
    maxconn 2000
    nbthread 2
defaults
    mode http
    timeout connect 30s
    timeout client 60s
    timeout server 60s
    compression algo gzip
    compression type text/html text/plain text/css
    http-reuse always
frontend all
    bind 127.0.0.1:{port}
    http-request set-header X-Sum %[path,sha1,hex]
    http-request add-header X-Part %[path,field(2,/)]
    acl styles path_end .css
    use_backend second if styles
    default_backend first
backend first
    balance roundrobin
    server a 127.0.0.1:{back}
backend second
    server b 127.0.0.1:{back} maxconn 50
"""


def haproxy(run: Run) -> None:
    port, back = free_port(), free_port()
    config = run.scratch / "haproxy.cfg"
    config.write_text(HAPROXY.format(port=port, back=back))
    with (
        run.server("lighttpd", *lighttpd_at(run, back), ready=lambda: answers(back)),
        run.server(
            "haproxy", "haproxy", "-db", "-f", str(config), ready=lambda: answers(port)
        ) as child,
    ):
        read_and_load(run, port, 20000, 200)
        child.send_signal(signal.SIGUSR1)  # end when the connections have
        run.finish("haproxy", child)


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


def nothing(folder: Path) -> None:
    """For servers that are filled by their clients."""


def sqlite(run: Run) -> None:
    run.step("script", "sqlite3", "-batch", "rows.db", stdin=run.input / "rows.sql", watch=True)
    run.step("dump", "sqlite3", "-batch", "-readonly", "rows.db", ".dump item")


CASES = (
    Case(
        "redis-types", ("redis-server", "redis-cli", "redis-benchmark"), nothing, redis,
        ("redis-server", "--version"), ("redis-server",),
        packages=("redis-server", "redis-tools"), group=SERVERS,
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
        sqlite, ("sqlite3", ":memory:", "select 1"), ("sqlite3",),
        packages=("sqlite3",), group=SERVERS,
        what="500,000 rows: indexes, joins, windows, triggers, integrity_check, VACUUM, dump",
    ),
    Case(
        "nginx", ("nginx", "ab"), site, nginx, ("nginx", "-v"), ("nginx",),
        packages=("nginx-light", "apache2-utils"), group=SERVERS,
        what="150 files plain, gzipped and in part; 57,000 requests of 200 connections; reload",
    ),
    Case(
        "lighttpd", ("lighttpd", "ab"), site, lighttpd, ("lighttpd", "-v"), ("lighttpd",),
        packages=("lighttpd", "apache2-utils"), group=SERVERS,
        what="the same files, packed at each request; 64,000 requests of 200 connections",
    ),
    Case(
        "haproxy", ("haproxy", "lighttpd", "ab"), site, haproxy, ("haproxy", "-v"), ("haproxy",),
        packages=("haproxy", "lighttpd", "apache2-utils"), group=SERVERS,
        what="two threads before lighttpd: headers, compression; 42,000 requests",
    ),
    Case(
        "memcached", ("memcached",), nothing, memcached, ("memcached", "-V"), ("memcached",),
        packages=("memcached",), group=SERVERS,
        what="four clients set, append, get and delete 48,000 times; every answer checked",
    ),
)  # fmt: skip
