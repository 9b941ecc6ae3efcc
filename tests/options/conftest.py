"""The programs that the tests run."""

from pathlib import Path
from typing import Any

import pytest


def _built(name: str) -> Any:
    @pytest.fixture(scope="session")
    def path(programs: Path) -> Path:
        return programs / name

    return path


show = _built("options_show")
kept = _built("options_kept")
limited = _built("options_limited")
learn = _built("options_learn")
once = _built("options_once")
nothing = _built("liboptions_nothing.so")
