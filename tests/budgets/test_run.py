"""Budgets of a run: what is said, and with which status it ends."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.budgets.conftest import Hakmem
from tests.ran import ran
from tests.watch.watched import Command

EXCEEDED = 122
LINE = re.compile(r"hakmem run: budgets_plant \(([0-9]+)\): (.*)")
ALL = ("--max-peak=40M", "--max-leaked", "2000", "--max-allocations=1e5")


@pytest.fixture
def plant(programs: Path) -> Path:
    program = programs / "budgets_plant"
    if not program.exists():
        pytest.skip("there is no C++ compiler")
    return program


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    lines = [LINE.fullmatch(line) for line in done.stderr.splitlines()]
    return [line[2] for line in lines if line is not None]


def read(path: Path, program: str) -> dict[str, tuple[str, str] | None]:
    """By name, what is said of a case: failure or error, and its message."""
    suite = ElementTree.parse(path).getroot().find("testsuite")
    assert suite is not None
    found: dict[str, tuple[str, str] | None] = {}
    for case in suite.iter("testcase"):
        assert case.get("classname") == f"hakmem.{program}"
        said = [(one.tag, one.get("message", "")) for one in case]
        found[case.get("name", "")] = said[0] if said else None
    assert suite.get("tests") == str(len(found))
    for kind in "failure", "error":
        count = sum(one is not None and one[0] == kind for one in found.values())
        assert suite.get(f"{kind}s") == str(count)
    return found


def cases(path: Path) -> dict[str, str | None]:
    """By name, what failed in it; there is no error."""
    found = read(path, "budgets_plant")
    assert not [one for one in found.values() if one is not None and one[0] == "error"]
    return {name: one and one[1] for name, one in found.items()}


def errors(path: Path, program: str = "budgets_plant") -> set[str]:
    """Of all cases, of which none has passed or failed."""
    found = list(read(path, program).values())
    assert found and all(one is not None and one[0] == "error" for one in found), found
    return {one[1] for one in found if one is not None}


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
    assert done.returncode == 125
    (error,) = errors(tmp_path / "all.xml")
    assert error.endswith(": it did not use hakmem when it ended")
    assert "no process was checked" in done.stderr
    # A process that is not on hakmem is no error where others were checked.
    script = f"{plant} churn; exec env -u LD_PRELOAD true"
    done = hakmem("run", "--max-peak=1G", "--junit=all.xml", "sh", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    assert read(tmp_path / "all.xml", "true") == {"--max-peak": None}


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_closed_streams(closed: str, hakmem: Hakmem, plant: Path, command: Command) -> None:
    """What is said there must not be read as what the tracer tells."""
    for limit, status in ("1G", 0), ("1", EXCEEDED):
        words = ("/bin/sh", command.path, "run", f"--max-peak={limit}", plant, "churn")
        line = shlex.join(map(str, words))
        done = subprocess.run(["sh", "-c", f"{line} {closed}"], capture_output=True, timeout=120)
        assert done.returncode == status, done


def test_the_processes_of_another_namespace(hakmem: Hakmem, plant: Path, command: Command) -> None:
    """In /proc, where the program's number is somebody else's."""
    apart = ["unshare", "--pid", "--fork", "--kill-child"]
    if os.geteuid() != 0:
        apart.insert(1, "--map-root-user")
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"]).returncode != 0:
        pytest.skip("PID namespaces are not permitted")
    words = ("/bin/sh", command.path, "run", "--max-peak=1G", plant, "churn")
    done = ran(*apart, *map(str, words))
    assert done.returncode == 125 and "another PID namespace" in done.stderr, done


def test_junit_of_a_program_that_a_signal_ends(hakmem: Hakmem, plant: Path, tmp_path: Path) -> None:
    """No case passes, since the program did not do what is to be checked."""
    words = ("--max-peak=24M", "--max-allocations=1e5", "--junit=all.xml", plant)
    done = hakmem("run", *words, "churn", "kill")
    assert done.returncode == -signal.SIGKILL
    (error,) = errors(tmp_path / "all.xml")
    pid = re.search(r"budgets_plant \(([0-9]+)\)", done.stderr)
    assert pid is not None
    assert error == (f"budgets_plant ({pid[1]}): it was ended by SIGKILL, so its memory is gone")
    assert f"{error.partition(': ')[0]}: its budgets are not checked: " in done.stderr
    done = hakmem("run", *words, "churn", "abort")
    assert done.returncode == -signal.SIGABRT
    (error,) = errors(tmp_path / "all.xml")
    assert re.fullmatch(r"budgets_plant \(\d+\): ended by SIGABRT", error)
    done = hakmem("run", *words, "hoard", "abort")
    assert done.returncode == -signal.SIGABRT
    found = read(tmp_path / "all.xml", "budgets_plant")
    peak, allocations = found["--max-peak"], found["--max-allocations"]
    assert peak is not None and peak[0] == "failure" and "more than --max-peak" in peak[1]
    assert allocations is not None and allocations[0] == "error" and "SIGABRT" in allocations[1]


def test_junit_of_a_run_that_is_stopped(hakmem: Hakmem, plant: Path, tmp_path: Path) -> None:
    """From its begin on the file says that nothing is checked."""
    words = ("--max-peak=1G", "--max-leaked=0", "--junit=all.xml")
    for program, status in (('nowhere<&">', 127), ("./nowhere", 127)):
        (tmp_path / "all.xml").write_text("of an earlier run")
        done = hakmem("run", *words, program)
        assert done.returncode == status
        name = program.removeprefix("./").translate(str.maketrans('<&">', "????"))
        (error,) = errors(tmp_path / "all.xml", name)
        assert error.startswith("not checked: ")
    # The process that checks is ended; then nothing of the program is known.
    script = "kill -KILL $(sed -n 's/^TracerPid:.//p' /proc/$$/status)"
    done = hakmem("run", *words, "sh", "-c", script)
    assert done.returncode == 125 and "the process that does it was ended" in done.stderr
    (error,) = errors(tmp_path / "all.xml", "sh")
    assert error.startswith("not checked: ")


def test_with_leaks(hakmem: Hakmem, plant: Path, tmp_path: Path) -> None:
    """One run says what is lost, and what exceeds a budget."""
    words = ("--leaks", "--leaks-status=7", plant, "hoard", "forget")
    done = hakmem("run", "--max-peak=24M", *words)
    assert done.returncode == EXCEEDED
    exceeded, lost = said(done)
    assert re.match(r"3\d\.\d MiB in use at once: ", exceeded)
    assert re.fullmatch(r"lost 1000 B in 1 block; reachable .*", lost)
    assert re.search(r"^ +1000 B +1 +0 B +0  forget\(\) \(plant\.cc:\d+\)$", done.stderr, re.M)
    done = hakmem("run", "--max-peak=40M", "--junit=all.xml", *words)
    assert (done.returncode, len(said(done))) == (7, 1)
    assert cases(tmp_path / "all.xml") == {"--max-peak": None}
    done = hakmem("run", "--max-leaked=10", "--leaks=x.leaks", plant, "forget")
    assert done.returncode == EXCEEDED and len(said(done)) == 2
    assert said(done)[1].endswith("; see 'hakmem leaks x.leaks'")
    assert hakmem("leaks", "--status=3", "x.leaks").returncode == 3
    (tmp_path / "known").write_text("leak:forget\n")
    known = ("--max-leaked=0", "--leaks", "--leaks-status=7", "--leaks-suppressions=known")
    done = hakmem("run", *known, plant, "forget")
    (only,) = said(done)
    assert done.returncode == 0
    assert only.startswith("nothing is lost; suppressed 1000 B in 1 block; reachable ")
    # Of other processes only what is lost is said.
    done = hakmem("run", "--max-peak=40M", "--leaks", plant, "fork", "churn")
    (only,) = said(done)
    assert done.returncode == 0 and only.startswith("nothing is lost; reachable ")


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
        (["--max-peak=1M", "--leaks-suppressions=x"], "x: cannot be read"),
    ],
)
def test_wrong_use(words: list[str], line: str, hakmem: Hakmem) -> None:
    done = hakmem("run", *words, "true")
    assert done.returncode == 125
    assert line in done.stderr and done.stderr.count("\n") == 1
