"""Marks that a program sets, and those from outside: in recordings, profiles and metrics."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import pytest

from tests.watch.test_exporter import exporter
from tests.watch.watched import SECONDS, Command, running

BLOCKS, BYTES = 10_000, 1000
CUT = "a name of more than so many bytes, which is cut off"[:39]


@pytest.fixture
def program(programs: Path) -> Path:
    return programs / "watch_marks"


def test_recorded(command: Command, program: Path, tmp_path: Path) -> None:
    file, page = tmp_path / "a.recording", tmp_path / "page.html"
    with running("/bin/sh", command.path, "record", "-o", file, "--", program) as process:
        pid = process.ask("pid")
        done = command("mark", pid, "from outside")
        assert done.returncode == 0, done.stderr
        process.process.communicate(timeout=SECONDS)
    done = command(
        *("trace", "--top", 1, "--at", "loaded", "--between", "loaded", "halved"),
        *("-o", str(page), str(file)),
    )
    assert done.returncode == 0, done.stderr
    table = done.stdout.partition("marks:")[2].partition("\n\n")[0]
    rows = re.findall(r"^ +[\d.]+ s +([\d.]+) MiB +(\d+)  (.*)$", table, re.M)
    names = [name for _, _, name in rows]
    assert names[:4] == ["loaded", "halved", "loaded", CUT]
    assert names[4:] == [f"one of many {i}" for i in range(96)], "100 are shown"
    assert {int(of) for _, of, _ in rows} == {pid}
    loaded, halved = (float(figure) for figure, _, _ in rows[:2])
    assert abs(loaded - BLOCKS * BYTES / 2**20) < 0.1 and abs(halved - loaded / 2) < 0.1
    used = re.search(r"in use after [\d.]+ s: .* in ([\d,]+) blocks", done.stdout)
    assert used is not None and BLOCKS <= int(used[1].replace(",", "")) < BLOCKS + 100
    assert re.search(r"allocated between [\d.]+ s and [\d.]+ s: nothing", done.stdout)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text())
    assert data is not None
    marks = [name for _, name in json.loads(data[1])["recorded"]["marks"]]
    assert marks[:3] == ["loaded", "halved", "loaded"] and marks[-1] == "from outside"
    done = command("trace", "--at", "no such", str(file))
    assert done.returncode == 2 and "neither seconds nor a mark" in done.stderr


def test_without_a_recording(
    command: Command, program: Path, library: Path, tmp_path: Path
) -> None:
    """Known from outside: the first 64 names."""
    heap = tmp_path / "a.heap"
    with running(program, library=library, HAKMEM_PROFILE_FILE=str(heap),
                 HAKMEM_PROFILE="on", HAKMEM_PROFILE_RATE="4K",
                 HAKMEM_PROFILE_SAMPLES="0") as process:  # fmt: skip
        with exporter(command, process.pid) as url:
            text = urllib.request.urlopen(f"{url}/metrics", timeout=SECONDS).read().decode()
        counts = re.findall(r'^hakmem_marks_total\{.*mark="([^"]*)".*\} (\d+)', text, re.M)
        known = {name: int(count) for name, count in counts}
        assert known["loaded"] == 2 and known["halved"] == 1 and known[CUT] == 1
        assert len(known) == 64
        taken = command("profile", "--text", "--seconds", 0, "--keep", process.pid)
        assert taken.returncode == 0, taken.stderr
        process.process.communicate(timeout=SECONDS)
    ended = command("profile", "--text", str(heap))
    assert ended.returncode == 0, ended.stderr
    for said in (taken.stdout, ended.stdout):
        found = re.search(r"mark loaded \(2 times, last\): [\d.]+ s .*, with ([\d.]+) MiB", said)
        assert found is not None, said
        assert 3 < float(found[1]) < 7, "half of 9.5 MiB; the standard error is 0.14"
        assert "mark halved: " in said


@pytest.mark.parametrize("name", ["", "x" * 40, "two\nlines"])
def test_wrong_names(command: Command, name: str) -> None:
    done = command("mark", 1, name)
    assert done.returncode == 2 and "expected a name" in done.stderr
