"""Runs `hakmem tune` and `hakmem run` in a folder."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests import inside


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
        return inside.answer(self.hakmem, *words, status=status, folder=self.folder)
