"""How much of the blocks in use the program asked for: what the sheet, hakmem_sheet and the metrics
estimate from the samples of a heap profile, beside what a program knows."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.watch.watched import Command, Process, Sheet, running

RATE = 16 * 1024
# Of standard errors: more is chance once in a hundred million times.
MOST = 6


@pytest.fixture
def fill(programs: Path, library: Path, tmp_path: Path) -> Iterator[Process]:
    with running(
        programs / "watch_fill",
        library=library,
        HAKMEM_PROFILE="on",
        HAKMEM_PROFILE_RATE=str(RATE),
        HAKMEM_PROFILE_SAMPLES="0",
        HAKMEM_SCAVENGER="off",
        HAKMEM_STATS_FILE=str(tmp_path / "figures"),
        HAKMEM_STATS_SIGNAL=str(int(signal.SIGUSR2)),
    ) as process:
        yield process


def share_of(sheet: Sheet) -> tuple[float, float]:
    """Of the blocks in use, and its error."""
    found = sheet.said["requested"]
    return found["bytes"] / sheet.said["live"], found["error"] / sheet.said["live"]


def test_what_a_program_knows(command: Command, fill: Process) -> None:
    """Also after it has freed and allocated much. The program's own few blocks are few."""
    for _ in range(5):
        requested = fill.ask("more")
        usable = fill.ask("usable")
        sheet = command.sheet(fill.pid)
        share, error = share_of(sheet)
        assert 0 < error < 0.01
        assert abs(share - requested / usable) <= MOST * error
        found = sheet.said["requested"]
        assert found["samples"] > 1000
        assert abs(found["stand_for"] - usable) <= 0.1 * usable
        assert abs(found["bytes"] - requested) <= MOST * found["error"] + 2**17
    assert requested < 0.97 * usable, "there is something to see"


def test_all_forms_agree(command: Command, fill: Process, tmp_path: Path) -> None:
    fill.ask("more")
    found = command.sheet(fill.pid).said["requested"]
    text = command("sheet", fill.pid).stdout
    (line,) = (line for line in text.splitlines() if line.startswith("blocks in use, as requested"))
    assert re.search(
        rf" {found['bytes'] / 2**20:.1f}  .*% ± 0\.\d% of the blocks in use "
        rf"\(estimate, {found['samples']} samples\)$",
        line,
    )
    done = command("top", "--prometheus", fill.pid)
    assert done.returncode == 0, done.stderr
    fill.process.send_signal(signal.SIGUSR2)
    assert fill.ask("usable") > 0
    inside = (tmp_path / "figures").read_text()
    for name, value in (
        ("hakmem_requested_bytes", found["bytes"]),
        ("hakmem_requested_error_bytes", found["error"]),
        ("hakmem_requested_samples", found["samples"]),
    ):
        for figures in done.stdout, inside:
            (number,) = re.findall(rf"^{name}(?:{{.*}})? ([0-9.e+]+)$", figures, re.MULTILINE)
            # The first line that a process reads or prints takes some blocks.
            assert abs(float(number) - value) <= 0.01 * value + 2, name


def test_without_a_profile(command: Command, plant: Process) -> None:
    plant.ask("live")
    assert command.sheet(plant.pid).said["requested"] is None
    assert "requested" not in command("sheet", plant.pid).stdout
    done = command("top", "--prometheus", plant.pid)
    assert "hakmem_requested_bytes{" not in done.stdout


def test_a_profile_that_began_late(command: Command, programs: Path, library: Path) -> None:
    """It says for how much of the blocks the samples stand."""
    with running(
        programs / "watch_fill",
        library=library,
        HAKMEM_PROFILE_RATE=str(RATE),
        HAKMEM_PROFILE_SAMPLES="0",
    ) as process:
        process.ask("more")
        # It obeys when it next frees.
        command("set", process.pid, "profile=on")
        process.ask("more")
        before = process.ask("usable")
        process.ask("more")
        found = command.sheet(process.pid).said
        assert 0 < found["requested"]["stand_for"] < 0.8 * found["live"]
        assert found["live"] > before
        text = command("sheet", process.pid).stdout
        assert re.search(r"\(estimate for \d+% of them, \d+ samples\)", text)
        # What was sampled stays known.
        command("set", process.pid, "profile=off")
        assert json.loads(command("sheet", "--json", process.pid).stdout)["requested"] is not None
