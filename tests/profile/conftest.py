from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "python"))

from tests.profile.planted import Planted
from tests.watch.watched import Command


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--hakmem", type=Path, help="the built bin/hakmem")
    parser.addoption("--programs", type=Path, help="the folder of the built profile_* programs")


@pytest.fixture
def command(given: Callable[[str], Path]) -> Command:
    return Command(given("--hakmem"))


@pytest.fixture(scope="session")
def planted(
    given: Callable[[str], Path], library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Planted:
    return Planted(given("--programs"), library, tmp_path_factory.mktemp("profiles"))
