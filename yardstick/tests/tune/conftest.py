from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from yardstick.tests.tune.tuned import Tuned


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--plant", type=Path, help="the built tune_plant")


@pytest.fixture
def tuned(given: Callable[[str], Path], command: Path, tmp_path: Path) -> Tuned:
    return Tuned(command, given("--plant"), tmp_path)
