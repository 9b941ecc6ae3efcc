"""The two libraries that are judged: files, or commits that are built here."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "judge"
TREE = "tree"


class CannotBuild(Exception):
    """Why, and what to do."""


def library(word: str) -> tuple[Path, str]:
    """The library that a word names, built if need be, and how it is called: a file, a commit of
    this repository, or `tree` for the files as they are. Raises CannotBuild."""
    name, _, _ = word.partition("+")
    if Path(name).is_file():
        return Path(name).resolve(), word
    if name == TREE:
        return _built(ROOT, KEPT / TREE), word.replace(TREE, "the tree", 1)
    commit = _commit(name)
    folder = KEPT / commit
    if not (folder / "source" / "CMakeLists.txt").exists():
        _unpack(commit, folder / "source")
    return _built(folder / "source", folder / "build"), word.replace(name, commit[:10], 1)


def _commit(name: str) -> str:
    asked = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    found = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    if not re.fullmatch(r"[0-9a-f]{40}", found):
        raise CannotBuild(f"{name}: no file, and no commit of {ROOT}")
    return found


def _unpack(commit: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit], check=True, capture_output=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)


def _built(source: Path, build: Path) -> Path:
    """As the preset `release` of its own sources says."""
    log = build.with_name(f"{build.name}.log")
    build.mkdir(parents=True, exist_ok=True)
    python = ROOT / ".venv" / "bin" / "python"
    configure = ["cmake", "--preset", "release", "-B", str(build), f"-DHAKMEM_PYTHON={python}"]
    with log.open("w") as out:
        for words in (configure, ["cmake", "--build", str(build), "--target", "hakmem_shared"]):
            if subprocess.run(words, cwd=source, stdout=out, stderr=out).returncode:
                raise CannotBuild(f"{source} can't be built: see {log}")
    return build / "libhakmem.so"


def side_by_side(before: Path, after: Path, folder: Path) -> tuple[Path, Path]:
    """Copies with paths of one length: a longer one in the environment moves the stack."""
    copies = []
    for name, file in (("a", before), ("b", after)):
        (folder / name).mkdir()
        copies.append(Path(shutil.copy(file, folder / name / "libhakmem.so")))
    return copies[0], copies[1]
