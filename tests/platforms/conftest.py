"""Which files the tests inspect, link and load."""

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--objects", type=Path, help="an archive with an object of each file of src/")
    parser.addoption(
        "--compiler", default="gcc", help="for another libc or processor than this system's"
    )
    parser.addoption("--runner", default="", help="what runs its programs, as qemu")
    parser.addoption(
        "--install", action="store_true", help="bring the Debian packages that are missing"
    )


@pytest.fixture(scope="session")
def objects(given: Callable[[str], Path]) -> Path:
    return given("--objects")
