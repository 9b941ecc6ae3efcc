from __future__ import annotations

from pathlib import Path

import pytest

from tests.leaks.searched import Run, refuses_ptrace
from tests.watch.watched import Command


@pytest.fixture
def run(command: Command, programs: Path, tmp_path: Path) -> Run:
    """Skips where nothing can be traced."""
    run = Run(command.path, programs, tmp_path)
    refused = refuses_ptrace(run)
    if refused:
        pytest.skip(refused)
    return run
