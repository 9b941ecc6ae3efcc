"""Which driver is counted."""

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--driver", type=Path, help="the built tests/counts/driver.c")


@pytest.fixture(scope="session")
def driver(given: Callable[[str], Path]) -> Path:
    return given("--driver")
