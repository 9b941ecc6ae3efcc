"""Two releases of one commit, if there are any; the build tree."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.install.tree import SOURCE


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--made", type=Path, help="a release")
    parser.addoption("--again", type=Path, help="the same, made anew elsewhere")


@pytest.fixture(scope="session")
def made(given: Callable[[str], Path]) -> Path:
    return given("--made")


@pytest.fixture(scope="session")
def again(given: Callable[[str], Path]) -> Path:
    return given("--again")


@pytest.fixture(scope="session")
def clone() -> Path:
    if not (SOURCE / ".git").exists() or shutil.which("git") is None:
        pytest.skip("this is no clone, or git is not installed")
    return SOURCE
