"""Which files the tests look at, link and load."""

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lib", type=Path, help="the built libhakmem.so")
    parser.addoption("--archive", type=Path, help="the built libhakmem.a")
    parser.addoption("--helpers", type=Path, help="the folder of the built helpers")


def _built(request: pytest.FixtureRequest, option: str) -> Path:
    path: Path | None = request.config.getoption(option)
    if path is None:
        pytest.skip(f"needs {option} PATH")
    return path.resolve(strict=True)


@pytest.fixture(scope="session")
def library(request: pytest.FixtureRequest) -> Path:
    return _built(request, "--lib")


@pytest.fixture(scope="session")
def archive(request: pytest.FixtureRequest) -> Path:
    return _built(request, "--archive")


@pytest.fixture(scope="session")
def helpers(request: pytest.FixtureRequest) -> Path:
    return _built(request, "--helpers")
