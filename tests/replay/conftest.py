from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).parents[2] / "yardstick" / "python"))

from tests.replay.replayed import Replayed


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--hakmem", type=Path, help="the built bin/hakmem")
    parser.addoption("--programs", type=Path, help="the folder of the built replay_plant")


@pytest.fixture
def replayed(given: Callable[[str], Path], library: Path, tmp_path: Path) -> Replayed:
    return Replayed(given("--hakmem"), library, given("--programs") / "replay_plant", tmp_path)
