"""After the warm-up, malloc and free make no system calls."""

from pathlib import Path

import pytest

from tests.counts.trace import skip_without_strace, system_calls
from tests.counts.work import OPERATIONS, Work

KIB = 1024
WARM_UPS = 10  # a million operations: until then it is learned how long free memory shall stay


@pytest.mark.parametrize(
    "work",
    [Work(8192, 16, 1024), Work(256, KIB, 8 * KIB), Work(64, 64 * KIB, 64 * KIB)],
    ids=str,
)
def test_no_system_call_once_warm(work: Work, driver: Path, library: Path, tmp_path: Path) -> None:
    skip_without_strace()
    calls = system_calls(driver, library, work, WARM_UPS, tmp_path / "trace")
    print(f"\n{work}: {len(calls)} system calls in {OPERATIONS} operations")
    assert calls == []
