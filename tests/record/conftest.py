from __future__ import annotations

from pathlib import Path

import pytest

from tests.record.recorded import Recorded
from tests.watch.watched import Command


@pytest.fixture
def recorded(command: Command, programs: Path, library: Path, tmp_path: Path) -> Recorded:
    return Recorded(command.path, library, programs / "record_plant", tmp_path)
