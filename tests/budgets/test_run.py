"""Budgets of a run: what is said, and with which status it ends."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.budgets.conftest import Hakmem

EXCEEDED = 122
LINE = re.compile(r"hakmem run: budgets_plant \(([0-9]+)\): (.*)")
ALL = ("--max-peak=40M", "--max-leaked", "2000", "--max-allocations=1e5")


@pytest.fixture
def plant(given: Callable[[str], Path]) -> Path:
    program = given("--programs") / "budgets_plant"
    if not program.exists():
        pytest.skip("there is no C++ compiler")
    return program


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    lines = [LINE.fullmatch(line) for line in done.stderr.splitlines()]
    return [line[2] for line in lines if line is not None]


def cases(path: Path) -> dict[str, str | None]:
    """By name, what failed in it."""
    suite = ElementTree.parse(path).getroot().find("testsuite")
    assert suite is not None
    found = {}
    for case in suite.iter("testcase"):
        assert case.get("classname") == "hakmem.budgets_plant"
        failure = case.find("failure")
        found[case.get("name", "")] = None if failure is None else failure.get("message")
    assert suite.get("tests") == str(len(found))
    assert suite.get("failures") == str(sum(one is not None for one in found.values()))
    return found


def test_within(hakmem: Hakmem, plant: Path, tmp_path: Path) -> None:
    done = hakmem("run", *ALL, "--junit=all.xml", plant, "hoard", "forget", "churn")
    assert (done.returncode, done.stderr) == (0, "")
    assert cases(tmp_path / "all.xml") == dict.fromkeys(
        ("--max-peak", "--max-leaked", "--max-allocations")
    )


@pytest.mark.parametrize(
    ("budget", "word", "line"),
    [
        (
            "--max-peak=24M",
            "hoard",
            r"(3[0-2]\.\d) MiB in use at once: \d\.\d MiB more than --max-peak permits "
            r"\(24\.0 MiB\); 30\.\d MiB by hoard\(\) \(plant\.cc:\d+\)",
        ),
        (
            "--max-leaked=0",
            "forget",
            r"1000 B lost at the end: 1000 B more than --max-leaked permits \(0 B\); "
            r"1000 B by forget\(\) \(plant\.cc:\d+\)",
        ),
        (
            "--max-allocations=5000",
            "churn",
            r"5,\d\d\d allocations: \d+ more than --max-allocations permits \(5,000\); "
            r"5,000 by churn\(\) \(plant\.cc:\d+\)",
        ),
    ],
)
def test_exceeded(
    budget: str, word: str, line: str, hakmem: Hakmem, plant: Path, tmp_path: Path
) -> None:
    more = tuple(one for one in ALL[:1] + ALL[3:] if not budget.startswith(one.partition("=")[0]))
    done = hakmem("run", budget, *more, "--junit=all.xml", plant, word)
    (only,) = said(done)
    assert re.fullmatch(line, only)
    assert done.returncode == EXCEEDED
    failed = {name: why for name, why in cases(tmp_path / "all.xml").items() if why is not None}
    assert list(failed) == [budget.partition("=")[0]]
    assert only in failed[budget.partition("=")[0]]


@pytest.mark.parametrize(("end", "status"), [("3", 3), ("abort", -signal.SIGABRT)])
def test_its_own_failure_wins(end: str, status: int, hakmem: Hakmem, plant: Path) -> None:
    done = hakmem("run", "--max-peak=1M", plant, "hoard", end)
    assert done.returncode == status
    assert len(said(done)) == 1


def test_each_process_by_itself(hakmem: Hakmem, plant: Path) -> None:
    """What a child does counts for the child, and what its parent did before does not."""
    by_child = hakmem("run", "--max-allocations=4000", plant, "fork", "churn")
    assert (by_child.returncode, len(said(by_child))) == (EXCEEDED, 1)
    limits = ("--max-allocations=4000", "--max-peak=20M")
    by_parent = hakmem("run", *limits, plant, "churn", "hoard", "fork")
    assert by_parent.returncode == EXCEEDED
    pids = {line[1] for line in map(LINE.fullmatch, by_parent.stderr.splitlines()) if line}
    assert (len(said(by_parent)), len(pids)) == (2, 1)
    with_parent = hakmem("run", "--max-allocations=6000", plant, "churn", "fork", *2 * ["churn"])
    (line,) = said(with_parent)
    assert re.match("10,000 allocations: .*; with those of its parent .* 15,000 by churn", line)
    halves = hakmem("run", "--max-allocations=9000", plant, "churn", "fork", "churn")
    assert (halves.returncode, halves.stderr) == (0, "")


def test_counts_what_threads_allocate_during_forks(hakmem: Hakmem, plant: Path) -> None:
    (line,) = said(hakmem("run", "--max-allocations=1000", plant, "storm"))
    assert re.match(r"80,0\d\d allocations: ", line)


def test_suppressed(hakmem: Hakmem, plant: Path, tmp_path: Path) -> None:
    (tmp_path / "known").write_text("leak:forget\n")
    done = hakmem("run", "--max-leaked=0", "--leaks-suppressions=known", plant, "forget")
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "and another").write_text("leak:none_of_these\n")
    for files in (["known", "and another"], ["and another", "known"]):
        words = [f"--leaks-suppressions={file}" for file in files]
        done = hakmem("run", "--max-leaked=0", *words, plant, "forget")
        assert (done.returncode, done.stderr) == (0, "")


def test_that_nothing_was_checked_is_a_failure(hakmem: Hakmem, plant: Path, tmp_path: Path) -> None:
    (tmp_path / "all.xml").write_text("of an earlier run")
    words = ("--max-peak=1G", "--junit=all.xml", "env", "-u", "LD_PRELOAD", plant)
    done = hakmem("run", *words)
    assert done.returncode == 125 and not (tmp_path / "all.xml").exists()
    assert "no process was checked" in done.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--max-peak=20x"], "--max-peak: expected a size in bytes or with K, M or G"),
        (["--max-leaked="], "--max-leaked: expected a value after it"),
        (["--max-leaked=-1"], "--max-leaked=-1: expected a number"),
        (["--max-allocations=1M"], "--max-allocations: expected a number of calls"),
        (["--max-allocations=1,5"], "--max-allocations=1,5: expected a number"),
        (["--junit=x.xml"], "--junit needs --max-peak"),
        (["--max-peak=1M", "--junit=no/x.xml"], "--junit: no: there is no such folder"),
        (["--max-peak=1M", "--leaks"], "--leaks and budgets can't be combined"),
        (["--max-peak=1M", "--leaks-suppressions=x"], "x: cannot be read"),
    ],
)
def test_wrong_use(words: list[str], line: str, hakmem: Hakmem) -> None:
    done = hakmem("run", *words, "true")
    assert done.returncode == 125
    assert line in done.stderr and done.stderr.count("\n") == 1
