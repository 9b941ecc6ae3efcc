"""The command, what it says of a process, and processes to ask it about."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import inside
from tests.ran import clean_environment, ran

SECONDS = 120
# Of what is planted, so much may be missing or too much; of what is resident, not accounted for.
SHARE = 0.02


@dataclass(frozen=True)
class Sheet:
    said: dict[str, Any]

    def __getitem__(self, name: str) -> int:
        return int(self._line(name)["resident"])

    def could_be(self, name: str) -> int:
        return int(self._line(name).get("could_be", self[name]))

    def _line(self, name: str) -> dict[str, Any]:
        lines = [*self.said["heap"], *self.said["others"]]
        (line,) = (one for one in lines if one["name"] == name)
        return dict(line)

    def adds_up(self) -> None:
        lines = [line["resident"] for line in (*self.said["heap"], *self.said["others"])]
        assert sum(lines) == self.said["resident"]

    def is_explained(self) -> bool:
        return bool(abs(self["unexplained"]) <= SHARE * self.said["resident"])

    def agrees(self) -> None:
        """With the kernel's sums, while nothing changes."""
        self.adds_up()
        for sum_ in self.said["kernel"].values():
            assert abs(self.said["resident"] - sum_) <= SHARE * sum_
        assert self.is_explained()


@dataclass(frozen=True)
class Command:
    path: Path

    def __call__(
        self, *words: str | int, by: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        if not by:
            return inside.run(self.path, *map(str, words), seconds=SECONDS)
        return ran(*by, "/bin/sh", str(self.path), *map(str, words))

    def sheet(self, pid: int) -> Sheet:
        done = self("sheet", "--json", pid)
        assert done.returncode == 0, done.stderr
        return Sheet(json.loads(done.stdout))


@dataclass(frozen=True)
class Process:
    process: subprocess.Popen[str]

    @property
    def pid(self) -> int:
        return self.process.pid

    def ask(self, word: str) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@contextmanager
def running(*words: str | Path, library: Path | None = None, **variables: str) -> Iterator[Process]:
    """One that has said "ready"."""
    environment = clean_environment()
    if library is not None:
        environment["LD_PRELOAD"] = str(library)
    process = subprocess.Popen(
        list(map(str, words)),
        env=environment | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield Process(process)
    finally:
        process.kill()
        process.communicate()
