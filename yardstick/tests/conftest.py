"""The built suite, the command beside it, and libraries that misbehave."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--suite", type=Path, help="the built bench/suite")


@pytest.fixture(scope="session")
def suite(given: Callable[[str], Path]) -> Path:
    return given("--suite")


@pytest.fixture(scope="session")
def command(suite: Path) -> Path:
    """bin/hakmem of the same build."""
    return (suite.parent.parent / "bin" / "hakmem").resolve(strict=True)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """A library made of C text, by its name."""
    folder = tmp_path_factory.mktemp("libraries")

    def make(name: str, text: str) -> Path:
        library = folder / f"lib{name}.so"
        flags = ["-shared", "-fPIC", "-O1", "-fno-builtin", "-x", "c", "-"]
        subprocess.run(["cc", *flags, "-o", str(library)], input=text, text=True, check=True)
        return library

    return make
