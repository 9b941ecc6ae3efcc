"""`hakmem sheet --sites` and the sites in `hakmem top`: which code holds the memory of a process,
which grew, and which has blocks of the size classes whose pages are mostly free."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.watch.test_top import on_screen
from tests.watch.watched import SECONDS, Command, Process, running

# Of standard errors: more is chance once in a hundred million times.
MOST = 6
KEPT = (64 << 20) // 1000 * 1000
GROWN = (16 << 20) // 3000 * 3000
PINS = -(-300000 // 17)  # blocks of 240 bytes, one in each page or so


@pytest.fixture
def held(programs: Path, library: Path) -> Iterator[Process]:
    with running(
        programs / "watch_held",
        library=library,
        HAKMEM_PROFILE="on",
        HAKMEM_PROFILE_RATE="16K",
        HAKMEM_PROFILE_SAMPLES="0",
        HAKMEM_SCAVENGER="off",
        HAKMEM_COMPACT="off",
    ) as process:
        yield process


def sites(command: Command, *words: str | int) -> dict[str, Any]:
    done = command("sheet", "--json", "--sites", *words)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def of(said: dict[str, Any], function: str) -> dict[str, Any]:
    """The site whose innermost function it is."""
    (found,) = (one for one in said["sites"]["sites"] if one["stack"][0]["function"] == function)
    return dict(found)


def test_what_code_holds(command: Command, held: Process) -> None:
    held.ask("keep")
    held.ask("pin")
    said = sites(command, held.pid)
    assert said["sites"]["rate"] == 16384 and said["sites"]["seconds"] is None
    for function, size in (("keeping", KEPT), ("lasting", PINS * 240)):
        site = of(said, function)
        assert 0 < site["in_use_error"] < 0.2 * size
        assert abs(site["in_use"] - size) <= MOST * site["in_use_error"]
        assert "main" in [line["function"] for line in site["stack"]]
        assert "grown" not in site
    # What was freed holds nothing.
    assert not any(
        one["in_use"] for one in said["sites"]["sites"] if one["stack"][0]["function"] == "passing"
    )
    # The class of the blocks that hold nearly empty pages, and whose blocks they are.
    (row,) = (row for row in said["classes"] if row["size"] == 240)
    assert row["sparse"]["blocks"] >= 0.9 * PINS
    assert row["sparse"]["pages"] >= 0.9 * PINS / 2
    assert row["sparse"]["used"] <= row["sparse"]["pages"] * 2048
    assert row["live"] <= PINS + 100
    (size,) = (one for one in of(said, "lasting")["classes"] if one["size"] == 240)
    assert abs(size["blocks"] - row["live"]) <= MOST * size["error"] + 100
    for row in said["classes"]:
        sparse, resident = row["sparse"], sum(row["resident"].values())
        assert sparse["used"] <= sparse["pages"] * 4096 <= resident + 4096
        assert sparse["blocks"] <= row["live"]


def test_what_code_grew(command: Command, held: Process, tmp_path: Path) -> None:
    """It grows again and again until both looks are over: what grew is the one that does."""
    held.ask("keep")
    words = ["/bin/sh", str(command.path), "sheet", "--seconds", "2", str(held.pid)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as looks:
        grown = 0
        while looks.poll() is None:
            held.ask("grow" if grown < 40 else "work")
            grown += 1
        assert looks.stdout is not None
        text = looks.stdout.read()
    assert looks.returncode == 0
    assert "sites that hold most (estimates: one sample for each 16 KiB on average)" in text
    if grown < 40:  # else it may have grown before the first look
        (table,) = re.findall(r"sites that grew most, in \d+ s\n.*\n(.*)\n", text)
        assert re.search(r"\+\d.* growing \(held.c:\d+\)", table)


def test_growth(command: Command, held: Process, library: Path) -> None:
    from hakmem.sites import Sites

    process = Sites(held.pid, library)
    held.ask("keep")
    assert process.look().seconds is None and not process.look().grown(5)
    held.ask("grow")
    seen = process.look()
    assert seen.seconds is not None and seen.seconds > 0
    (one,) = seen.grown(5)
    assert one.lines[0].function == "growing" and one.grown == one.in_use
    assert 0 < one.grown_error < 0.2 * GROWN
    assert abs(one.grown - GROWN) <= MOST * one.grown_error
    (keeps,) = (one for one in seen.held if one.lines[0].function == "keeping")
    assert keeps.grown == 0 and keeps.grown_error == 0


def test_text(command: Command, held: Process) -> None:
    held.ask("keep")
    held.ask("pin")
    done = command("sheet", "--sites", "--top", 1, held.pid)
    assert done.returncode == 0, done.stderr
    assert re.search(r"MiB +[\d.]+ [KM]iB +[\d.]+  keeping \(held\.c:\d+\)\n +keep \(", done.stdout)
    assert "sites that grew most" not in done.stdout
    assert re.search(r"\n +240( +[\d.]+){2}( +\d+){2}\n +\d+% ± \d+%  lasting \(", done.stdout)
    assert "passing" not in done.stdout


def test_without_a_profile(command: Command, plant: Process) -> None:
    plant.ask("live")
    done = command("sheet", "--sites", plant.pid)
    assert done.returncode == 0 and done.stderr == ""
    assert "\nsites: none are known, since no heap profile was on" in done.stdout
    assert f"'hakmem set {plant.pid} profile=on'" in done.stdout
    assert sites(command, plant.pid)["sites"]["sites"] == []


def test_what_is_wrong(command: Command, plant: Process) -> None:
    for words, status in (
        (["--sites", "/etc/passwd"], 2),
        (["--seconds", "-1", str(plant.pid)], 2),
        (["--top", "0", str(plant.pid)], 2),
        (["--sites", str(2**22 + 1)], 2),
        (["--sites", str(os.getpid())], 1),
    ):
        done = command("sheet", *words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1), done


@pytest.mark.parametrize("seed", range(16))
def test_one_that_means_to_mislead(command: Command, programs: Path, seed: int) -> None:
    with running(programs / "watch_hostile", str(seed)) as process:
        for form in [], ["--json"]:
            done = command("sheet", "--sites", *form, process.pid)
            assert done.returncode in (0, 1), done
            assert done.stderr.count("\n") <= 1 and "Traceback" not in done.stderr
            assert "\x1b" not in done.stdout + done.stderr
            assert bool(done.stdout) == (done.returncode == 0)


def test_in_top(command: Command, held: Process) -> None:
    held.ask("keep")
    with on_screen(command, str(held.pid), columns=100, lines=50) as (screen, child):
        screen.shows("processes on hakmem: 1")
        screen.press("a")
        screen.shows("sites that hold most", anew=True)
        screen.shows("keeping (held.c", anew=True)
        screen.shows("sites that grew most, in ", anew=True)
        held.ask("grow")
        screen.shows("growing (held.c", anew=True)
        screen.press("\r")  # its sheet, and back
        screen.shows("processes on hakmem: 1", anew=True)
        screen.press("a")
        screen.shows("growing (held.c", anew=True)
        screen.press("\x1b")
        screen.shows("processes on hakmem: 1", anew=True)
        screen.press("\r")
        screen.shows("free blocks in thread caches", anew=True)
        screen.press("q")
        assert os.waitpid(child, 0)[1] == 0


def test_in_top_without_a_profile(command: Command, plant: Process) -> None:
    with on_screen(command, str(plant.pid), columns=100, lines=30) as (screen, _):
        screen.shows("processes on hakmem: 1")
        screen.press("a")
        screen.shows("sites: none are known", anew=True)


def test_while_it_works(command: Command, programs: Path, library: Path) -> None:
    """Samples come and go in 8 threads while they are read: no nonsense, and soon."""
    with subprocess.Popen(
        [
            programs.parent / "stress/stress_fork",
            "--threads",
            "8",
            "--forks",
            "1000000",
            "--timeout",
            "300",
        ],
        env=os.environ
        | {
            "LD_PRELOAD": str(library),
            "HAKMEM_PROFILE": "on",
            "HAKMEM_PROFILE_RATE": "1K",
            "HAKMEM_PROFILE_SAMPLES": "0",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as stress:
        try:
            seen = 0
            for _ in range(100):
                done = command("sheet", "--json", "--sites", stress.pid)
                # It changes between the two walks over the sites, now and then.
                assert done.returncode == 0 or "changed while it was being read" in done.stderr
                if done.returncode != 0:
                    continue
                said = json.loads(done.stdout)
                found = said["requested"]
                assert found is None or 0 <= found["bytes"] <= said["live"]
                seen += any(one["in_use"] > 0 for one in said["sites"]["sites"])
                if seen >= 5:
                    break
            assert stress.poll() is None, "it goes on"
            assert seen > 0
        finally:
            stress.kill()
            stress.wait(SECONDS)
