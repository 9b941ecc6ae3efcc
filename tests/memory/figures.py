"""Runs the programs of this folder, and reads the `name=value` lines that they print."""

import re
from pathlib import Path

from tests.ran import clean_environment, ran

SKIPPED = 77


class Failed(Exception):
    pass


def figures(command: list[str], environment: dict[str, str]) -> dict[str, float] | None:
    """None when the program says that it can't be run here."""
    done = ran(*command, env=environment)
    if done.returncode == SKIPPED:
        return None
    if done.returncode:
        raise Failed(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    return {name: float(value) for name, value in re.findall(r"(?m)^(\w+)=(\S+)$", done.stdout)}


def plain_environment() -> dict[str, str]:
    """Ours, less what would configure an allocator or another locale."""
    return clean_environment("LC_", "LANG")


def program(build: Path, name: str) -> str:
    return str((build / "tests" / "memory" / name).resolve(strict=True))
