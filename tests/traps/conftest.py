"""Which build is tested."""

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", type=Path, help="the build folder whose tests are meant")


@pytest.fixture(scope="session")
def build(given: Callable[[str], Path]) -> Path:
    return given("--build")
