"""What runs the benchmarks: one run with all its processes, the order of runs, sessions that crash,
hang, are interrupted and go on."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hakmem_yardstick import measure as measure_module
from hakmem_yardstick import suite as suite_module
from hakmem_yardstick.machine import processors_worth
from hakmem_yardstick.measure import children, measure
from hakmem_yardstick.model import OURS, Allocator, Kind, Measure, Results, Row, Run, results_of
from hakmem_yardstick.schedule import GIVEN_UP, PLANS, Plan, Schedule
from hakmem_yardstick.store import CannotStore, Store
from tests import inside
from yardstick.tests import made
from yardstick.tests.made import IN_THE_SUITE, average

SECONDS = 300
MIB = 1024

# ---- one run ----


def run(*words: str, timeout: float = SECONDS, **more: Any) -> Any:
    return measure(words, dict(os.environ), timeout=timeout, **more)


def test_a_run_is_measured() -> None:
    busy = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    done = run(sys.executable, "-c", f"{busy}\nprint('said')")
    assert (done.outcome, done.stdout, done.left_behind) == ("ok", "said\n", 0)
    assert 0.2 <= done.cpu_seconds < 2
    assert done.seconds >= 0.2
    assert done.minor_faults > 100


def test_the_peak_is_the_programs_own() -> None:
    """And not that of this interpreter, which the kernel hands on to what is forked from it."""
    mine = bytearray(64 << 20)
    assert run("true").peak_kib < 16 * MIB < len(mine) // 1024
    assert run(sys.executable, "-c", "b = bytearray(80 << 20)").peak_kib > 80 * MIB


def test_an_allocator_is_loaded_once_in_the_time(compiled: Callable[[str, str], Path]) -> None:
    """Once by the program, and once by what starts it, which is not in the time. A load takes two
    seconds, and half a load is room enough: the time begins a moment after the program does."""
    slow = "#include <unistd.h>\n__attribute__((constructor)) static void load(void) { sleep(2); }"
    variables = {**os.environ, "LD_PRELOAD": str(compiled("slow", slow))}
    began = time.perf_counter()
    done = measure(["true"], variables, timeout=SECONDS)
    assert 1 <= done.seconds < time.perf_counter() - began - 1


@pytest.mark.parametrize(
    ("script", "timeout", "outcome", "detail"),
    [
        ("exit 3", SECONDS, "exit 3", "exit status 3"),
        ("echo why >&2; kill -SEGV $$", SECONDS, "SIGSEGV", "ended by SIGSEGV: why"),
        ("sleep 600", 1.0, "hang", "not done after"),
    ],
)
def test_how_a_run_ends_badly(script: str, timeout: float, outcome: str, detail: str) -> None:
    done = run("sh", "-c", script, timeout=timeout)
    assert done.outcome == outcome
    assert done.detail.startswith(detail)
    assert children(os.getpid()) == []


def test_no_such_program() -> None:
    with pytest.raises(FileNotFoundError, match="no such program"):
        run("hakmem-there-is-none")


def test_what_is_left_behind_is_killed(tmp_path: Path) -> None:
    """Even in a session of its own, with its parent gone."""
    pids = tmp_path / "pids"
    start = f"setsid sh -c 'echo $$ >>{pids}; exec sleep 600' &"
    wait = f'until [ -e {pids} ] && [ "$(wc -l <{pids})" = 2 ]; do sleep 0.01; done'
    done = run("sh", "-c", f"{start} {start} {wait}")
    assert (done.outcome, done.left_behind) == ("ok", 2)
    left = pids.read_text().split()
    assert len(left) == 2
    for pid in left:
        assert not Path(f"/proc/{pid}").exists()
    assert children(os.getpid()) == []


def test_processor_time_of_orphans_counts(tmp_path: Path) -> None:
    end = tmp_path / "end"
    busy = f"import time\nwhile time.process_time() < 0.3: pass\nopen('{end}', 'w')"
    # A process of this one's own is none of the run's.
    own = subprocess.Popen(["sleep", "60"])
    try:
        wait = f"until [ -e {end} ]; do sleep 0.05; done"
        done = run("sh", "-c", f'(python3 -c "{busy}" & ); {wait}')
        assert done.cpu_seconds >= 0.3
        assert own.poll() is None
    finally:
        own.kill()
        own.wait()


def test_only_the_end_of_the_output_is_kept() -> None:
    done = run("sh", "-c", "yes | head -n 500000; echo end", keep_bytes=1000)
    assert len(done.stdout) == 1000
    assert done.stdout.endswith("y\nend\n")
    assert run("echo", "word", keep_output=False).stdout == ""


def test_memory_of_a_tree_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """60 MiB in one process for some samples, 40 MiB more in its child for some after those. The
    program goes on when they were taken: a busy machine takes as long as it needs."""
    taken = tmp_path / "taken"
    taken.write_text("0")
    take = measure_module._Sampler.take

    def take_and_tell(sampler: measure_module._Sampler) -> None:
        take(sampler)
        (tmp_path / "new").write_text(str(len(sampler.series)))
        (tmp_path / "new").replace(taken)  # never seen half written

    monkeypatch.setattr(measure_module._Sampler, "take", take_and_tell)
    tree = f"""
import os, time
from pathlib import Path
def taken():
    return int(Path({str(taken)!r}).read_text())
def wait_for_samples():
    until = taken() + 8
    while taken() < until:
        time.sleep(0.01)
own = bytearray(60 << 20)
wait_for_samples()
if os.fork() == 0:
    more = bytearray(40 << 20)
    wait_for_samples()
    os._exit(0)
os.wait()
"""
    empty = run(sys.executable, "-c", "import time; time.sleep(0.3)", sample=0.02).pss_peak_kib
    done = run(sys.executable, "-c", tree, sample=0.02)
    assert done.outcome == "ok"
    peak = done.pss_peak_kib / MIB
    # The interpreter itself takes some MiB, the child's own included.
    assert 100 <= peak <= 100 + 2 * empty / MIB + 2
    assert sum(kib >= 60 * MIB for _, kib in done.series) >= 14
    assert done.pss_mean_kib == pytest.approx(average(done.series, done.seconds), rel=0.01)
    times = [at for at, _ in done.series]
    assert times == sorted(times)
    assert times[-1] <= done.seconds
    # What the last sample cost more than the one before comes on top.
    assert done.sampling_seconds <= 0.02 * done.seconds


# ---- what is run next ----


def allocator(name: str, kind: Kind = Kind.PEER) -> Allocator:
    return Allocator(name, kind)


ROW = Row("r", "seed", "r", "", (Measure("time", "ns"),), ("time",))
THREE = [allocator(OURS, Kind.OURS), allocator("a"), allocator("b")]


def session(
    plan: Plan,
    rows: list[Row],
    figure: Callable[[str, int], float],
    cost: Callable[[str, str], float] = lambda row, name: 1.0,
) -> tuple[Results, float]:
    """All runs that a plan would make, by the figure of an allocator in a round, and what a run of
    a row takes with it; and how long they took."""
    results = Results(rows, THREE)
    schedule = Schedule(plan, results, 1)
    number = 0
    while number < plan.most_rounds and (now := schedule.round(number)):
        for row in now:
            for position, one in enumerate(schedule.order(row, number)):
                values = {"time": figure(one.name, number)}
                seconds = cost(row.name, one.name)
                run = Run(row.name, one.name, number, position, schedule.used, seconds)
                results.runs.append(replace(run, values=values))
                schedule.add(results.runs[-1])
        number += 1
    return results, schedule.used


def rounds(results: Results, row: str, name: str = OURS) -> int:
    return len(results.of(row, name))


def test_a_row_that_is_known_is_not_repeated() -> None:
    plan = replace(PLANS["standard"], seconds=None)

    def figure(name: str, number: int) -> float:
        return 100 + (number * 7919 % 13) * 0.01 + (name == "a")

    results, _ = session(plan, [ROW], figure)
    assert rounds(results, "r") == 10
    noisy, _ = session(plan, [ROW], lambda name, number: 100.0 + 37 * (ord(name[0]) * number % 5))
    assert rounds(noisy, "r") == plan.most_rounds


def test_time_that_is_up_ends_it() -> None:
    """With what fits, and never with less than the least rounds."""
    rows = [replace(ROW, name=f"r{n}") for n in range(4)]
    plan = replace(PLANS["standard"], seconds=100.0, least_rounds=3)
    results, used = session(plan, rows, lambda name, number: 1 + number % 3)
    assert 88 <= used <= 100
    assert {rounds(results, row.name) for row in rows} == {8, 9} - {9 if used < 97 else 0}
    short, _ = session(replace(plan, seconds=1.0), rows, lambda name, number: 1.0)
    assert {rounds(short, row.name) for row in rows} == {3}


def test_where_not_all_can_have_an_interval_the_cheap_rows_do() -> None:
    """And what cannot be carried as far is left at the least rounds, not anywhere between."""
    rows = [replace(ROW, name="dear"), replace(ROW, name="cheap")]
    plan = replace(PLANS["standard"], seconds=120.0, least_rounds=3, precision=0.0)
    results, used = session(
        plan,
        rows,
        lambda name, number: 1.0 + (number * 5 + ord(name[0])) % 7,
        lambda row, _: 10.0 if row == "dear" else 1.0,
    )
    assert rounds(results, "dear") == 3
    assert rounds(results, "cheap") >= 6
    assert used <= 120


def test_the_time_left_is_told() -> None:
    """Of the runs that are sure to come, once it is known what they take."""
    rows = [replace(ROW, name=f"r{n}") for n in range(2)]
    plan = replace(PLANS["standard"], seconds=None, least_rounds=5, most_rounds=5)
    results = Results(rows, THREE)
    schedule = Schedule(plan, results, 1)
    for number, row in (0, rows[0]), (0, rows[1]), (1, rows[0]):
        for position, one in enumerate(schedule.order(row, number)):
            schedule.add(Run(row.name, one.name, number, position, schedule.used, 2.0))
    assert schedule.used == 18
    assert schedule.seconds_left(1, rows[1:]) == 6 + 3 * 12


def test_exact_rows_run_once() -> None:
    plan = replace(PLANS["standard"], least_rounds=3, most_rounds=3)
    results, _ = session(plan, [replace(ROW, exact=True)], lambda *_: 1.0)
    assert rounds(results, "r") == rounds(results, "r", "a") == 1


@pytest.mark.parametrize(
    ("plan", "slow", "times"),
    [
        (replace(PLANS["standard"], seconds=1e6), 50.0, 3),
        # That costs much of the time for all, or of one without an end.
        (PLANS["quick"], 10.0, 1),
        (PLANS["full"], 10.0, 1),
    ],
)
def test_one_that_is_many_times_slower_is_run_less(plan: Plan, slow: float, times: int) -> None:
    plan = replace(plan, most_rounds=4)
    results, _ = session(plan, [ROW], lambda *_: 1.0, lambda _, name: slow if name == "b" else 0.2)
    assert (rounds(results, "r", "a"), rounds(results, "r", "b")) == (4, times)


def test_one_that_always_hangs_is_given_up() -> None:
    rows = [replace(ROW, name=f"r{n}") for n in range(5)]
    schedule = Schedule(PLANS["quick"], Results(rows, THREE), 1)
    a, b = THREE[1:]
    for number, row in enumerate(rows):
        expected = [f"r{n}" for n in range(3)] if number >= 3 else []
        assert schedule.hung_always(a) == expected
        assert schedule.hung_always(b) == []
        outcome = GIVEN_UP if expected else "hang"
        schedule.add(Run(row.name, "a", 0, 0, schedule.used, 1.0, outcome))
        schedule.add(Run(row.name, "b", 0, 1, schedule.used, 1.0, "hang" if number else "ok"))


# ---- sessions ----


class Bench:
    def __init__(self, command: Path, folder: Path) -> None:
        self.command, self.folder = command, folder

    def words(self, *words: str | Path) -> list[str]:
        return [str(self.command), "bench", *map(str, words)]

    def __call__(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return inside.run(*self.words(*words), seconds=SECONDS, folder=self.folder)

    def results(self, out: str) -> Results:
        return results_of(json.loads((self.folder / out / "results.json").read_text()))


@pytest.fixture
def bench(command: Path, tmp_path: Path) -> Bench:
    return Bench(command, tmp_path)


SMALL = ("--rows", "pair-64,mixed-400", "--vs", "glibc", "--scale", "0.01")


def places(runs: Iterable[Run]) -> list[tuple[int, str, int]]:
    return [(run.round, run.row, run.position) for run in runs]


def test_a_small_bench(bench: Bench) -> None:
    done = bench(*SMALL, "--rounds", "3", "--out", "here")
    assert done.returncode == 0, done.stderr
    results = bench.results("here")
    assert {a.name for a in results.allocators} == {OURS, "glibc"}
    assert len(results.runs) == 2 * 2 * 3
    for run in results.runs:
        assert run.outcome == "ok", run.detail
        for name in "time", "cpu", "peak", "resident":
            assert run.values[name] > 0
        assert run.seconds > 0
    # Rounds are outermost, then rows, and in each the order that was drawn.
    rows = [row.name for row in results.rows]
    expected = [(n, row, at) for n in range(3) for row in rows for at in range(2)]
    assert places(results.runs) == expected
    drawn = Schedule(
        Plan.of(results.settings["plan"]),
        Results(results.rows, results.allocators),
        results.settings["seed"],
    )
    for number in range(3):
        for row in results.rows:
            ran = [r.allocator for r in results.runs if (r.row, r.round) == (row.name, number)]
            assert ran == [a.name for a in drawn.order(row, number)]
    began = [run.began for run in results.runs]
    assert began == sorted(began)
    for field in "processor", "processors", "memory_kib", "load_at_start", "transparent_huge_pages":
        assert field in results.machine
    again = bench(*SMALL, "--out", "here")
    assert again.returncode == 2
    assert "--resume here" in again.stderr
    file = bench.folder / "here" / "results.json"
    shown = bench("report", file, "--out", file / "below")
    assert shown.returncode == 2
    assert re.fullmatch(r"hakmem bench: \S+: Not a directory\n", shown.stderr)


def test_peers_that_crash_hang_or_are_not_there(
    bench: Bench, compiled: Callable[[str, str], Path]
) -> None:
    crash = made.bad(bench.folder, "crash", **IN_THE_SUITE)
    hang = made.bad(bench.folder, "hang", **IN_THE_SUITE, ACTION="pause()")
    absent = compiled("absent", "int nothing;")
    rows = ["pair-64", "pair-random", "mixed-400", "batch-in-order"]  # as the suite has them
    done = bench(
        "--rows", ",".join(rows), "--scale", "0.01", "--rounds", "2", "--timeout", "5",
        "--vs", "glibc,crash,hang,absent", "--out", "here",
        *("--lib", f"crash={crash}", "--lib", f"hang={hang}", "--lib", f"absent={absent}"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = bench.results("here")
    assert [missing.name for missing in results.missing] == ["absent"]
    assert "left out: absent (not active" in done.stdout
    for row in rows:
        hangs = "given up" if row == rows[-1] else "hang"  # on three is on all
        for name, outcome in ("crash", "SIGABRT"), ("hang", hangs):
            runs = [r for r in results.runs if (r.row, r.allocator) == (row, name)]
            assert [r.outcome for r in runs] == [outcome]  # and not run again
            assert f"{row} on {name}: {outcome} (" in done.stdout
        for name in OURS, "glibc":
            assert sorted(results.of(row, name)) == [0, 1]


def test_figures_count_only_if_the_allocator_is_active(
    suite: Path, compiled: Callable[[str, str], Path]
) -> None:
    runner = suite_module.Suite(suite.parent)
    row = next(row for row in runner.rows() if row.name == "pair-64")
    absent = Allocator("absent", Kind.PEER, compiled("absent", "int nothing;"))
    outcome = runner.run(row, absent, scale=0.01, timeout=SECONDS)
    assert (outcome.outcome, dict(outcome.values)) == ("not active", {})
    assert "libc" in outcome.detail
    good = runner.run(row, Allocator("glibc", Kind.PEER), scale=0.01, timeout=SECONDS)
    assert good.outcome == "ok"
    assert good.raw["attempts"] >= 1


def test_ours_that_fails_is_told_by_the_exit_status(bench: Bench) -> None:
    crash = made.bad(bench.folder, "crash", **IN_THE_SUITE)
    done = bench(*SMALL, "--rounds", "1", "--out", "here", "--lib", f"hakmem={crash}")
    assert done.returncode == 1, done.stderr


HERE = "hakmem-bench-1"


def test_an_interrupted_session_goes_on(bench: Bench, library: Path, tmp_path: Path) -> None:
    mine = tmp_path / "libmine.so"
    shutil.copy(library, mine)
    # So many that it is not done before the interrupt, whatever else the machine does.
    words = (*SMALL, "--rounds", "9", "--lib", f"mine={mine}", "--vs", "mine")
    whole = bench(*words, "--out", "whole")
    assert whole.returncode == 0, whole.stderr

    lines = tmp_path / HERE / "runs.jsonl"
    process = subprocess.Popen(
        bench.words(*words, "--out", HERE),
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    )
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and (not lines.exists() or lines.read_text().count("\n") < 5):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert f"hakmem bench --resume {HERE}" in said
    before = bench.results(HERE)
    assert before.interrupted
    assert 5 <= len(before.runs) < 9 * 2 * 2

    # As if the machine had died while a line was written.
    finished = lines.read_text()
    lines.write_text(finished + finished.splitlines()[0][:50])
    mixed = bench("--resume", HERE, "--quick")
    assert (mixed.returncode, "all settings from the session" in mixed.stderr) == (2, True)

    mine.write_bytes(mine.read_bytes() + b"changed")
    changed = bench("--resume", HERE)
    assert (changed.returncode, "mine was" in changed.stderr) == (2, True), changed.stderr
    shutil.copy(library, mine)

    resumed = bench("--resume")  # the newest that has not ended
    assert resumed.returncode == 0, resumed.stderr
    results = bench.results(HERE)
    assert not results.interrupted
    assert results.runs[: len(before.runs)] == before.runs
    assert places(results.runs) == places(bench.results("whole").runs)
    keys = {(run.row, run.allocator, run.round) for run in results.runs}
    assert len(keys) == len(results.runs)
    began = [run.began for run in results.runs]
    assert began == sorted(began)


def test_a_damaged_line_in_the_middle_is_no_torn_one(tmp_path: Path) -> None:
    store = Store(tmp_path / "here")
    store.create(Results([ROW], THREE), {})
    store.add(Run("r", OURS, 0, 0, 0.0, 1.0))
    store.close()
    lines = tmp_path / "here" / "runs.jsonl"
    lines.write_text("{broken\n" + lines.read_text())
    with pytest.raises(CannotStore, match="line 1"):
        Store(tmp_path / "here").resume()


def test_a_session_that_still_runs_is_not_resumed(tmp_path: Path) -> None:
    store = Store(tmp_path / "here")
    store.create(Results([ROW], THREE), {})
    with pytest.raises(CannotStore, match="still runs"):
        Store(tmp_path / "here").resume()
    store.close()
    Store(tmp_path / "here").resume()


def test_the_limit_of_a_control_group_is_told(tmp_path: Path) -> None:
    """The least of those from the process's own group up."""
    own = tmp_path / "own"
    own.write_text("0::/a/b\n")
    groups = tmp_path / "groups"
    (groups / "a" / "b").mkdir(parents=True)
    assert processors_worth(groups, own) is None
    (groups / "a" / "b" / "cpu.max").write_text("max 100000\n")
    assert processors_worth(groups, own) is None
    (groups / "a" / "cpu.max").write_text("150000 100000\n")
    assert processors_worth(groups, own) == 1.5


def test_a_full_disk_is_told_in_one_line(bench: Bench) -> None:
    out = bench.folder / "here"
    out.mkdir()
    (out / "runs.jsonl").symlink_to("/dev/full")
    done = bench(*SMALL, "--rounds", "1", "--out", "here")
    assert (done.returncode, done.stderr) == (2, "hakmem bench: here: No space left on device\n")


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    sources = Path(__file__).parents[1] / "suite"
    with pytest.raises(suite_module.CannotBuild, match="Not a directory"):
        suite_module.build(sources, file / "below", lambda _: None)


def test_an_installed_hakmem_builds_the_suite_once(tmp_path: Path) -> None:
    sources = Path(__file__).parents[1] / "suite"
    said: list[str] = []
    folder = suite_module.build(sources, tmp_path, said.append)
    assert len(said) == 1
    assert suite_module.build(sources, tmp_path, said.append) == folder
    assert len(said) == 1
    assert suite_module.Suite(folder).rows()
