from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.insert(0, str(Path(__file__).parents[3] / "python"))
sys.path.insert(0, str(Path(__file__).parents[3] / "yardstick" / "python"))

from yardstick.tests.tune.tuned import Tuned


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--hakmem", type=Path, help="the built bin/hakmem")
    parser.addoption("--programs", type=Path, help="the folder of the built tune_plant")


@pytest.fixture
def tuned(given: Callable[[str], Path], tmp_path: Path) -> Tuned:
    return Tuned(given("--hakmem"), given("--programs") / "tune_plant", tmp_path)
