"""Learning adds nothing to malloc and free: where no stack is empty or full, they execute equal
instructions with and without it."""

from pathlib import Path

from tests.counts.callgrind import cost, skip_without_valgrind
from tests.counts.work import OPERATIONS, Work


def test_the_fast_path_is_the_same(driver: Path, library: Path, tmp_path: Path) -> None:
    skip_without_valgrind()
    work = Work(8, 64, 64)  # fewer blocks than any stack holds
    costs = {
        mode: cost(driver, library, work, True, tmp_path / mode, HAKMEM_LEARN=mode)
        for mode in ("off", "on")
    }
    print(f"\n{work}, {OPERATIONS} operations: {costs['on'].instructions} instructions")
    assert costs["off"] == costs["on"]
    # It is the fast path that was counted, and nothing else.
    assert costs["on"].instructions < 23 * OPERATIONS
