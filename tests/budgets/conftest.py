from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ran import clean_environment, ran
from tests.watch.watched import Command

Hakmem = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def hakmem(command: Command, tmp_path: Path) -> Hakmem:
    """Runs it in a folder of its own, and with some more variables. Skips where nothing can be
    traced."""

    def run(*words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        done = ran(
            "/bin/sh",
            command.path,
            *words,
            cwd=tmp_path,
            env=clean_environment("PYTEST") | variables,
        )
        if "ptrace is not permitted" in done.stderr:
            pytest.skip(done.stderr.strip())
        return done

    return run
