"""Runs a program to its end and keeps what it says."""

import os
import subprocess
from pathlib import Path
from typing import Any

SECONDS = 1800  # for what hangs, as ctest has it


def ran(
    *words: str | Path, timeout: float = SECONDS, **more: Any
) -> subprocess.CompletedProcess[str]:
    """With nothing to read. `more`: as of subprocess.run."""
    more.setdefault("stdin", None if "input" in more else subprocess.DEVNULL)
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout, **more)


def clean_environment(*more: str) -> dict[str, str]:
    """Ours without what would set up an allocator, and what begins with one of `more`."""
    settings = ("HAKMEM_", "MALLOC_", "GLIBC_TUNABLES", "LD_", *more)
    return {name: value for name, value in os.environ.items() if not name.startswith(settings)}
