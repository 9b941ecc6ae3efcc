"""The programs that the tests run."""

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--show", type=Path, help="the built tests/options/show.c")
    parser.addoption("--kept", type=Path, help="the built tests/options/kept.c")
    parser.addoption("--limited", type=Path, help="the built tests/options/limited.c")
    parser.addoption("--learn", type=Path, help="the built tests/options/learn.c")
    parser.addoption("--once", type=Path, help="the built tests/options/once.c")
    parser.addoption("--nothing", type=Path, help="the built tests/options/nothing.c")


@pytest.fixture(scope="session")
def show(given: Callable[[str], Path]) -> Path:
    return given("--show")


@pytest.fixture(scope="session")
def kept(given: Callable[[str], Path]) -> Path:
    return given("--kept")


@pytest.fixture(scope="session")
def limited(given: Callable[[str], Path]) -> Path:
    return given("--limited")


@pytest.fixture(scope="session")
def learn(given: Callable[[str], Path]) -> Path:
    return given("--learn")


@pytest.fixture(scope="session")
def once(given: Callable[[str], Path]) -> Path:
    return given("--once")


@pytest.fixture(scope="session")
def nothing(given: Callable[[str], Path]) -> Path:
    return given("--nothing")
