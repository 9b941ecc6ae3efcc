"""Programs and allocators made for comparisons, and `hakmem compare` itself."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import inside

IN_THE_SUITE: dict[str, str | int] = {"AFTER": 10000, "ONLY": '"suite"'}
"""For `bad`: it passes for an allocator, and fails in the suite."""
SOURCES = Path(__file__).parent / "programs"
_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-fno-builtin")


def program(folder: Path, *flags: str) -> Path:
    """Of work.c."""
    return _made(folder / f"work{''.join(flags)}", "work.c", *flags)


def bad(folder: Path, name: str, **numbers: str | int) -> Path:
    """An allocator of bad.c, compiled with these."""
    if "AFTER" in numbers:
        numbers.setdefault("ACTION", "abort()")
        numbers.setdefault("ONLY", '""')
    words = (f"-D{key}={value}" for key, value in numbers.items())
    return _made(folder / f"lib{name}.so", "bad.c", "-shared", "-fPIC", *words)


def _made(target: Path, source: str, *flags: str) -> Path:
    if not target.exists():
        compiler = os.environ.get("CC", "cc")
        command = [compiler, *_FLAGS, *flags, "-o", str(target), str(SOURCES / source)]
        subprocess.run(command, check=True)
    return target


def average(series: Sequence[tuple[float, float]], seconds: float) -> float:
    """Over time, of samples between which it goes straight; the last stays until the end."""
    at, kib = series[0]
    area = at * kib
    for (before, was), (at, kib) in itertools.pairwise(series):
        area += (at - before) * (was + kib) / 2
    return (area + (seconds - at) * kib) / seconds


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "HAKMEM_"))}


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Compare:
    """The command, and a folder to work in."""

    hakmem: Path
    folder: Path

    def __call__(self, *words: str | Path, program: list[str | Path] | None = None) -> Said:
        done = inside.run(
            self.hakmem,
            *self._words(*words, program=program),
            seconds=600,
            environment=_environment(),
            folder=self.folder,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def started(
        self, *words: str | Path, program: list[str | Path] | None = None
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.hakmem), *self._words(*words, program=program)],
            cwd=self.folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _words(self, *words: str | Path, program: list[str | Path] | None = None) -> list[str]:
        behind = [] if program is None else ["--", *program]
        return ["compare", *map(str, [*words, *behind])]

    def json(self, name: str = "runs.json") -> Any:
        return json.loads((self.folder / name).read_text())
