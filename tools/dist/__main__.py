"""Makes a release in build/dist: source, Debian packages, wheel, crate, libraries, and what describes them.

Usage: python -m tools.dist

Everything is built from what git has of the last commit, below a temporary folder. The bytes of each
file follow from the commit and the tools alone: `make test-dist` makes a release twice and compares.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tools.dist import archives, contents, parts
from tools.dist.contents import NOTES, SUMS, Release
from tools.dist.parts import Failed, Part, Work

ROOT = Path(__file__).resolve().parents[2]
NATIVE = "x86_64"


def _git(*words: str) -> str:
    asked = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
    if asked.returncode != 0:
        raise Failed(f"git {words[0]}: {asked.stderr.strip()}")
    return asked.stdout.strip()


def _of_head() -> Release:
    text = (ROOT / "CMakeLists.txt").read_text()
    version = re.search(r"project\(hakmem\s+VERSION (\S+)", text)
    assert version is not None
    seconds, commit = _git("rev-list", "--max-count=1", "--timestamp", "HEAD").split()
    return Release(version[1], commit, int(seconds))


def _refuse_what_cannot_be() -> None:
    if not (ROOT / ".git").exists():
        raise Failed("a release is made in a clone of the repository; this is none")
    if platform.machine() != NATIVE:
        raise Failed(f"a release is made on {NATIVE}, where AArch64 is built for too; this is another")
    changed = _git("status", "--porcelain", "--untracked-files=no")
    if changed:
        raise Failed(f"these files differ from the last commit; commit or undo it:\n{changed}")


def make(release: Release, work_folder: Path) -> Path:
    """Below the given folder."""
    out = work_folder / release.name
    out.mkdir()
    tarball = out / f"{release.name}.tar.gz"
    archives.source(ROOT, release.commit, release.name, tarball)
    work = Work(archives.unpack(tarball, work_folder / "source"), out, release.seconds)
    made = [Part(tarball, "source", "SOURCE")]
    cross = "aarch64-linux-gnu-gcc", "cmake/aarch64-linux-gnu.cmake"
    steps: dict[str, Callable[[], list[Part]]] = {
        f"libraries for {NATIVE}": lambda: parts.libraries(work, NATIVE, "gcc", None),
        "libraries for aarch64": lambda: parts.libraries(work, "aarch64", *cross),
        "Debian packages": lambda: parts.debian(work),
        "wheel": lambda: parts.wheel(work),
        "crate": lambda: parts.crate(work),
    }
    for name, step in steps.items():
        begun = time.monotonic()
        print(f"dist: {name}", end="", flush=True)
        made += step()
        print(f" ({time.monotonic() - begun:.0f} s)")
    describe(release, made, work)
    return out


def describe(release: Release, made: list[Part], work: Work) -> None:
    print("dist: list of contents, notes, sums")
    shared = f"/lib/libhakmem.so.{release.version}"
    held = [member for part in made for member in archives.members(part.file)]
    glibc = contents.needed_glibc([data for name, data in held if name.endswith(shared)])
    changelog = (work.source / "CHANGELOG.md").read_text()
    document = contents.contents(release, made)
    contents.write_contents(document, work.out / f"{release.name}.spdx.json")
    (work.out / NOTES).write_text(contents.notes(release, made, glibc, changelog))
    (work.out / SUMS).write_text(contents.sums(work.out))


def main() -> int:
    os.umask(0o022)
    try:
        _refuse_what_cannot_be()
        release = _of_head()
        to = ROOT / "build/dist" / release.name
        with tempfile.TemporaryDirectory(prefix="hakmem-dist-") as folder:
            made = make(release, Path(folder))
            shutil.rmtree(to, ignore_errors=True)
            shutil.copytree(made, to)
    except Failed as why:
        print(f"\ndist: {why}", file=sys.stderr)
        return 1
    for file in sorted(to.iterdir()):
        print(f"{file.stat().st_size / 1024:9.0f} KiB  {file.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
