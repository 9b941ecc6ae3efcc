"""The built command and library, and programs to use them on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command.command import Built, Programs


def _built(request: pytest.FixtureRequest, option: str) -> Path:
    path: Path | None = request.config.getoption(option)
    if path is None:
        pytest.skip(f"needs {option} PATH")
    # The command tells its own path, so it is not resolved.
    assert path.exists()
    return path.absolute()


@pytest.fixture(scope="session")
def built(request: pytest.FixtureRequest) -> Built:
    return Built(*(_built(request, option) for option in ("--hakmem", "--lib", "--archive")))


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, built: Built) -> Programs:
    return Programs(tmp_path_factory.mktemp("programs"), built)
