from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.watch.watched import Process, running


@pytest.fixture
def plant(programs: Path, library: Path) -> Iterator[Process]:
    """It keeps what it frees: nothing goes back while nobody looks."""
    program = programs / "watch_plant"
    with running(program, library=library, HAKMEM_SCAVENGER="off") as process:
        yield process
