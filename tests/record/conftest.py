from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.record.recorded import Recorded


@pytest.fixture
def recorded(given: Callable[[str], Path], library: Path, tmp_path: Path) -> Recorded:
    return Recorded(given("--hakmem"), library, given("--programs") / "record_plant", tmp_path)
