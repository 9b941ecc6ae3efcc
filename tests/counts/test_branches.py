"""malloc and free execute no more conditional branches than the system's malloc and free."""

from pathlib import Path

import pytest

from tests.counts.callgrind import cost, skip_without_valgrind
from tests.counts.work import OPERATIONS, Work


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
@pytest.mark.parametrize("work", [Work(8192, 16, 1024), Work(8192, 256, 256)], ids=str)
def test_no_more_branches_than_the_system(
    work: Work, warm: bool, driver: Path, library: Path, tmp_path: Path
) -> None:
    skip_without_valgrind()
    ours = cost(driver, library, work, warm, tmp_path / "ours")
    system = cost(driver, None, work, warm, tmp_path / "system")
    print(f"\n{work}, {OPERATIONS} operations {'after as many' if warm else 'from the first on'}:")
    for what, mine, other in (
        ("conditional branches", ours.branches, system.branches),
        ("instructions", ours.instructions, system.instructions),
    ):
        print(f"  {what:<20} {mine:>9} against the system's {other:>9}: {mine / other:.3f}")
    assert ours.calls == system.calls == OPERATIONS * (2 if warm else 1)
    assert ours.branches <= system.branches
