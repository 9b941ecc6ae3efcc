"""Which program the rows are of."""

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--suite", type=Path, help="the built bench/suite")


@pytest.fixture(scope="session")
def suite(given: Callable[[str], Path]) -> Path:
    return given("--suite")
