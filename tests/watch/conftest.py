from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "python"))

from tests.watch.watched import Command, Process, running


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--hakmem", type=Path, help="the built bin/hakmem")
    parser.addoption("--programs", type=Path, help="the folder of the built watch_* programs")
    parser.addoption("--stress", type=Path, help="the built tests/stress/stress_fork.c")


@pytest.fixture
def command(given: Callable[[str], Path]) -> Command:
    path = given("--hakmem")
    return Command(path)


@pytest.fixture
def plant(given: Callable[[str], Path], library: Path) -> Iterator[Process]:
    """It keeps what it frees: nothing goes back while nobody looks."""
    program = given("--programs") / "watch_plant"
    with running(program, library=library, HAKMEM_SCAVENGER="off") as process:
        yield process
