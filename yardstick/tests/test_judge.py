"""The judge (yardstick/judge): its halves, its statistic, and whole runs of it on few rows."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from hakmem_yardstick import listing, stats
from hakmem_yardstick.model import OURS, Allocator, Kind, Measure, Results, Row, Run, by_group
from hakmem_yardstick.parts import runners
from hakmem_yardstick.programs import Programs
from hakmem_yardstick.programs.load import with_children
from hakmem_yardstick.stats import Ratio
from yardstick.judge import builds, means, verdicts
from yardstick.judge.__main__ import Told, judge
from yardstick.judge.lives import LIFE, MOMENTS
from yardstick.judge.parts import QUICK, Part, parts
from yardstick.judge.verdicts import AFTER, BEFORE, Line
from yardstick.judge.works import WORKS
from yardstick.tests import made
from yardstick.tools.rows import dealt

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("rows", "programs of bench", "replays", "programs", "life", "services")

# ---- halves ----


@pytest.fixture(scope="module")
def rows(suite: Path) -> list[Row]:
    return [row for runner in runners(suite.parent) for row in runner.rows()]


def test_the_table_is_up_to_date(suite: Path) -> None:
    """And each row in one half."""
    tool = ROOT / "yardstick/tools/rows.py"
    assert subprocess.run([sys.executable, tool, suite, "--check"]).returncode == 0
    assert set(listing.halves().values()) == {"tuning", "judging"}


def test_both_halves_have_rows_of_all_kinds(rows: list[Row]) -> None:
    half = listing.halves()
    families: dict[str, list[str]] = {}
    for row in rows:
        families.setdefault(f"{row.group}/{row.family}", []).append(half[row.name])
    kinds = {group: [half[row.name] for row in own] for group, own in by_group(rows).items()}
    for name, own in {**families, **kinds}.items():
        apart = own.count("tuning") - own.count("judging")
        assert abs(apart) <= 1, f"{name}: {own}"


def test_a_row_keeps_its_half_when_others_come(rows: list[Row]) -> None:
    few = rows[::3]
    known = dealt(few, {})
    assert known.items() <= dealt(rows, known).items()


def test_bench_runs_the_half_that_may_tune(command: Path) -> None:
    listed: list[str | Path] = [command, "bench", "--list", "--full"]
    whole, tuning = (
        subprocess.run([*listed, *more], capture_output=True, text=True, check=True).stdout
        for more in ([], ["--half", "tuning"])
    )
    half = listing.halves()
    shown = {line.split()[0] for line in tuning.splitlines() if line} & half.keys()
    assert {half[name] for name in shown} == {"tuning"}
    assert len(shown) == sum(name == "tuning" for name in half.values())
    assert len(whole) > len(tuning)
    refused = subprocess.run([*listed, "--half", "judging"], capture_output=True, text=True)
    assert refused.returncode == 2


# ---- the statistic ----


def measured(effects: list[float], rounds: int, noise: float, seed: int = 1) -> Results:
    """A row for each effect, the logarithm of its ratio."""
    lot = np.random.default_rng(seed)
    measure = (Measure("time", "s"),)
    rows = [Row(f"row {at}", "", "", "", measure, ("time",)) for at in range(len(effects))]
    allocators = [Allocator(BEFORE, Kind.PEER), Allocator(AFTER, Kind.OURS)]
    results = Results(rows, allocators)
    for row, effect in zip(rows, effects, strict=True):
        for number in range(rounds):
            for name, log in ((BEFORE, 0.0), (AFTER, effect)):
                value = math.exp(log + lot.normal(0, noise))
                results.runs.append(Run(row.name, name, number, 0, 0, 0, values={"time": value}))
    return results


def said(results: Results, seed: int = 1) -> Line:
    figures = {row.name: ["time"] for row in results.rows}
    return Line("p", "time", means.mean_of_work(results, figures, AFTER, BEFORE, seed))


@pytest.mark.parametrize(
    ("effects", "verdict"),
    [
        ([0.0] * 40, "equal"),
        ([0.08] * 20, "worse"),
        ([-0.08] * 20, "better"),
        ([0.08] * 5, "can't tell"),
        ([-0.02] * 12 + [3.4], "can't tell"),
        ([0.3, -0.3] * 10, "can't tell"),
    ],
)
def test_verdicts(effects: list[float], verdict: str) -> None:
    assert said(measured(effects, 6, 0.01)).verdict == verdict


def test_the_mean_is_geometric_and_of_all_rows() -> None:
    ratio = said(measured([math.log(2), math.log(8)] * 4, 2, 0.0)).ratio
    assert ratio is not None and ratio.rounds == 8
    assert ratio.value == pytest.approx(4.0)


def test_a_row_counts_once_however_many_figures_it_has() -> None:
    results = measured([math.log(2)] + [0.0] * 6, 2, 0.0)
    figures = {row.name: ["time"] for row in results.rows} | {"row 0": ["time"] * 9}
    ratio = means.mean_of_work(results, figures, AFTER, BEFORE)
    assert ratio is not None and ratio.rounds == 7
    assert ratio.value == pytest.approx(2 ** (1 / 7))


def test_few_intervals_miss_the_mean_of_all_work() -> None:
    """2 to 5 in 100 did with 6 to 60 rows of 1 to 6 rounds; with this seed, 2 of 100."""
    lot = np.random.default_rng(3)
    missed = 0
    for seed in range(100):
        effects = [float(each) for each in lot.normal(0, 0.05, 9)]
        ratio = said(measured(effects, 2, 0.02, seed), seed).ratio
        assert ratio is not None
        missed += not ratio.low <= 1 <= ratio.high
    assert missed <= 8


def test_nothing_measured_is_no_verdict() -> None:
    assert Line("p", "time", None).verdict == "no figure"
    text = verdicts.paragraph("x", "y", [Line("p", "time", None), Line("p", "cpu", Ratio(1, 0, 2))])
    assert "P: time no figure, cpu 1.000" in text


# ---- whole runs ----


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.nightly
def test_a_library_beside_itself(library: Path, cache: Path, tmp_path: Path) -> None:
    """A row of each part: nothing can be told, nothing failed, and no row is named."""
    told = tmp_path / "told.json"
    words: list[str | Path] = [
        library,
        library,
        "--rows",
        "1",
        "--rounds",
        "1",
        "--seed",
        "7",
        "--json",
        told,
    ]
    done = subprocess.run(
        [sys.executable, "-m", "yardstick.judge", *words, "--build", library.parent],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(told.read_text())
    assert {line["part"] for line in found["lines"]} == set(PARTS)
    assert {line["verdict"] for line in found["lines"]} <= {"can't tell", "no figure"}
    assert found["failed"] == {}
    assert found["paragraph"] in done.stdout.replace("\n", " ")
    secret = [line for line in found["lines"] if line["part"] in ("rows", "programs of bench")]
    assert not [line for line in secret if "ratio" in line]
    named = [name for name, half in listing.halves().items() if half == "judging"]
    known = json.dumps(found["lines"])
    assert not [name for name in named if f'"{name}"' in known]


def told_of(part: Part, rows: list[Row], before: Allocator, after: Allocator) -> Told:
    few = replace(part, rows=rows, rounds=1)
    return judge([few], [before, after], 1, Console(quiet=True))


def test_what_is_not_installed_is_named(library: Path, cache: Path) -> None:
    absent = replace(WORKS[0], name="absent", packages=("p",), executables=("no-such-program",))
    runner = Programs(cache, [absent])
    part = Part("programs", runner, runner.rows(), {"cpu": {"absent": ["cpu"]}}, 1, 1.0)
    ours = Allocator(OURS, Kind.OURS, library)
    told = told_of(part, runner.rows(), replace(ours, name=BEFORE, kind=Kind.PEER), ours)
    assert told.missing == {"programs: absent": "no no-such-program here; apt-get install p"}
    assert [line.verdict for line in told.lines] == ["no figure"]


def test_a_crash_is_told(library: Path, suite: Path, cache: Path, tmp_path: Path) -> None:
    part = parts(library.parent, cache, QUICK)[0]
    before = Allocator(BEFORE, Kind.PEER, library)
    after = Allocator(OURS, Kind.OURS, made.bad(tmp_path, "ends", AFTER=2000))
    told = told_of(part, list(part.rows[:1]), before, after)
    assert [why.split(":")[0] for why in told.failed.values()] == ["SIGABRT"]


def life(
    library: Path, cache: Path, name: str, settings: Mapping[str, str]
) -> dict[str, Ratio | None]:
    """What the part says of one pattern: the library with settings, to the library."""
    part = next(one for one in parts(library.parent, cache, QUICK) if one.name == "life")
    one = [row for row in part.rows if row.name == name]
    before = Allocator(BEFORE, Kind.PEER, library)
    after = Allocator(OURS, Kind.OURS, library, environment=settings)
    told = told_of(part, one, before, after)
    assert told.failed == {} and told.missing == {}
    return {line.what: line.ratio for line in told.lines}


def test_one_that_keeps_all_is_seen_idle(library: Path, cache: Path) -> None:
    all_of_it = {"HAKMEM_KEEP_BYTES": "1024G"}
    ratios = life(library, cache, "medium", all_of_it)
    idle = ratios["idle"]
    assert idle is not None and idle.value > 2


def test_a_service_is_looked_at_with_its_children() -> None:
    script = "sleep 60 & (sleep 60 & wait) & echo; wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, process_group=0) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        until = time.monotonic() + 60
        while len(found := with_children(shell.pid)) < 4 and time.monotonic() < until:
            time.sleep(0.01)
        os.killpg(shell.pid, signal.SIGKILL)
    assert found[0] == shell.pid and len(set(found)) == 4


def test_there_is_enough_work() -> None:
    assert len(WORKS) >= 12
    assert len(LIFE) >= stats.FEWEST_ROUNDS
    assert MOMENTS == ("loaded", "freed", "idle", "light", "reloaded", "ended")


@pytest.mark.parametrize("word", ["no-such-commit", "./no-such-file.so"])
def test_what_is_no_build_is_refused(word: str) -> None:
    with pytest.raises(builds.CannotBuild, match=word):
        builds.library(word)


def test_a_file_is_taken_as_it_is(library: Path, tmp_path: Path) -> None:
    assert builds.library(str(library))[0] == library
    a, b = builds.side_by_side(library, library, tmp_path)
    assert len(str(a)) == len(str(b)) and a.read_bytes() == library.read_bytes()
