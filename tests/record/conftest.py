from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "python"))

from tests.record.recorded import Recorded


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--hakmem", type=Path, help="the built bin/hakmem")
    parser.addoption("--programs", type=Path, help="the folder of the built record_* programs")


@pytest.fixture
def recorded(given: Callable[[str], Path], library: Path, tmp_path: Path) -> Recorded:
    return Recorded(given("--hakmem"), library, given("--programs") / "record_plant", tmp_path)
