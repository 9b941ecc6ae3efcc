"""Records the planted program and replays it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import inside
from tests.ran import clean_environment, ran


@dataclass
class Replayed:
    hakmem: Path
    library: Path
    plant: Path
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "a.recording"

    def record(self, *words: str) -> str:
        """What the program prints."""
        return self._run("record", "-o", str(self.file), "--", str(self.plant), *words).stdout

    def real(self, preload: Path | None, *words: str) -> str:
        environment = clean_environment() | ({"LD_PRELOAD": str(preload)} if preload else {})
        done = ran(str(self.plant), *words, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def replay(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        return self._run("replay", *words, status=status)

    def figures(self, *words: str) -> dict[str, list[dict[str, Any]]]:
        """By allocator, of each round."""
        made = self.folder / "made.json"
        self.replay("-o", str(made), *words, str(self.file))
        found: dict[str, list[dict[str, Any]]] = {}
        for one in json.loads(made.read_text())["recordings"][0]["replays"]:
            assert one["outcome"] == "ok" and one["failed"] == 0, one
            found.setdefault(one["allocator"], []).append(one)
        return found

    def _run(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        return inside.answer(self.hakmem, *words, status=status, folder=self.folder)
