"""The demo runs, and gives a verdict only if its rounds justify one."""

from __future__ import annotations

import shutil
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.ran import ran
from tools.demo.chart import COLUMNS, chart
from tools.demo.figures import NO_DIFFERENCE, UNCLEAR, Ratio, table, verdict
from tools.demo.redis_load import LOAD, MEMORY, PHASES
from tools.demo.sample import Sample

ROOT = Path(__file__).parents[2]
BASE = [100.0, 116.0, 90.0, 104.0, 98.0, 110.0]


def ratio(*by_round: float) -> Ratio:
    return Ratio.of([b * r for b, r in zip(BASE, by_round, strict=True)], BASE)


def test_what_all_rounds_show_has_a_verdict() -> None:
    clear = ratio(1.10, 1.12, 1.09, 1.11, 1.13, 1.10)
    assert clear.low < clear.middle < clear.high < 1.15
    assert "faster" in verdict(LOAD[0], clear)
    assert "slower" in verdict(LOAD[1], clear)
    assert "larger" in verdict(MEMORY[0], clear)
    assert "leaner" in verdict(MEMORY[0], ratio(0.8, 0.8, 0.8, 0.8, 0.8, 0.8))


@pytest.mark.parametrize(
    "by_round",
    [
        (0.84, 1.16, 0.9, 1.05, 0.8, 0.95),  # apart by what a busy machine does
        (1.02, 1.01, 1.03, 1.02, 1.01, 0.90),  # five of six agree
        (1.001, 1.001, 1.001, 1.001, 1.001, 1.001),  # shown as 1.00
        (1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    ],
)
def test_what_they_do_not_show_has_none(by_round: tuple[float, ...]) -> None:
    for name in (*LOAD, *MEMORY):
        assert verdict(name, ratio(*by_round)) in (NO_DIFFERENCE, UNCLEAR)


def test_the_interval_is_students() -> None:
    """Of logarithms 0, 0.1, ... 0.5: mean 0.25, standard deviation 0.18708, t 2.571."""
    found = ratio(*(2.718281828 ** (n / 10) for n in range(6)))
    assert found.low == pytest.approx(1.0551, abs=1e-4)
    assert found.high == pytest.approx(1.5626, abs=1e-4)


def test_the_ratio_is_the_quotient_of_the_medians() -> None:
    assert Ratio.of([3.0, 1.0, 8.0], [2.0, 2.0, 9.0]).middle == 1.5


def test_the_picture() -> None:
    flat, falls = [[80.0]] * 4, [[0.0, 80.0], [80.0, 40.0], [40.0], [40.0, 0.0]]
    lines = [line.plain for line in chart({"glibc": flat, "hakmem": falls}, PHASES, "hakmem")]
    assert max(map(len, lines)) <= 80
    assert lines[1].startswith("glibc") and lines[1].count("█") == 4 * COLUMNS
    top, bottom = lines[6], lines[9]
    assert top.startswith("hakmem   80 MiB") and 0 < top.count("█") < bottom.count("█")
    assert bottom.count("█") > 2 * COLUMNS


def test_the_table_fits_into_80_columns() -> None:
    names = LOAD + MEMORY
    samples = [Sample(dict.fromkeys(names, 234_567.0 + n)) for n in range(6)]
    written = StringIO()
    console = Console(width=80, file=written)
    everyone = {"glibc": samples, "hakmem": samples[::-1], "jemalloc": samples}
    console.print(table("redis-server", names, everyone, "hakmem", "glibc"))
    text = written.getvalue()
    assert text.count(NO_DIFFERENCE) == len(names)
    assert "…" not in text


def test_it_runs(library: Path) -> None:
    if shutil.which("redis-server") is None or shutil.which("redis-benchmark") is None:
        pytest.skip("redis-server is not installed")
    done = ran(sys.executable, ROOT / "tools" / "demo" / "demo.py", "--lib", library, "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    for words in (
        *LOAD,
        *MEMORY,
        "Resident memory of redis-server",
        "lower is better, except for requests/s",
        "Proof that hakmem was used:",
    ):
        assert words in done.stdout
