from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ran import ran
from tests.watch.watched import Command

Hakmem = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def hakmem(command: Command, tmp_path: Path) -> Hakmem:
    """Runs it in a folder of its own, and with some more variables. Skips where nothing can be
    traced."""
    clean = {n: v for n, v in os.environ.items() if not n.startswith(("LD_", "HAKMEM_", "PYTEST"))}

    def run(*words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        done = ran("/bin/sh", command.path, *words, cwd=tmp_path, env=clean | variables)
        if "ptrace is not permitted" in done.stderr:
            pytest.skip(done.stderr.strip())
        return done

    return run
