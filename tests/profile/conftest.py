from __future__ import annotations

from pathlib import Path

import pytest

from tests.profile.planted import Planted


@pytest.fixture(scope="session")
def planted(programs: Path, library: Path, tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return Planted(programs, library, tmp_path_factory.mktemp("profiles"))
