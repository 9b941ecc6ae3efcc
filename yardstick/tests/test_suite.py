"""Every row, at a small scale, with every block's content verified: the work is the same on hakmem
and on the system's malloc."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from yardstick.tests.rows import rows_of, run
from yardstick.tools import goals

SCALE = "0.002"


def told(suite: Path, row: str, library: Path | None) -> dict[str, Any]:
    done = run(suite, library, row, "--check", "1", "--scale", SCALE)
    assert done.returncode == 0, f"{row}: exit {done.returncode}: {done.stderr}"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("group", ["seed", "micro", "threads", "stress", "memory", "tail"])
def test_rows_do_the_same_work_on_any_allocator(group: str, suite: Path, library: Path) -> None:
    rows = [row for row in rows_of(suite) if row["group"] == group]
    if not rows:
        pytest.skip("the group has no rows")

    def figures(row: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        return told(suite, row["row"], library), told(suite, row["row"], None)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for row, (ours, system) in zip(rows, pool.map(figures, rows), strict=True):
            name = row["row"]
            assert ours["allocator"] == str(library)
            assert ours["checksum"] == system["checksum"], name
            assert ours["operations"] == system["operations"] > 0, name
            known = {"time", "peak", "faults", *ours["figures"]}
            assert set(row["judged"].split()) <= known, name
            assert all(figure["value"] > 0 for figure in ours["figures"].values()), name


def test_names_and_families(suite: Path) -> None:
    rows = rows_of(suite)
    names = [row["row"] for row in rows]
    assert len(names) == len(set(names))
    assert all(row["why"] and row["family"] for row in rows)
    assert {row["tier"] for row in rows} <= {"quick", "standard", "full"}


def test_micro_rows_that_hold_little_are_not_judged_by_their_peak(suite: Path) -> None:
    """It would be the process's own, in each of them the same."""
    for row in rows_of(suite):
        told = row["parameters"]
        # `batch` is the alignment where that makes blocks larger.
        held = told["slots"] * max(told["max"], told["batch"])
        if row["group"] == "micro" and "peak" in row["judged"].split():
            assert held >= 4_000_000, row["row"]


def test_goals_are_for_rows_that_there_are(suite: Path) -> None:
    rows = {row["row"]: row for row in rows_of(suite)}
    common = {"time", "cpu", "peak", "resident", "faults"}
    for goal in goals.read():
        for name in goal.rows:
            assert goal.measure in common | set(rows[name]["judged"].split()), goal


def test_a_goal_s_name_stands_alone() -> None:
    """Reports list goals in other orders, and some of them only."""
    named = [(goal.name, goal.measure) for goal in goals.read()]
    assert len(set(named)) == len(named)
    assert not [name for name, _ in named if name.startswith("the same")]
