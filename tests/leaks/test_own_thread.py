"""A program with threads has a thread of hakmem in it, for which libc allocates. That is no part of
the program: neither a search for leaks nor a profile nor a recording has it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hakmem import heap_profile, symbols
from tests.leaks.searched import Run

OWN = ("libhakmem", "scavenge")


@pytest.fixture
def threads(run: Run) -> Path:
    return run.programs / "leaks_threads"


@pytest.mark.parametrize("words", [[], ["fork"]], ids=["one", "fork"])
@pytest.mark.parametrize("options", [[], ["--hardened"]], ids=str)
def test_leaks(options: list[str], words: list[str], run: Run, threads: Path) -> None:
    """What is reachable was allocated by the program's calls of pthread_create."""
    ended = run("--leaks=x.leaks", *options, threads, *words)
    assert ended.status == 0 and "nothing is lost" in ended.err, ended
    shown = run.command("leaks", "--reachable", "--depth", "64", "x.leaks").out
    assert not [line for line in shown.splitlines() if any(own in line for own in OWN)], shown
    assert "pthread_create" in shown and "(no stack)" not in shown, shown


def test_profile(run: Run, threads: Path) -> None:
    every = ("-o", "profile_rate=1", "-o", "profile_samples=0")
    ended = run.command("run", *every, "--profile=x.heap", threads)
    assert (ended.status, ended.err) == (0, "")
    named = symbols.named(heap_profile.read(run.folder / "x.heap"))
    frames = [line.function for stack in named.stacks for line in stack.lines()]
    assert frames and not [name for name in frames if any(own in name for own in OWN)]


@pytest.mark.parametrize("words", [[], ["fork"]], ids=["one", "fork"])
def test_recording(words: list[str], run: Run, threads: Path) -> None:
    """Each free in it is of a block that it has, and a child's may be of the parent's."""
    ended = run.command("record", "-o", "x.recording", "--", threads, *words)
    assert ended.status == 0, ended
    shown = run.command("trace", "x.recording")
    if words:
        parent = re.search(r"^ +([0-9]+) +0\.00 ", shown.out, re.MULTILINE)
        assert parent is not None, shown
        shown = run.command("trace", "--process", parent[1], "x.recording")
    assert shown.status == 0, shown
    assert re.search(r"[0-9,]+ calls in .* by 97 threads", shown.out), shown.out
    assert "from before the recording" not in shown.out
    assert not [line for line in shown.out.splitlines() if any(own in line for own in OWN)]


def test_what_is_the_program_s(run: Run) -> None:
    """Blocks of its threads, and of its own calls of pthread_create, are there."""
    ended = run("--leaks=x.leaks", run.programs / "leaks_plant", "keep", "one")
    assert "lost 100 B in 1 block" in ended.err
    shown = run.command("leaks", "--reachable", "--depth", "64", "x.leaks").out
    assert "pthread_create" in shown and "kept_by_stack" in shown
