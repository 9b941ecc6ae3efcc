"""Builds the explored functions from a changed copy of src/, and runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCES = ROOT / "build" / "release" / "tests" / "explore" / "sources"  # CMake's list
CHECKS = ["explore.c", "machine.c"]  # what plays the machine
COMMON = ["gcc", "-std=gnu11", "-g", "-w", "-ftls-model=initial-exec", "-fvisibility=hidden"]
EXPLORED = [*COMMON, "-O1", "-fsanitize=thread", "-fno-builtin-malloc"]
JOBS = 2
MOST_SECONDS = 1800  # a change may make more orders than can be tried


@dataclass(frozen=True)
class Outcome:
    compiled: bool
    wrong: bool
    words: str


class Explorer:
    """Objects of the unchanged sources are made once, and used where a change can't matter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sources = Path(os.environ.get("HAKMEM_EXPLORED", SOURCES)).read_text().split()
        self.base = folder / "base"
        files = [*self.sources, "world.c", "cases.c", *CHECKS]
        made = self._compile(ROOT / "src", self.base, files)
        assert made == "", made

    def explore(self, file: str, text: str, scenario: str = "") -> Outcome:
        """With this text in place of src/`file`. `scenario`: one of cases.c, or all."""
        copy, objects = self.folder / "src", self.folder / "objects"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.rmtree(objects, ignore_errors=True)
        shutil.copytree(ROOT / "src", copy)
        shutil.copytree(self.base, objects)
        (copy / file).write_text(text)
        changed = [file] if file.endswith(".c") else [*self.sources, "world.c", "cases.c"]
        failed = self._compile(copy, objects, changed)
        if failed:
            return Outcome(compiled=False, wrong=False, words=failed)
        program = self.folder / "explore"
        subprocess.run(
            ["gcc", "-o", program, *sorted(objects.glob("*.o"))], check=True, capture_output=True
        )
        command = [str(program), *([scenario] if scenario else [])]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            return Outcome(compiled=True, wrong=False, words=f"no end after {MOST_SECONDS} s")
        return Outcome(compiled=True, wrong=done.returncode != 0, words=done.stdout)

    def _compile(self, src: Path, objects: Path, files: list[str]) -> str:
        objects.mkdir(parents=True, exist_ok=True)

        def one(file: str) -> str:
            path = HERE / file if (HERE / file).exists() else src / file
            flags = [*COMMON, "-O2"] if file in CHECKS else EXPLORED
            done = subprocess.run(
                [*flags, f"-I{src}", f"-I{ROOT / 'include'}", f"-I{HERE}", "-c", path,
                 "-o", objects / (file.replace("/", "_") + ".o")],
                capture_output=True, text=True,
            )  # fmt: skip
            return done.stderr if done.returncode != 0 else ""

        with ThreadPoolExecutor(JOBS) as pool:
            return "".join(pool.map(one, files))
