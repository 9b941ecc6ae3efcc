"""Programs that are searched for leaks, and what is said of them."""

from __future__ import annotations

import functools
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests import inside
from tests.ran import clean_environment

SECONDS = 300
SAID = re.compile(r"hakmem run: (\S+) \(([0-9]+)\): (.*)")


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str

    def said(self) -> list[tuple[str, int, str]]:
        """Of which process, by name and number, and what."""
        lines = (SAID.fullmatch(line) for line in self.err.splitlines())
        return [(line[1], int(line[2]), line[3]) for line in lines if line is not None]

    def one(self) -> str:
        (only,) = self.said()
        return only[2]


@dataclass(frozen=True)
class Run:
    hakmem: Path
    programs: Path
    folder: Path

    def start(self, *words: str | Path, **more: object) -> subprocess.Popen[str]:
        return subprocess.Popen(  # type: ignore[no-any-return,call-overload]
            ["/bin/sh", self.hakmem, "run", "--leaks", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=self.folder,
            env=clean_environment(),
            **more,
        )

    def __call__(self, *words: str | Path, **more: object) -> Ended:
        process = self.start(*words, **more)
        out, err = process.communicate(timeout=SECONDS)
        return Ended(process.returncode, out, err)

    def plant(self, *words: str) -> Ended:
        return self(self.programs / "leaks_plant", *words)

    def command(self, *words: str | Path) -> Ended:
        done = inside.run(
            self.hakmem,
            *map(str, words),
            seconds=SECONDS,
            environment=clean_environment(),
            folder=self.folder,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def sites(self, *words: str, program: str = "leaks_plant") -> dict[str, dict[str, Amounts]]:
        """By table and function: what all stacks with this function have."""
        ended = self("--leaks=x.leaks", self.programs / program, *words)
        assert "hakmem leaks x.leaks" in ended.err, ended
        shown = self.command(
            "leaks", "--indirect", "--reachable", "--top", "1000", "--depth", "64", "x.leaks"
        )
        assert (shown.status, shown.err) == (0, ""), shown
        return tables(shown.out)


@dataclass
class Amounts:
    blocks: int = 0
    through: int = 0  # blocks


_ROW = re.compile(r" *([0-9.]+ [KMG]?i?B) +([0-9]+)(?: +([0-9.]+ [KMG]?i?B) +([0-9]+))?  (.*)")
_TITLE = re.compile(r" +(lost|indirect|reachable) +blocks .*")


def tables(text: str) -> dict[str, dict[str, Amounts]]:
    found: dict[str, dict[str, Amounts]] = {}
    now: dict[str, Amounts] = {}
    row = (0, 0)
    for line in text.splitlines():
        title, amounts = _TITLE.fullmatch(line), _ROW.fullmatch(line)
        if title is not None:
            now = found.setdefault(title[1], {})
            continue
        if amounts is not None:
            row = (int(amounts[2]), int(amounts[4] or 0))
        function = (line if amounts is None else amounts[5]).strip().partition(" (")[0]
        one = now.setdefault(function, Amounts())
        one.blocks += row[0]
        one.through += row[1]
    return found


@functools.cache
def refuses_ptrace(run: Run) -> str:
    """Why nothing can be traced here; empty where it can."""
    ended = run("/bin/true")
    return ended.err.strip() if "ptrace is not permitted" in ended.err else ""


def line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline().rstrip("\n")
