from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.profile.planted import Planted


@pytest.fixture(scope="session")
def planted(
    given: Callable[[str], Path], library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Planted:
    return Planted(given("--programs"), library, tmp_path_factory.mktemp("profiles"))
