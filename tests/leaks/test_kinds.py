"""Which blocks are lost, directly or through another one, and which are reachable, and how."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.leaks.searched import Amounts, Run

LOST = {
    "lost_direct": Amounts(1, 0),
    "lost_chain": Amounts(1, 10),
    "lost_cycle": Amounts(1, 1),
    "lost_large": Amounts(1, 0),
    "lost_huge": Amounts(1, 0),
    "lost_aligned": Amounts(1, 0),
    "lost_owner": Amounts(1, 1),
}


def test_lost(run: Run) -> None:
    found = run.sites("lose")
    lost = {name: one for name, one in found["lost"].items() if name.startswith("lost_")}
    assert lost == LOST
    indirect = found["indirect"]
    assert indirect["lost_indirectly"] == Amounts(1, 0)
    assert indirect["lost_chain"].blocks == 10 and indirect["lost_cycle"].blocks == 1


def test_reachable(run: Run) -> None:
    found = run.sites("keep")
    assert "lost" not in found, found["lost"]
    kept = {name: one.blocks for name, one in found["reachable"].items() if name[:5] == "kept_"}
    assert kept.pop("kept_by_thread_local") >= 1  # glibc may allocate for its variables
    assert kept == {
        "kept_global": 2,
        "kept_interior": 1,
        "kept_mapped": 1,
        "kept_grown": 2,
        "kept_huge": 2,
        "kept_by_stack": 1,
        "kept_by_register": 1,
    }


def test_both(run: Run) -> None:
    found = run.sites("keep", "lose")
    lost = {name: one for name, one in found["lost"].items() if name.startswith("lost_")}
    assert lost == LOST


def test_amounts(run: Run) -> None:
    ended = run.plant("one")
    assert ended.one() == "lost 100 B in 1 block; reachable 0 B in 0 blocks"
    assert "lost_direct (plant.c:" in ended.err and "main (plant.c:" in ended.err
    assert (
        run.plant("lose")
        .one()
        .startswith("lost 5.1 MiB in 7 blocks, through them 576 B in 12 blocks; reachable ")
    )


def test_cxx(run: Run) -> None:
    if not (run.programs / "leaks_plant_cxx").exists():
        pytest.skip("built without a C++ compiler")
    found = run.sites(program="leaks_plant_cxx")
    functions = [name for name in found["lost"] if "lost_" in name or "kept_" in name]
    assert len(functions) == 1 and "lost_object" in functions[0]
    assert found["lost"][functions[0]] == Amounts(1, 1)
    for name in ("kept_array", "kept_base", "kept_tree", "kept_owned"):
        assert any(name in function for function in found["reachable"]), name


@pytest.mark.parametrize(
    "words",
    [
        ["/bin/true"],
        ["sh", "-c", "cd / && ls | sort | while read -r name; do echo $name; done"],
        ["python3", "-c", "pass"],
        ["ls", "-l", "/"],
    ],
)
def test_real_programs(words: list[str], run: Run) -> None:
    """Valgrind finds nothing lost in these either. sort loses a block of 16 bytes, in both."""
    ended = run(*words)
    assert ended.status == 0
    for name, _, what in ended.said():
        assert what.startswith("nothing is lost") or name == "sort", ended.err


def test_sizes_have_units_where_nothing_is_lost(run: Run) -> None:
    ended = run("python3", "-c", "import os; x = bytes(3 << 20); os._exit(0)")
    assert re.fullmatch(r"nothing is lost; reachable [34]\.\d MiB in \d+ blocks", ended.one()), (
        ended
    )


def test_no_function_of_the_allocator_is_shown(run: Run, tmp_path: Path) -> None:
    del tmp_path
    ended = run.plant("one")
    assert "libhakmem" not in ended.err and " malloc" not in ended.err
