"""hakmem compare, on programs and allocators that are made worse by a known amount.

What must be found is made so large that a busy machine can't hide it; how often a comparison of an
allocator with itself cries wolf amid simulated noise is test_stats.py's.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hakmem_yardstick.model import results_of
from yardstick.tests import made
from yardstick.tests.made import Compare

TURNS = "100000"


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.program(tmp_path_factory.mktemp("work"))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("allocators")


@pytest.fixture
def compare(library: Path, tmp_path: Path) -> Compare:
    return Compare(library.parent / "bin" / "hakmem", tmp_path)


def test_an_allocator_against_itself(compare: Compare, work: Path) -> None:
    files = ["--json", "runs.json", "--markdown", "table.md", "--html", "page.html"]
    said = compare("--rounds", "8", *files, "hakmem", "hakmem", program=[work, TURNS])
    assert said.status == 0, said.err
    assert "hakmem#2 against hakmem: " in said.out
    assert "8 rounds; as many rounds as asked for" in said.out

    results = results_of(compare.json())
    orders = {}
    for number in range(8):
        runs = [run for run in results.runs if run.round == number]
        assert sorted(run.allocator for run in runs) == ["hakmem", "hakmem#2"]
        orders[number] = [run.allocator for run in runs]
        assert [run.position for run in runs] == [0, 1]
        for run in runs:
            assert 0 < run.values["cpu"] <= 2 * run.values["time"] + 0.2
            assert run.values["peak"] > 1000
            assert run.values["faults"] > 100
    peaks = [[r.values["peak"] for r in results.of("program", n).values()] for n in results.names()]
    assert abs(sum(peaks[0]) / sum(peaks[1]) - 1) < 0.1
    assert results.settings["seed"] is not None and results.machine["processors"]
    assert results.settings["command_line"][:4] == ["hakmem", "compare", "--rounds", "8"]

    markdown = (compare.folder / "table.md").read_text()
    figure = r"[\d.\u202f]+ \S+"  # of a busy machine 1 010 ms, beside 990
    assert re.search(rf"^\| time \| {figure} \| {figure} \| \d\.\d+ \| ", markdown, re.M)
    page = (compare.folder / "page.html").read_text()
    assert page.count("<svg") >= 1 and "Paired ratios" in page
    assert not re.search(r"src=|href=\"(?!data:,|#)|@import|url\((?!#)", page)


def test_a_slower_allocator_is_found(compare: Compare, work: Path, folder: Path) -> None:
    """Slower by far more than a busy machine makes it; all else is left out of the verdict."""
    same, slow = made.bad(folder, "same"), made.bad(folder, "slow", TURNS=9000)
    options = ["--rounds", "8", "--measures", "cpu", "--fail-if-worse"]
    said = compare(*options, f"base={same}", f"slow={slow}", program=[work, TURNS])
    assert said.status == 1, said.out + said.err
    assert "slow against base: worse in cpu time." in said.out
    turned = compare(*options, f"slow={slow}", f"base={same}", program=[work, TURNS])
    assert turned.status == 0, turned.out + turned.err
    assert "base against slow: better in cpu time." in turned.out


def test_more_memory_is_found(compare: Compare, work: Path, folder: Path) -> None:
    same, fat = made.bad(folder, "same"), made.bad(folder, "fat", KIB=4096)
    options = ["--rounds", "10", "--measures", "peak,faults", "--json", "runs.json"]
    said = compare(*options, f"base={same}", f"fat={fat}", program=[work, TURNS])
    assert said.status == 0, said.err
    assert "fat against base: worse in peak memory and page faults." in said.out
    results = results_of(compare.json())
    more = [
        results.of("program", "fat")[number].values["peak"] - run.values["peak"]
        for number, run in results.of("program", "base").items()
    ]
    assert 3500 < sorted(more)[len(more) // 2] < 4700


def test_settings_reach_the_program(compare: Compare) -> None:
    """Each allocator's run writes its environment to the same file."""
    program: list[str | Path] = ["sh", "-c", "env"]
    words = ["hakmem", "hakmem+keep_bytes=16M", "glibc+MALLOC_ARENA_MAX=1"]
    said = compare("--rounds", "1", "--output", "out", *words, program=program)
    assert said.status == 0, said.err
    assert "note: to show anything of " in said.out
    said_by_all = (compare.folder / "out").read_text()
    assert said_by_all.count("HAKMEM_KEEP_BYTES=16M") == 1
    assert said_by_all.count("MALLOC_ARENA_MAX=1") == 1
    assert "1 rounds" in said.out and "too few rounds" in said.out


def test_setup_prepare_input_and_folder(compare: Compare) -> None:
    (compare.folder / "in").write_text("from the file\n")
    (compare.folder / "there").mkdir()
    said = compare(
        *("--setup", "echo s >> log", "--prepare", "echo p >> log", "--stdin", "in"),
        *("--cd", "there", "--output", "out", "--rounds", "2", "glibc", "hakmem"),
        program=["sh", "-c", "cat; pwd"],
    )
    assert said.status == 0, said.err
    # One first run on each, and two rounds of two.
    assert (compare.folder / "there" / "log").read_text() == "s\n" + "p\n" * 6
    lines = (compare.folder / "out").read_text().splitlines()
    assert lines == ["from the file", str(compare.folder / "there")] * 4


def test_a_crash_on_one_side_is_told(compare: Compare, work: Path, folder: Path) -> None:
    crashing = made.bad(folder, "crashing", AFTER=50000)
    words = ["--rounds", "6", "--json", "runs.json", "glibc", f"bad={crashing}", "hakmem"]
    said = compare(*words, program=[work, TURNS])
    assert said.status == 4
    assert "the program failed on bad, in round 1: SIGABRT" in said.err
    assert "bad: this malloc gives up" in said.err
    assert "hakmem against glibc: " in said.out and "bad against" not in said.out
    assert [r["allocator"] for r in compare.json()["runs"]].count("bad") == 1


@pytest.mark.parametrize(
    ("option", "way", "expected"),
    [
        ((), "fail", "exit 3: exit status 3: work: it was told to fail"),
        (("--timeout", "1.5"), "hang", "hang"),
        (("--check-output",), "differ", "standard output differs from the first run's in line 1"),
    ],
)
def test_failures_are_told(
    compare: Compare, work: Path, option: tuple[str, ...], way: str, expected: str
) -> None:
    said = compare(*option, "--rounds", "2", "glibc", "hakmem", program=[work, "100", way])
    assert said.status == 4
    assert expected in said.err


def test_an_exit_status_may_be_ignored(compare: Compare, work: Path) -> None:
    options = ["--ignore-exit-status", "--check-output", "--rounds", "2"]
    said = compare(*options, "glibc", "hakmem", program=[work, "100", "fail"])
    assert said.status == 0, said.err


def test_where_no_allocator_can_be_put_is_refused(compare: Compare, work: Path) -> None:
    static = made.program(compare.folder, "-static")
    said = compare("glibc", "hakmem", program=[static, "10"])
    assert said.status == 3
    assert "is not active: it is linked statically" in said.err
    lost = compare("glibc", "hakmem", program=["env", "-i", work, "10"])
    assert lost.status == 3
    assert "hakmem is not active: LD_PRELOAD was taken away before it started" in lost.err


def test_a_part_in_which_it_is_not_active_is_named(compare: Compare, work: Path) -> None:
    program: list[str | Path] = ["sh", "-c", f"{work} 1000; env -i {work} 1000"]
    said = compare("--rounds", "1", "glibc", "hakmem", program=program)
    assert said.status == 0, said.err
    assert "note: hakmem is not active in 1 of the programs started, such as" in said.out


def test_an_interrupt_keeps_what_was_measured(compare: Compare, work: Path) -> None:
    words = ["--rounds", "100000", "--output", "out", "--json", "runs.json", "glibc", "hakmem"]
    running = compare.started(*words, program=[work, "1000"])
    give_up = time.monotonic() + 300
    out = compare.folder / "out"
    while time.monotonic() < give_up and (not out.exists() or out.read_text().count("\n") < 20):
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    text, err = running.communicate(timeout=300)
    assert running.returncode == 130, err
    assert "hakmem against glibc: " in text and "interrupted" in text
    record = compare.json()
    assert record["interrupted"] and len(record["runs"]) >= 19


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_it_ends_the_program_too(compare: Compare, number: signal.Signals) -> None:
    """Which is in a session of its own, and would go on."""
    pids = compare.folder / "pids"
    # The first run on each, which is not measured, ends at once.
    script = f'echo $$ >>{pids}; [ "$(wc -l <{pids})" -lt 3 ] || exec sleep 600'
    words = ["--json", "runs.json", "glibc", "hakmem"]
    running = compare.started(*words, program=["sh", "-c", script])
    give_up = time.monotonic() + 300
    while time.monotonic() < give_up and not (pids.exists() and len(lines(pids)) == 3):
        time.sleep(0.05)
    running.send_signal(number)
    _, err = running.communicate(timeout=300)
    assert running.returncode == 128 + number, err
    assert compare.json()["interrupted"]
    assert not Path(f"/proc/{lines(pids)[2]}").exists()


def test_what_it_leaves_behind_is_killed(compare: Compare) -> None:
    """By the first run on each, too."""
    pids = compare.folder / "pids"
    pids.touch()
    start = f"n=$(wc -l <{pids}); setsid sh -c 'echo $$ >>{pids}; exec sleep 600' &"
    wait = f'until [ "$(wc -l <{pids})" -gt $n ]; do sleep 0.01; done'
    said = compare("--rounds", "1", "glibc", "hakmem", program=["sh", "-c", f"{start} {wait}"])
    assert said.status == 0, said.err
    assert len(lines(pids)) == 4
    assert [pid for pid in lines(pids) if Path(f"/proc/{pid}").exists()] == []


def lines(file: Path) -> list[str]:
    return file.read_text().split()


def test_output_is_kept_byte_by_byte(compare: Compare) -> None:
    """Not as text; and one that differs in what is no text differs."""
    out = compare.folder / "out"
    program: list[str | Path] = ["printf", r"\377\376 no text\n"]
    said = compare("--rounds", "1", "--output", "out", "glibc", "hakmem", program=program)
    assert said.status == 0, said.err
    assert out.read_bytes() == b"\xff\xfe no text\n" * 2
    count = 'echo >>n; if [ $(wc -l <n) -gt 3 ]; then printf "\\376"; else printf "\\377"; fi'
    differs = compare(
        "--rounds", "1", "--check-output", "glibc", "hakmem", program=["sh", "-c", count]
    )
    assert differs.status == 4
    assert r"'\\xfe', not '\\xff'" in differs.err


@pytest.mark.parametrize(
    ("words", "program", "expected"),
    [
        (("--setup", "exit 7", "glibc", "hakmem"), ["true"], "--setup 'exit 7': exit status 7"),
        (("--output", "/dev/full", "glibc", "hakmem"), ["env"], "--output /dev/full: No space"),
    ],
)
def test_what_fails_before_the_first_run(
    compare: Compare, words: tuple[str, ...], program: list[str | Path] | None, expected: str
) -> None:
    said = compare(*words, program=program)
    assert said.status == 2
    assert expected in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("words", "following"),
    [
        ("compare --rounds 8 --measures time glibc hakmem -- true", "next: 'hakmem tune -- true'"),
        ("bench --rows pair-64 --vs glibc --rounds 1 --scale 0.01 --out here",
         "next: open here/report.html in a browser"),
    ],
)  # fmt: skip
def test_a_terminal_sees_how_far_it_is_and_what_to_do_next(
    compare: Compare, words: str, following: str
) -> None:
    done = subprocess.run(
        ["script", "-qec", f"stty cols 120; {compare.hakmem} {words}", "/dev/null"],
        cwd=compare.folder,
        env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d+ of about \d+ runs, \d+ \w+ left", done.stdout)
    assert done.stdout.splitlines()[-1].startswith(following)
