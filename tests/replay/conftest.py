from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.replay.replayed import Replayed


@pytest.fixture
def replayed(given: Callable[[str], Path], library: Path, tmp_path: Path) -> Replayed:
    return Replayed(given("--hakmem"), library, given("--programs") / "replay_plant", tmp_path)
