"""What processes hold at moments in which they make no call: patterns of our own, and services.

Each row has a figure for each moment that its process comes to:

loaded     all is allocated
freed      all has just been freed
idle       after 3 seconds without a call
light      after a little traffic
reloaded   all is allocated once more
ended      a second after all was freed once more
"""

from __future__ import annotations

import math
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from hakmem_yardstick.programs.batches import PYTHON
from hakmem_yardstick.programs.program import (
    Command,
    LoadFailed,
    Make,
    Place,
    Ran,
    Run,
    found,
    row,
    words,
)
from hakmem_yardstick.programs.servers import (
    CLIENT,
    USER,
    Service,
    cluster,
    hand_over,
    no_shared_memory_left,
    postgres_service,
    reach,
    redis_client,
    redis_service,
    serve,
)
from hakmem_yardstick.programs.turnovers import ASK
from yardstick.judge.place import SCRIPTS

JUDGED = ("freed", "idle", "light", "ended")
"""Of the others, peaks say as much."""
COURSE = (
    # what is done, the seconds after it, and the moment
    ("load", 0.0, "loaded"),
    ("free", 0.0, "freed"),
    ("", 3.0, "idle"),
    ("light", 0.0, "light"),
    ("load", 0.0, "reloaded"),
    ("free", 1.0, "ended"),
)
"""Of services; life.c has the same."""
MOMENTS = tuple(moment for _, _, moment in COURSE)
ORDERS = ("lifo", "fifo", "random", "other")
PATTERNS = {
    "small": "blocks of 20 to 500 bytes",
    "medium": "blocks of 700 bytes to 14 KiB",
    "large": "blocks of 50 KB to 1.5 MB",
    "huge": "blocks of 3 to 11 MB",
    "mixed": "blocks of 16 bytes to 300 KB",
    "growing": "buffers that take turns to grow by a half",
    "pools": "pools of requests, in chunks that double",
    "threads": "eight threads that free what they have, and sleep",
    "handover": "a thread frees what another allocates",
}
EXTRA = {name: f"resident: {name}" for name in MOMENTS}


# ---- patterns ----

_BEGIN_EACH = 0.5  # s: the next order's process loads while the one before idles
_ALL_ORDERS = (
    f'for order in {" ".join(ORDERS)}; do "$0" "$1" $order "$2" & sleep {_BEGIN_EACH}; done; wait'
)


def _pattern(name: str) -> Run:
    def run(place: Place) -> Ran:
        program, mib = place.inputs / "life", str(place.sizes["mib"])
        measured = place.measure([found("sh"), "-c", _ALL_ORDERS, program, name, mib])
        if measured.outcome != "ok":
            return Ran(measured)
        lines = [line.split() for line in measured.stdout.splitlines()]
        kib = {(order, moment): float(rss) for order, moment, rss in lines}
        if len(kib) != len(ORDERS) * len(MOMENTS):
            raise LoadFailed(f"a process came to its end early: {measured.stderr[-200:]}")
        return Ran(measured, extra={moment: _of_orders(kib, moment) for moment in MOMENTS})

    return run


def _of_orders(kib: Mapping[tuple[str, str], float], moment: str) -> float:
    """Their geometric mean: an order that leaves little counts as much as one that leaves much."""
    return math.exp(sum(math.log(kib[order, moment]) for order in ORDERS) / len(ORDERS))


def _compiled(name: str, source: str, *start: str) -> Make:
    def make(folder: Path, _sizes: Mapping[str, int]) -> None:
        command: list[str | Path] = [*start, "-O2", "-pthread", "-o", folder / name]
        command.append(SCRIPTS / source)
        subprocess.run(command, env=CLIENT, check=True, capture_output=True)

    return make


_LIFE = _compiled("life", "life.c", "gcc", "-D_GNU_SOURCE", "-fno-builtin")
_SERVICE = _compiled("service", "service.cc", "g++", "-std=c++20")
LIFE = tuple(
    row(name, f"A life with {what}", _pattern(name), {"mib": 72}, packages="gcc libc6-dev",
        executables="gcc sh", proof="@INPUTS@/life", of="life", make=_LIFE, extra=EXTRA,
        judged=JUDGED)
    for name, what in PATTERNS.items()
)  # fmt: skip


# ---- services ----

Step = Callable[[], None]


def _lived(
    place: Place, service: Service, *, load: Step, free: Step, light: Step, check: Step
) -> Ran:
    """The output of `check` is the result."""
    acts: dict[str, Step] = {"load": load, "free": free, "light": light, "": lambda: None}
    for what, rest, _ in COURSE:
        acts[what]()
        if rest:
            service.pause(rest)
        service.resident()
    check()
    measured, answers = serve(place, service)
    if not answers:
        return Ran(measured)
    held = [float(answer["kib"]) for answer in answers if "kib" in answer]
    result = answers[-1]["output"].strip().encode()
    return Ran(measured, [result], extra=dict(zip(MOMENTS, held, strict=True)))


def _asked(command: Command) -> Run:
    """A service of ours, which takes words."""

    def run(place: Place) -> Ran:
        ask: list[str | Path] = [sys.executable, "-I", "-S", ASK, place.folder / "socket"]
        service = Service(command(place), [*ask, "ready"], place.folder / "pid", signal.SIGTERM)

        def word(text: str) -> Step:
            return lambda: service.run(*ask, text)

        steps = {what: word(what) for what in ("load", "free", "light")}
        return _lived(place, service, check=word("ready"), **steps)

    return run


def _script(text: str, file: str, *more: str) -> Run:
    return _asked(words(text, str(SCRIPTS / file), *more, "@size@"))


def _flushed(*how: str) -> Run:
    def run(place: Place) -> Ran:
        service, client = redis_service(place), redis_client(place)

        def pipe(name: str) -> Step:
            return lambda: service.run(*client, "--pipe", stdin=place.inputs / name)

        return _lived(
            place,
            service,
            load=pipe("fill"),
            free=lambda: service.run(*client, "FLUSHALL", *how),
            light=pipe("light"),
            check=lambda: service.run(*client, "DBSIZE"),
        )

    return run


def _keys(folder: Path, sizes: Mapping[str, int]) -> None:
    for name, count, keys in (("fill", sizes["keys"], sizes["keys"]), ("light", 3000, 60)):
        lot = random.Random(name)
        with (folder / name).open("wb") as out:
            for number in range(count):
                key, value = b"k:%d" % (number % keys), b"v" * int(20 * 2 ** lot.uniform(0, 5))
                parts = (b"$%d\r\n%b\r\n" % (len(one), one) for one in (b"SET", key, value))
                out.write(b"*3\r\n" + b"".join(parts))


def _nginx(place: Place) -> Ran:
    folder = place.folder
    # Longer than what a socket takes, packed: a request whose client waits keeps its buffers.
    (folder / "page").write_text(random.Random(1).randbytes(300_000).hex())
    (folder / "nginx.conf").write_text(
        f"""daemon off; worker_processes 2; pid {folder}/pid; error_log {folder}/log;
{"" if os.geteuid() else "user root;"}
events {{ worker_connections 2000; }}
http {{ access_log off; gzip on; gzip_types *; keepalive_requests 100000;
{" ".join(f"{name}_temp_path {folder}/{name};" for name in TEMPORARY)}
server {{ listen unix:{folder}/socket; root {folder}; }} }}
"""
    )
    clients: list[str | Path] = [sys.executable, "-I", "-S", SCRIPTS / "clients.py"]
    clients.append(folder / "socket")
    command: list[str | Path] = [found("nginx"), "-p", folder, "-c", folder / "nginx.conf"]
    service = Service(command, [*clients, "1", "1"], folder / "pid", signal.SIGTERM)
    return _lived(
        place,
        service,
        load=lambda: service.run(*clients, "90", "1"),
        free=lambda: service.pause(0.2),
        light=lambda: service.run(*clients, "1", "9"),
        check=lambda: service.run(*clients, "1", "1"),
    )


TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def _session(steps: Mapping[str, Sequence[str]], look: str, rest: str) -> str:
    """The life of a client's session, which starts a shell to look and to rest: it ends with its
    client."""
    out: list[str] = []
    for what, seconds, moment in COURSE:
        out.extend(steps.get(what, ()))
        out.extend([rest.format(seconds)] if seconds else [])
        out.append(look.format(moment))
    return "\n".join(out) + "\n"


def _said(measured_text: str) -> dict[str, float]:
    held = {name: float(kib) for name, kib in re.findall(r"(\w+) Pss: +(\d+) kB", measured_text)}
    if list(held) != list(MOMENTS):
        raise LoadFailed(f"it came to {', '.join(held) or 'no moment'}: {measured_text[-200:]}")
    return held


def _sqlite(place: Place) -> Ran:
    read = f".read '{place.inputs / 'session.sql'}'"
    measured = place.measure([found("sqlite3"), "-batch", ":memory:", read])
    if measured.outcome != "ok":
        return Ran(measured)
    return Ran(measured, extra=_said(measured.stdout))


def _sqlite_session(folder: Path, sizes: Mapping[str, int]) -> None:
    numbers = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {})"
        " INSERT INTO t SELECT x, hex(x * 77), hex(zeroblob(x % 400)) FROM n;"
    )
    steps = {
        "load": [
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b TEXT);",
            numbers.format(sizes["rows"]),
            "CREATE INDEX ta ON t(a);",
            "SELECT count(*) FROM (SELECT a, b FROM t ORDER BY b, a LIMIT 100);",
        ],
        "free": ["DROP TABLE t;", "VACUUM;"],
        "light": ["CREATE TEMP TABLE s(x);"]
        + ["INSERT INTO s SELECT hex(randomblob(90));", "SELECT count(*) FROM s;"] * 100
        + ["DROP TABLE s;"],
    }
    look = ".shell echo {} $(grep ^Pss: /proc/$PPID/smaps_rollup)"
    (folder / "session.sql").write_text(_session(steps, look, ".shell sleep {}"))


def _postgres(place: Place) -> Ran:
    subprocess.run(["cp", "-a", place.inputs / "data", place.folder], check=True)
    hand_over(place.folder, USER)
    service = postgres_service(place.folder)
    session: list[str | Path] = [found("psql"), *reach(place.folder), "-XqAt"]
    service.run(*session, "-v", "ON_ERROR_STOP=1", "-f", place.inputs / "session.sql", "postgres")
    with no_shared_memory_left(place.folder):
        measured, answers = serve(place, service)
    return Ran(measured, extra=_said(answers[0]["output"])) if answers else Ran(measured)


def _postgres_session(folder: Path, sizes: Mapping[str, int]) -> None:
    cluster(folder, {})
    steps = {
        "load": [
            "BEGIN; DECLARE sorted CURSOR FOR SELECT md5(x::text) AS m, repeat('t', x % 300) AS t"
            f" FROM generate_series(1, {sizes['rows']}) AS x ORDER BY m, t;",
            "FETCH 1 FROM sorted \\g /dev/null",
        ],
        "free": ["ROLLBACK;"],
        "light": ["SELECT count(*) FROM pgbench_branches \\g /dev/null"] * 200,
    }
    look = "\\! echo {} $(grep ^Pss: /proc/$SERVER/smaps_rollup)"
    begin = "SELECT pg_backend_pid() AS server \\gset\n\\setenv SERVER :server\n"
    begin += "SET work_mem = '200MB'; SET jit = off;\n"
    (folder / "session.sql").write_text(begin + _session(steps, look, "\\! sleep {}"))


_service = partial(row, extra=EXTRA, judged=JUDGED)
_MALLOC = {**PYTHON, "PYTHONMALLOC": "malloc"}

# fmt: off
SERVICES = (
    _service("redis", "150,000 keys, FLUSHALL", _flushed("SYNC"), {"keys": 150_000},
        packages="redis-server redis-tools", executables="redis-server redis-cli", make=_keys,
        brings="jemalloc"),
    _service("redis-async", "The same, emptied by its thread for that", _flushed("ASYNC"),
        {"keys": 150_000}, packages="redis-server redis-tools",
        executables="redis-server redis-cli", make=_keys, brings="jemalloc"),
    _service("python-threads", "Eight threads with records, all objects from malloc",
        _script("python3 -S", "service.py", "threads"), {"size": 9000}, packages="python3",
        proof="python3 -S -c 1", variables=_MALLOC),
    _service("python-forks", "Three workers that share what was loaded before they were forked",
        _script("python3 -S", "service.py", "forks"), {"size": 20_000}, packages="python3",
        proof="python3 -S -c 1", variables=_MALLOC),
    _service("python-numpy", "Arrays of 2 to 480 KB", _script("python3", "service.py", "numpy"),
        {"size": 450}, packages="python3 python3-numpy", executables="python3 f2py3",
        proof="python3 -S -c 1", variables=PYTHON),
    _service("node", "Buffers and what zlib makes of them",
        _script("node --expose-gc --single-threaded-gc", "service.js"), {"size": 1800},
        packages="nodejs", executables="node"),
    _service("ruby", "Arrays, texts and hashes", _script("ruby --disable-gems", "service.rb"),
        {"size": 40_000}, of="libruby*.so*"),
    _service("c++", "Sixteen threads with sessions, of which others free a part",
        _asked(words("@INPUTS@/service @size@")), {"size": 36_000}, packages="g++",
        proof="@INPUTS@/service", of="libstdc++.so*", make=_SERVICE),
    _service("sqlite", "A table in memory, dropped", _sqlite, {"rows": 90_000}, packages="sqlite3",
        executables="sqlite3 sh", make=_sqlite_session),
    _service("nginx", "Two workers, 90 clients", _nginx, {}, packages="nginx-light",
        executables="nginx", proof="nginx -v"),
    _service("postgres", "A session with a large sort", _postgres, {"rows": 200_000},
        packages="postgresql postgresql-client",
        executables="postgres initdb psql pg_isready pgbench", make=_postgres_session, user=USER),
)
# fmt: on
