#!/usr/bin/env python3
"""What `hakmem record` costs: programs under hakmem, recorded and not, in turn, with their clients
on the same processors. Of servers the time of the load counts, of others all of the command less
the time that it takes to record `true`.

Usage: yardstick/tools/record_cost.py [--rounds N] [--hakmem COMMAND] [PROGRAM...]
"""

from __future__ import annotations

import argparse
import os
import pwd
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]
SCRIPTS = HERE.parents[1] / "python/hakmem_yardstick/programs/scripts"
POSTGRES = "/usr/lib/postgresql/15/bin"

WEB = """
import http.server, json
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *words): pass
    def do_GET(self):
        rows = [{"id": i, "name": f"row {i}", "tags": [str(i)] * 3} for i in range(300)]
        body = json.dumps(json.loads(json.dumps(rows))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("127.0.0.1", 7117), Answer).serve_forever()
"""
WEB_LOAD = """
import socket, threading
def ask():
    for _ in range(40):
        with socket.create_connection(("127.0.0.1", 7117)) as connection:
            for _ in range(10):
                connection.send(b"GET / HTTP/1.1\\r\\nHost: here\\r\\n\\r\\n")
                answer = b""
                while not answer.endswith(b"]"):
                    answer += connection.recv(1 << 16)
threads = [threading.Thread(target=ask) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
"""
JSON = """
import json
rows = [{"id": i, "name": f"row {i}", "tags": [str(i)] * 3} for i in range(2000)]
for _ in range(150):
    json.loads(json.dumps(rows))
"""
NODE = """
const zlib = require('zlib'); let sum = 0;
for (let i = 0; i < 300; i++) {
  const parts = [];
  for (let k = 0; k < 4000; k++) parts.push(Buffer.alloc(200 + (k * 37) % 5000, k & 255));
  sum += zlib.deflateSync(Buffer.concat(parts.slice(0, 40))).length;
}
console.log(sum);
"""
SQL = """
select sum(length(j::text)) from (select jsonb_build_object('a', i, 'b', array_agg(k)) j
  from generate_series(1, 60000) i, generate_series(1, 6) k group by i order by md5(i::text)) x;
select count(*) from (select upper(md5(i::text)) || i from generate_series(1, 300000) i order by 1)
  x;
"""


@dataclass
class Work:
    command: Sequence[str]
    environment: dict[str, str]
    ready: Sequence[str] = ()
    load: Sequence[str] = ()
    user: str | None = None


def works(folder: Path) -> dict[str, Work]:
    cc = folder / "large.cc"
    headers = [
        "regex",
        "map",
        "unordered_map",
        "functional",
        "future",
        "random",
        "iostream",
        "algorithm",
        "thread",
    ]
    cc.write_text(
        "".join(f"#include <{name}>\n" for name in headers)
        + "".join(
            f"int f{i}(const std::string &s) {{ std::map<std::string, std::vector<int>> m;"
            f" std::regex r(s); m[s].push_back({i}); return std::regex_match(s, r) + m.size(); }}\n"
            for i in range(60)
        )
    )
    data = folder / "postgres"
    here = ["-h", str(folder), "-p", "7118", "-U", "postgres"]
    (folder / "queries.sql").write_text(SQL * 3)
    return {
        "redis": Work(
            ["redis-server", "--port", "7116", "--save", "", "--dir", str(folder)],
            {},
            ["redis-cli", "-p", "7116", "ping"],
            [
                "redis-benchmark",
                "-p",
                "7116",
                "-q",
                "-n",
                "400000",
                "-r",
                "50000",
                "-d",
                "200",
                "-P",
                "16",
                "-t",
                "set,get,lpush,sadd",
            ],
        ),
        "postgres": Work(
            [f"{POSTGRES}/postgres", "-D", str(data), "-p", "7118", "-k", str(folder)],
            {},
            [f"{POSTGRES}/pg_isready", *here[:4]],
            ["psql", *here, "-q", "-o", "/dev/null", "-f", str(folder / "queries.sql")],
            user="postgres",
        ),
        "web": Work(
            ["/usr/bin/python3", "-c", WEB],
            {"PYTHONMALLOC": "malloc"},
            [
                "/usr/bin/python3",
                "-c",
                "import socket; socket.create_connection(('127.0.0.1', 7117))",
            ],
            ["/usr/bin/python3", "-c", WEB_LOAD],
        ),
        "json": Work(["/usr/bin/python3", "-c", JSON], {"PYTHONMALLOC": "malloc"}),
        "node": Work(["node", "-e", NODE], {}),
        "g++": Work(["g++", "-O1", "-c", "-o", "/dev/null", str(cc)], {}),
        "lua": Work(["lua5.4", str(SCRIPTS / "objects.lua"), "20"], {}),
    }


def as_user(name: str | None) -> dict[str, object]:
    if name is None or os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam(name)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def make_database(work: Work, folder: Path) -> None:
    """Of postgres, which refuses to be root."""
    if work.user is not None:
        entry = pwd.getpwnam(work.user)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = [f"{POSTGRES}/initdb", "-A", "trust", "-U", "postgres", "-D", work.command[2]]
        subprocess.run(command, check=True, cwd="/", **as_user(work.user), **quiet)  # type: ignore[call-overload]


def seconds_of(work: Work, front: Sequence[str], log: Path) -> float:
    """Raises CalledProcessError where anything fails."""
    command = [*front, *work.command]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    with log.open("w") as errors:
        began = time.perf_counter()
        program = subprocess.Popen(
            command, stderr=errors, env=os.environ | work.environment, cwd="/",
            **quiet, **as_user(work.user),
        )  # type: ignore[call-overload]  # fmt: skip
        if not work.load:
            program.wait()
            if program.returncode != 0:
                raise subprocess.CalledProcessError(program.returncode, command)
            return time.perf_counter() - began
        try:
            for _ in range(600):
                if subprocess.run(work.ready, check=False, stderr=errors, **quiet).returncode == 0:  # type: ignore[call-overload]
                    break
                time.sleep(0.05)
            else:
                raise subprocess.TimeoutExpired(work.ready, 30)
            began = time.perf_counter()
            subprocess.run(work.load, check=True, stderr=errors, **quiet)  # type: ignore[call-overload]
            return time.perf_counter() - began
        finally:
            program.send_signal(signal.SIGTERM)
            program.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="at least 2")
    parser.add_argument("--hakmem", default=str(ROOT / "build/release/bin/hakmem"))
    parser.add_argument("programs", metavar="PROGRAM", nargs="*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        log = folder / "log"
        there = works(folder)
        plain = [arguments.hakmem, "run", "--"]
        start = statistics.median(
            seconds_of(
                Work(["true"], {}), [arguments.hakmem, "record", "-o", f"{name}/r", "--"], log
            )
            - seconds_of(Work(["true"], {}), plain, log)
            for _ in range(5)
        )
        print(f"to start and end the command: {start:.2f} s")
        print("program   times as long (quartiles)  M calls/s  bytes each")
        for one in arguments.programs or there:
            work = there[one]
            make_database(work, folder)
            measure(one, work, arguments, folder, start)


def measure(
    one: str, work: Work, arguments: argparse.Namespace, folder: Path, start: float
) -> None:
    log = folder / "log"
    where = folder / "recordings"
    where.mkdir(exist_ok=True)
    if work.user is not None:
        os.chown(where, pwd.getpwnam(work.user).pw_uid, -1)
    record = [arguments.hakmem, "record", "-o", str(where / f"{one}.recording"), "--"]
    plain = [arguments.hakmem, "run", "--"]
    ratios, rates, each = [], [], ""
    for _ in range(arguments.rounds):
        before = seconds_of(work, plain, log)
        after = seconds_of(work, record, log) - (0 if work.load else start)
        ratios.append(after / before)
        said = re.search(r"([0-9,]+) events of .*, ([0-9.]+) bytes each.*", log.read_text())
        if said is None:
            sys.exit(log.read_text())
        rates.append(int(said[1].replace(",", "")) / after / 1e6)
        each = said[2] + said[0].partition("each")[2]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(
        f"{one:9} {middle:.2f} ({low:.2f}-{high:.2f})"
        f"           {statistics.median(rates):9.2f}  {each:>10}",
        flush=True,
    )


if __name__ == "__main__":
    main()
