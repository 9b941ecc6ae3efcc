from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.leaks.searched import Run, refuses_ptrace


@pytest.fixture
def run(given: Callable[[str], Path], tmp_path: Path) -> Run:
    """Skips where nothing can be traced."""
    run = Run(given("--hakmem"), given("--programs"), tmp_path)
    refused = refuses_ptrace(run)
    if refused:
        pytest.skip(refused)
    return run
