"""`hakmem why`: of memory that is planted in a process, the first reason names it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.watch.watched import Command, Process, running


def why(command: Command, pid: int, *words: str) -> dict[str, Any]:
    done = command("why", "--json", *words, pid)
    assert (done.returncode, done.stderr) == (0, ""), done
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("live", "held"),
        ("holes", "fragmentation"),
        ("slices", "free_kept"),
        ("kept", "large_kept"),
        ("sleepers", "thread_caches"),
        ("anonymous", "other_allocator"),
        ("reserved", "other_allocator"),
        ("file", "files"),
        ("stack", "stacks"),
        ("huge_pages", "huge_pages"),
    ],
)
def test_planted(command: Command, plant: Process, kind: str, name: str) -> None:
    planted = plant.ask(kind)
    if kind == "huge_pages" and "[never]" in Path(
        "/sys/kernel/mm/transparent_hugepage/enabled"
    ).read_text("latin-1"):
        pytest.skip("the kernel gives no huge pages")
    said = why(command, plant.pid)
    first = said["reasons"][0]
    assert first["name"] == name
    assert 0.9 * planted <= first["bytes"] <= 1.1 * planted + 2 * 2**20
    text = command("why", plant.pid).stdout.splitlines()
    assert re.match(r"watch_plant \(PID \d+\): [0-9.]+ MiB resident; the program holds ", text[0])
    assert text[1].startswith("1. ") and text[2].startswith("   do: ")
    assert len(text) <= 12


def test_what_it_holds_is_a_reason_like_the_others(command: Command, plant: Process) -> None:
    """By its size, also where it is less than most of the memory."""
    plant.ask("live")
    plant.ask("anonymous")
    names = [one["name"] for one in why(command, plant.pid)["reasons"]]
    assert names[:2] == ["held", "other_allocator"], names


def test_what_brings_nothing_is_not_offered(command: Command, plant: Process) -> None:
    """Caches that are small, of many threads."""
    plant.ask("caches")
    reasons = {one["name"]: one for one in why(command, plant.pid)["reasons"]}
    assert all(one["brings"] is None or one["brings"] > 0 for one in reasons.values()), reasons


def test_rounding(command: Command, programs: Path, library: Path) -> None:
    """Which samples of a heap profile know."""
    many = {"HAKMEM_PROFILE_RATE": "16K", "HAKMEM_PROFILE_SAMPLES": "1000000"}
    with running(programs / "watch_plant", library=library, HAKMEM_PROFILE="on", **many) as plant:
        planted = plant.ask("rounding")
        reasons = why(command, plant.pid)["reasons"]
    found = {one["name"]: one["bytes"] for one in reasons[:2]}
    assert 0.8 * planted <= found["rounding"] <= 1.2 * planted


def test_swap(command: Command, plant: Process) -> None:
    plant.ask("swapped")
    said = why(command, plant.pid)
    if said["swapped"] == 0:
        pytest.skip("nothing was swapped: the system has no swap")
    assert said["reasons"][0]["name"] == "swap"


def test_tries(command: Command, programs: Path, library: Path) -> None:
    """The sleeping threads let hakmem's own return memory, which the program kept."""
    with running(programs / "watch_plant", library=library) as plant:
        plant.ask("caches")
        plant.ask("kept")
        said = why(command, plant.pid, "--try")
    assert said["reasons"][0]["name"] == "large_kept"
    brought = said["resident"] - said["tried"]["resident"]
    assert brought >= 0.9 * said["reasons"][0]["brings"]


def test_grows(command: Command, plant: Process) -> None:
    done = command("why", "--seconds", "0", plant.pid)
    assert "the blocks in use did not grow" in done.stdout
