from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.watch.watched import Process, running


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--stress", type=Path, help="the built tests/stress/stress_fork.c")


@pytest.fixture
def plant(given: Callable[[str], Path], library: Path) -> Iterator[Process]:
    """It keeps what it frees: nothing goes back while nobody looks."""
    program = given("--programs") / "watch_plant"
    with running(program, library=library, HAKMEM_SCAVENGER="off") as process:
        yield process
