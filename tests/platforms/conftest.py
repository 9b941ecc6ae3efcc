"""Which files the tests inspect, link and load."""

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--archive", type=Path, help="the built libhakmem.a")
    parser.addoption("--helpers", type=Path, help="the folder of the built helpers")
    parser.addoption(
        "--install", action="store_true", help="bring the Debian packages that are missing"
    )


@pytest.fixture(scope="session")
def archive(given: Callable[[str], Path]) -> Path:
    return given("--archive")


@pytest.fixture(scope="session")
def helpers(given: Callable[[str], Path]) -> Path:
    return given("--helpers")
