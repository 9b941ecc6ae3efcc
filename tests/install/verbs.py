#!/usr/bin/env python3
"""Every command of an installed hakmem, used on a real program: what it prints, and its status.

    verbs.py [--libraries] HAKMEM

It needs Python and nothing else, so that it runs where only hakmem was installed. --libraries: what
bench, compare, replay and tune need besides is there, or can be installed.
"""

import argparse
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SECONDS = 600
SERVICE = """
import time
print("ready", flush=True)
while True:
    blocks = [bytes(1000 + at % 2000) for at in range(3000)]
    time.sleep(0.005)
"""
WORK = "text = [str(at) * 20 for at in range(20000)]; print(len(text))"
LOSE = "import ctypes; ctypes.CDLL(None).malloc(54321)"


@dataclass
class Installed:
    hakmem: str
    folder: Path
    libraries: bool

    def answer(self, *words: object) -> tuple[int, str]:
        """Status, and what it printed, standard error included."""
        done = subprocess.run(
            [self.hakmem, *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=SECONDS,
            cwd=self.folder,
            env=self.environment,
        )
        assert "Traceback" not in done.stdout, done.stdout
        return done.returncode, done.stdout

    def __call__(self, *words: object) -> str:
        status, said = self.answer(*words)
        assert status == 0, f"status {status}: {said}"
        return said

    def with_libraries(self, *words: object) -> str:
        """Of a command that needs them; nothing where they are missing, which it has to say."""
        status, said = self.answer(*words)
        if status == 2 and not self.libraries:
            assert said.splitlines()[-1].startswith(f"hakmem {words[0]}: "), said
            return ""
        assert status == 0, f"status {status}: {said}"
        return said

    @property
    def environment(self) -> dict[str, str]:
        """Without `libraries` there is no place to install them."""
        given = {n: v for n, v in os.environ.items() if not n.startswith(("LD_", "HAKMEM_"))}
        given |= {"PYTHONMALLOC": "malloc", "LC_ALL": "C.UTF-8"}
        return given if self.libraries else given | {"XDG_CACHE_HOME": "/dev/null"}

    @contextmanager
    def started(self, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
        """Until the end of the block, and the first line that it printed."""
        process = subprocess.Popen(
            [self.hakmem, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env=self.environment,
        )
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline()
        finally:
            process.kill()
            process.communicate()

    @contextmanager
    def service(self) -> Iterator[int]:
        """The PID of a program that goes on allocating."""
        with self.started("run", "/usr/bin/python3", "-c", SERVICE) as (process, said):
            assert said == "ready\n", said
            yield process.pid

    def recording(self) -> Path:
        path = self.folder / "work.recording"
        said = self("record", "-o", path, "--", "/usr/bin/python3", "-c", WORK)
        assert re.search(r"work\.recording: [\d,]+ events of 1 process, ", said), said
        return path


def run(hakmem: Installed) -> None:
    assert re.search(r"/libhakmem\.so", hakmem("run", "cat", "/proc/self/maps"))


def doctor(hakmem: Installed) -> None:
    assert "hakmem is active in ls" in hakmem("doctor", "--", "ls", "/")
    with hakmem.service() as pid:
        assert "hakmem is active in " in hakmem("doctor", pid)


def top(hakmem: Installed) -> None:
    with hakmem.service() as pid:
        assert re.search(rf"^ *{pid} python3", hakmem("top", "--once", pid), re.MULTILINE)
        (row,) = json.loads(hakmem("top", "--json", pid))
        assert row["pid"] == pid
        assert f'pid="{pid}"' in hakmem("top", "--prometheus", pid)
        assert "is now 'top --once'" in hakmem("stat", pid)


def exporter(hakmem: Installed) -> None:
    assert json.loads(hakmem("exporter", "--dashboard"))["panels"]
    with (
        hakmem.service() as pid,
        hakmem.started("exporter", "--listen", "127.0.0.1:0", str(pid)) as (process, said),
    ):
        (url,) = re.findall(r"http://\S+", said)
        for kind in "text/plain", "application/openmetrics-text; version=1.0.0":
            asked = urllib.request.Request(url, headers={"Accept": kind})
            with urllib.request.urlopen(asked, timeout=SECONDS) as answer:
                assert f'pid="{pid}"'.encode() in answer.read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0


def why(hakmem: Installed) -> None:
    with hakmem.service() as pid:
        assert re.search(r"^1\. ", hakmem("why", pid), re.MULTILINE)
        assert json.loads(hakmem("why", "--json", pid))


def sheet(hakmem: Installed) -> None:
    with hakmem.service() as pid:
        assert "blocks in use" in hakmem("sheet", pid)
        assert json.loads(hakmem("sheet", "--json", pid))["live"] > 0


def profile(hakmem: Installed) -> None:
    names = ["a.html", "a.pb.gz", "a.collapsed", "a.speedscope.json"]
    given = [word for name in names for word in ("-o", hakmem.folder / name)]
    how = ["--seconds", "2", "--by", "alloc", "--text"]
    with hakmem.service() as pid:
        assert "python3" in hakmem("profile", *how, *given, pid)
    _check_written(hakmem.folder, names)


def _check_written(folder: Path, names: list[str]) -> None:
    for name in names:
        data = (folder / name).read_bytes()
        data = gzip.decompress(data) if name.endswith(".gz") else data
        assert data, name
        if name.endswith(".pb.gz"):
            assert b"inuse_space" in data and b"python3" in data


def leaks(hakmem: Installed) -> None:
    lost = hakmem.folder / "lost"
    hakmem("run", f"--leaks={lost}", "/usr/bin/python3", "-c", LOSE)
    assert "53.0 KiB" in hakmem("leaks", lost)


def record(hakmem: Installed) -> None:
    hakmem.recording()
    path = hakmem.folder / "service.recording"
    with hakmem.service() as pid:
        assert " events of 1 process" in hakmem("record", "--seconds", "2", "-o", path, pid)
    assert "calls in " in hakmem("trace", path)


def trace(hakmem: Installed) -> None:
    names = ["b.html", "b.pb.gz", "b.collapsed", "b.speedscope.json", "b.heaptrack.gz"]
    given = [word for name in names for word in ("-o", hakmem.folder / name)]
    said = hakmem("trace", *given, hakmem.recording())
    assert "in use at the peak" in said and "allocated in all" in said
    assert "damaged" not in said
    _check_written(hakmem.folder, names)


def replay(hakmem: Installed) -> None:
    page = hakmem.folder / "c.html"
    said = hakmem.with_libraries("replay", "--speed", "0", "-o", page, hakmem.recording())
    if said:
        assert "glibc" in said and "<svg" in page.read_text()


def tune(hakmem: Installed) -> None:
    said = hakmem.with_libraries(
        *("tune", "--minutes", "0.01", "--with", "none", "--measures", "pss", "--"),
        *("/usr/bin/python3", "-c", WORK),
    )
    assert not said or ("recording /usr/bin/python3" in said and " rounds; ratios to A" in said)


def purge(hakmem: Installed) -> None:
    with hakmem.service() as pid:
        hakmem("purge", pid)


def set_(hakmem: Installed) -> None:
    with hakmem.service() as pid:
        hakmem("set", pid, "keep_bytes=16M")


def mark(hakmem: Installed) -> None:
    with hakmem.service() as pid:
        hakmem("mark", pid, "deployed")


def options(hakmem: Installed) -> None:
    assert "keep_bytes" in hakmem("options")


def bench(hakmem: Installed) -> None:
    rows = ["--rows", "pair-64", "--vs", "glibc"]
    assert "pair-64" in hakmem("bench", "--list", *rows)
    out = hakmem.folder / "results"
    if hakmem.with_libraries("bench", *rows, "--rounds", "1", "--scale", "0.01", "--out", out):
        assert (out / "results.json").exists()


def compare(hakmem: Installed) -> None:
    said = hakmem.with_libraries("compare", "--rounds", "3", "glibc", "hakmem", "--", "ls", "/")
    assert not said or ("hakmem" in said and "glibc" in said)


TRIALS: dict[str, Callable[[Installed], None]] = {
    trial.__name__.rstrip("_"): trial
    for trial in (
        *(run, doctor, top, exporter, why, sheet, profile, leaks, record, trace, replay),
        *(tune, purge, set_, mark, options, bench, compare),
    )
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--libraries", action="store_true")
    parser.add_argument("hakmem")
    given = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        hakmem = Installed(given.hakmem, Path(folder), given.libraries)
        listed = re.findall(r"^    (\w+)  ", hakmem("--help"), re.MULTILINE)
        assert sorted(listed) == sorted(TRIALS), listed
        for name, trial in TRIALS.items():
            try:
                trial(hakmem)
            except Exception:
                failed.append(name)
                print(f"hakmem {name}\n{traceback.format_exc()}", flush=True)
    print(f"of {len(TRIALS)} commands failed: {' '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
