from __future__ import annotations

from pathlib import Path

import pytest

from tests.replay.replayed import Replayed
from tests.watch.watched import Command


@pytest.fixture
def replayed(command: Command, programs: Path, library: Path, tmp_path: Path) -> Replayed:
    return Replayed(command.path, library, programs / "replay_plant", tmp_path)
