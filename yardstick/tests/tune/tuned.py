"""Runs `hakmem tune` and `hakmem run` in a folder."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests import inside
from tests.ran import clean_environment

LONG = 1200  # seconds


@dataclass
class Tuned:
    hakmem: Path
    plant: Path
    folder: Path

    @property
    def settings(self) -> Path:
        return self.folder / "made.settings"

    def tune(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        return self.call("tune", "--minutes", "0.01", *words, status=status)

    def call(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = inside.run(
            self.hakmem,
            *words,
            seconds=LONG,
            environment=clean_environment(),
            folder=self.folder,
        )
        assert done.returncode == status, (done.stdout, done.stderr)
        return done
