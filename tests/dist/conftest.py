"""Two releases of one commit, if there are any; the build tree."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.install.tree import SOURCE


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", type=Path, help="the build tree")
    parser.addoption("--made", type=Path, help="a release")
    parser.addoption("--again", type=Path, help="the same, made anew elsewhere")


def _given(request: pytest.FixtureRequest, option: str) -> Path:
    path: Path | None = request.config.getoption(option)
    if path is None:
        pytest.skip(f"needs {option} PATH")
    return path.resolve(strict=True)


@pytest.fixture(scope="session")
def build(request: pytest.FixtureRequest) -> Path:
    return _given(request, "--build")


@pytest.fixture(scope="session")
def made(request: pytest.FixtureRequest) -> Path:
    return _given(request, "--made")


@pytest.fixture(scope="session")
def again(request: pytest.FixtureRequest) -> Path:
    return _given(request, "--again")


@pytest.fixture(scope="session")
def clone() -> Path:
    if not (SOURCE / ".git").exists() or shutil.which("git") is None:
        pytest.skip("this is no clone, or git is not installed")
    return SOURCE
