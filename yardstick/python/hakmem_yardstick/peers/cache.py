"""Where peers are kept once they are had, and how they get there: whole, or not at all. And what
all that is built by `hakmem bench` is built with."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

Say = Callable[[str], None]


class Unobtainable(Exception):
    """A peer that can't be had here: why, and what to do."""


def user_folder() -> Path:
    """The user's, for all that sessions share."""
    # The specification has relative paths ignored.
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "hakmem" / "bench"


def folder(build: Path) -> Path:
    """In a clone beside what is built, else in the user's cache; `build` holds our library."""
    clone = build.resolve().parent
    if (clone.parent / "CMakePresets.json").is_file():
        return clone / "peers"
    return user_folder() / "peers"


def place(made: Path, to: Path) -> None:
    """Renames a finished folder; where another process was first, its one stays."""
    try:
        made.rename(to)
    except OSError:
        if not to.is_dir():
            raise
        shutil.rmtree(made, ignore_errors=True)


def wiped_environment() -> dict[str, str]:
    """For tools that fetch and build: nothing that would change what is built (CFLAGS, LD_PRELOAD),
    everything by which they reach their registries."""
    changing = ("LD_", "MALLOC_", "MAKE", "GCC_", "RUSTFLAGS", "CMAKE_", "NINJA")
    flags = {"CC", "CXX", "CPPFLAGS", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CPATH", "LIBRARY_PATH"}
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(changing) and name not in flags
    }
    return {**kept, "LC_ALL": "C.UTF-8"}


def call(
    command: list[str], folder: Path, patience: float, variables: Mapping[str, str] | None = None
) -> str:
    """What a tool prints that fetches or unpacks. Raises Unobtainable with the end of what it says
    where it fails."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**wiped_environment(), **(variables or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patience,
        )
    except subprocess.TimeoutExpired:
        raise Unobtainable(f"{' '.join(command)} took over {patience:.0f} s") from None
    if done.returncode != 0:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        why = "; ".join(said[-3:]) or "it said nothing"
        raise Unobtainable(f"{' '.join(command)} failed: {why}")
    return done.stdout
