"""A copy of the tree in which one mutant after the other is built, and which is put back after each
to the byte and the time of change, so that ninja builds what a mutant touches and nothing else."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from tests.mutants.draw import Mutant

# What would warn of each statement left out. Other warnings are errors, as in every build.
FLAGS = "-Wno-unused -Wno-unused-parameter"
JOBS = 2


class Code(Enum):
    DIFFERS = "differs"
    SAME = "same object code"
    INVALID = "does not compile"


@dataclass(frozen=True)
class Built:
    done: bool
    anything: bool
    """Whether there was anything to do: what is as it was needs no test."""


class Tree:
    def __init__(self, root: Path, folder: Path, presets: Sequence[str], objects: str) -> None:
        """`objects`: a pattern for the targets of CMake whose objects are compared, which must be
        code as it runs (not for the optimiser at link time)."""
        self.top = folder / "tree"
        self._base, self._scratch = folder / "base", folder / "object"
        self._preset, self._objects = presets[0], re.compile(objects)
        if self._base.exists():
            self.restore()  # the last run may have been ended within a mutant
        self._copy(root)
        for preset in presets:
            subprocess.run(
                ["cmake", "--preset", preset, f"-DCMAKE_C_FLAGS={FLAGS}",
                 f"-DCMAKE_CXX_FLAGS={FLAGS}", "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON"],
                cwd=self.top, check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip

    def _copy(self, root: Path) -> None:
        """What is new gets the time of now, so that a build that is there is gone on with."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        names = {name for name in listed.split("\0") if (root / name).is_file()}
        for path in [p for p in self.top.rglob("*") if p.is_file()]:
            name = str(path.relative_to(self.top))
            if name not in names and not name.startswith(("build/", ".venv/")):
                path.unlink()
        for name in names:
            old, new = self.top / name, root / name
            if not old.is_file() or old.read_bytes() != new.read_bytes():
                old.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(new, old)
        if (root / ".venv").exists() and not (self.top / ".venv").exists():
            (self.top / ".venv").symlink_to((root / ".venv").resolve())

    def folder(self, preset: str) -> Path:
        return self.top / "build" / preset

    def build(self, preset: str, targets: Iterable[str]) -> Built:
        done = subprocess.run(
            ["ninja", "-C", self.folder(preset), "-j", str(JOBS), *targets],
            capture_output=True, text=True,
        )  # fmt: skip
        return Built(done.returncode == 0, "no work to do" not in done.stdout)

    def keep(self) -> None:
        """What is there now is what restore() brings back."""
        shutil.rmtree(self._base, ignore_errors=True)
        shutil.copytree(self.top, self._base, symlinks=True)

    def restore(self) -> None:
        kept = {}
        for folder, _, names in os.walk(self._base):
            for name in names:
                path = Path(folder, name)
                kept[path.relative_to(self._base)] = path
        for folder, _, names in os.walk(self.top):
            for name in names:
                path = Path(folder, name)
                base = kept.get(path.relative_to(self.top))
                if base is not None and same(path, base):
                    del kept[path.relative_to(self.top)]
                else:
                    path.unlink()
        for relative, base in kept.items():
            shutil.copy2(base, self.top / relative, follow_symlinks=False)

    def mutate(self, mutant: Mutant) -> None:
        path = self.top / mutant.file
        text = mutant.applied(path.read_text())
        path.unlink()
        path.write_text(text)

    # ---- comparing code ----

    def code(self, mutant: Mutant) -> Code:
        """Of the mutant in place, beside the original's. Without notes for a debugger, which name
        lines; the first difference is enough."""
        for command in self._commands(mutant.file):
            made = self._compiled(command, self.top)
            if made is None:
                return Code.INVALID
            if made != self._original(command):
                return Code.DIFFERS
        return Code.SAME

    def _compiled(self, command: str, top: Path) -> bytes | None:
        words = shlex.split(command.replace(str(self.top), str(top)))
        words[words.index("-o") + 1] = str(self._scratch)
        plain = [word for word in words if word != "-g"]
        if subprocess.run(plain, cwd=self.folder(self._preset), capture_output=True).returncode:
            return None
        return self._scratch.read_bytes()

    @cache  # noqa: B019 (there is one tree in a run)
    def _original(self, command: str) -> bytes | None:
        return self._compiled(command, self._base)

    @cache  # noqa: B019
    def _commands(self, file: str) -> list[str]:
        """Those that compile the file, or what includes it; the small ones first."""
        commands = json.loads((self.folder(self._preset) / "compile_commands.json").read_text())
        including = self._including().get(str(self.top / file), set())
        chosen = [c for c in commands
                  if c["file"] in including and self._objects.search(c["command"])]  # fmt: skip
        return [c["command"] for c in sorted(chosen, key=lambda c: Path(c["file"]).stat().st_size)]

    @cache  # noqa: B019
    def _including(self) -> dict[str, set[str]]:
        """File -> what was compiled with it, as the compiler told ninja."""
        listed = subprocess.run(
            ["ninja", "-C", self.folder(self._preset), "-t", "deps"],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        including: dict[str, set[str]] = {}
        for block in listed.split("\n\n"):
            files = [line.strip() for line in block.splitlines()[1:] if line.startswith(" ")]
            for file in files:
                including.setdefault(file, set()).add(files[0])
        return including


def same(one: Path, other: Path) -> bool:
    a, b = one.lstat(), other.lstat()
    return (a.st_mode, a.st_size, a.st_mtime_ns) == (b.st_mode, b.st_size, b.st_mtime_ns)
