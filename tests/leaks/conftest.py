from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "python"))

from tests.leaks.searched import Run, refuses_ptrace


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--hakmem", type=Path, help="the built bin/hakmem")
    parser.addoption("--programs", type=Path, help="the folder of the built leaks_* programs")


@pytest.fixture
def run(given: Callable[[str], Path], tmp_path: Path) -> Run:
    """Skips where nothing can be traced."""
    run = Run(given("--hakmem"), given("--programs"), tmp_path)
    refused = refuses_ptrace(run)
    if refused:
        pytest.skip(refused)
    return run
