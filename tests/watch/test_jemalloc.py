"""Real servers that are linked with jemalloc: what they ask it for, hakmem answers. Each is skipped
where it is not installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ran import clean_environment, ran
from tests.watch.test_programs import FILL, free_port, redis
from tests.watch.watched import SECONDS, SHARE, Command


def needs(program: str) -> str:
    """Its path."""
    path = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin")
    if path is None:
        pytest.skip(f"{program} is not installed")
    linked = ran("ldd", path, check=True).stdout
    if "libjemalloc" not in linked:
        pytest.skip(f"{program} is not linked with jemalloc")
    return path


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, condition
        time.sleep(0.05)


# ---- redis ----

THIN_OUT = "for i = 0, 500000 do if i % 7 > 0 then redis.call('del', 'key:' .. i) end end"


def info(ask: Callable[..., str]) -> dict[str, float]:
    pairs = re.findall(r"^(\w+):([\d.]+)\r?$", ask("info", "memory"), re.MULTILINE)
    return {name: float(value) for name, value in pairs}


def near(found: float, expected: float) -> bool:
    return abs(found - expected) <= SHARE * expected


def agree(ask: Callable[..., str], command: Command, pid: int) -> bool:
    """Whether redis, which looks every tenth of a second, shows what the sheet does."""
    said, sheet = info(ask), command.sheet(pid).said
    heap = sum(line["resident"] for line in sheet["heap"])
    return (
        near(said["allocator_allocated"], sheet["live"])
        and near(said["allocator_resident"], heap)
        and said["allocator_allocated"] <= said["allocator_active"]
        and said["allocator_active"] <= said["allocator_resident"]
    )


def test_redis_shows_the_heap_s_figures(command: Command, library: Path, tmp_path: Path) -> None:
    needs("redis-server")
    with redis(library, tmp_path) as (pid, ask):
        # So much that blocks in caches, whose pages were perhaps never touched, are little.
        ask("eval", FILL.replace("200000", "500000"), "0")
        until(lambda: agree(ask, command, pid))
        stats = ask("memory", "stats").split("\n")
        allocated = float(stats[stats.index("allocator.allocated") + 1])
        assert near(allocated, command.sheet(pid).said["live"])
        assert "can't find any memory issue" in ask("memory", "doctor")
        printed = ask("memory", "malloc-stats")
        assert re.search(r'Version: "5\.[\d.]+-hakmem-', printed), printed
        found = re.search(r"^Allocated: (\d+), active: ", printed, re.MULTILINE)
        assert found is not None and near(float(found[1]), command.sheet(pid).said["live"])


@pytest.mark.nightly
def test_redis_purges(command: Command, library: Path, tmp_path: Path) -> None:
    needs("redis-server")
    with redis(library, tmp_path) as (pid, ask):
        ask("eval", FILL.replace("200000", "500000"), "0")
        ask("eval", THIN_OUT, "0")
        until(lambda: agree(ask, command, pid))
        assert info(ask)["allocator_frag_ratio"] > 1.5
        assert "High allocator fragmentation" in ask("memory", "doctor")
        assert ask("memory", "purge") == "OK\n"
        until(lambda: agree(ask, command, pid))
        sheet = command.sheet(pid)
        for line in sheet.said["heap"]:
            if line.get("how") == "malloc_trim(0)":
                assert line["resident"] - line["could_be"] <= 1 << 20, line


@pytest.mark.nightly
def test_redis_is_as_lean_after_flushall(library: Path, tmp_path: Path) -> None:
    needs("redis-server")
    left = {}
    for name, preloaded in ("hakmem", library), ("jemalloc", None):
        (tmp_path / name).mkdir()
        with redis(preloaded, tmp_path / name) as (pid, ask):
            ask("eval", FILL, "0")
            assert ask("flushall") == "OK\n"
            resident = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
            assert resident is not None
            left[name] = int(resident[1])
    print(left)
    assert left["hakmem"] <= left["jemalloc"] * (1 + SHARE)


def test_redis_says_why_it_does_not_defragment(library: Path, tmp_path: Path) -> None:
    """Debian's needs a function that only the jemalloc in redis' source has."""
    needs("redis-server")
    with redis(library, tmp_path) as (_, ask):
        answer = ask("config", "set", "activedefrag", "yes")
        assert "requires a Redis server compiled with a modified Jemalloc" in answer, answer
        assert ask("ping") == "PONG\n"


# ---- others ----


@contextmanager
def serving(
    library: Path, *words: str | Path, ready: Callable[[], bool], stop: int = signal.SIGTERM
) -> Iterator[int]:
    """A server's PID. It has to end well when it is told to."""
    environment = clean_environment()
    server = subprocess.Popen(
        list(map(str, words)),
        env=environment | {"LD_PRELOAD": str(library)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: ready() or server.poll() is not None)
        yield server.pid
        server.send_signal(stop)
        _, errors = server.communicate(timeout=SECONDS)
        assert server.returncode in (0, -stop), errors
        assert "hakmem:" not in errors, errors
    finally:
        server.kill()
        server.communicate()


def asked(port: int, name: str) -> bool:
    """Whether a DNS server gives an address for a name."""
    labels = b"".join(struct.pack("B", len(part)) + part.encode() for part in name.split("."))
    query = struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(1)
        try:
            client.sendto(query, ("127.0.0.1", port))
            answer = client.recv(4096)
        except OSError:
            return False
    return answer[:2] == query[:2] and answer.endswith(bytes([10, 0, 0, 7]))


def fetched(port: int, path: str = "/") -> bytes:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=SECONDS) as answer:
            return bytes(answer.read())
    except OSError:
        return b""


NAMED = """
options { directory "%s"; pid-file none; listen-on port %d { 127.0.0.1; }; listen-on-v6 { none; };
          recursion no; session-keyfile none; };
controls { };
statistics-channels { inet 127.0.0.1 port %d allow { 127.0.0.1; }; };
zone "example.test" { type primary; file "zone"; };
"""
ZONE = "$TTL 60\n@ IN SOA ns h 1 60 60 60 60\n@ IN NS ns\nns IN A 10.0.0.1\n"


def test_named(command: Command, library: Path, tmp_path: Path) -> None:
    """All of its memory is mallocx's, in arenas that it creates."""
    named, port, figures = needs("named"), free_port(), free_port()
    (tmp_path / "zone").write_text(ZONE + "".join(f"h{i} IN A 10.0.0.7\n" for i in range(20000)))
    (tmp_path / "conf").write_text(NAMED % (tmp_path, port, figures))
    words = named, "-f", "-c", tmp_path / "conf"
    with serving(library, *words, ready=lambda: asked(port, "h7.example.test")) as pid:
        assert all(asked(port, f"h{i}.example.test") for i in range(0, 20000, 100))
        memory = json.loads(fetched(figures, "/json/v1/mem"))["memory"]
        live = command.sheet(pid).said["live"]
        assert memory["InUse"] <= live <= 1.1 * memory["InUse"] + (2 << 20), (memory, live)


@pytest.mark.nightly
def test_kresd(command: Command, library: Path, tmp_path: Path) -> None:
    kresd, port = needs("kresd"), free_port()
    (tmp_path / "conf").write_text(
        f"net.listen('127.0.0.1', {port}, {{ kind = 'dns' }})\nmodules = {{ 'hints' }}\n"
        f"hints['h7.example.com'] = '10.0.0.7'\ncache.open(10*MB, 'lmdb://{tmp_path}/cache')\n"
    )
    words = kresd, "-n", "-c", tmp_path / "conf", tmp_path
    with serving(library, *words, ready=lambda: asked(port, "h7.example.com")) as pid:
        assert all(asked(port, "h7.example.com") for _ in range(200))
        assert command.sheet(pid).said["live"] > 1 << 20


@pytest.mark.nightly
def test_nghttpd(command: Command, library: Path, tmp_path: Path) -> None:
    nghttpd, port = needs("nghttpd"), free_port()
    client = shutil.which("h2load") or pytest.skip("h2load is not installed")
    (tmp_path / "file").write_bytes(b"x" * 100000)

    def load(count: int) -> str:
        words = [client, "-n", str(count), "-c", "5", "-m", "5", f"http://127.0.0.1:{port}/file"]
        environment = os.environ | {"LD_PRELOAD": str(library)}
        return ran(*words, env=environment).stdout

    words = nghttpd, "--no-tls", "-n", "2", "-d", tmp_path, str(port)
    with serving(library, *words, ready=lambda: " 10 succeeded" in load(10)) as pid:
        assert " 1000 succeeded" in load(1000)
        assert command.sheet(pid).said["live"] > 1 << 16
