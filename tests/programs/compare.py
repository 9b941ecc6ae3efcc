"""Compares what two runs of a case left behind, and says in words where they differ."""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

SHOWN_FILES = 6
SHOWN_LINES = 10
SHOWN_COLUMNS = 160
DIFF_BYTES = 1 << 20


def differences(left: Path, right: Path, may_differ: Sequence[str]) -> list[str]:
    """One entry per file that is missing on a side or holds other bytes; empty when all agree.

    Files that match a pattern of `may_differ` need only exist on both sides or neither, unless
    the pattern ends in a star: then their names may differ too.
    """
    one, two = listing(left, may_differ), listing(right, may_differ)
    found: list[str] = []
    for name in sorted(one.keys() | two.keys()):
        if name not in two:
            found.append(f"{name}: only in {left}")
        elif name not in one:
            found.append(f"{name}: only in {right}")
        elif one[name] != two[name]:
            found.append(explain(name, left / name, right / name))
    return found


def listing(folder: Path, may_differ: Sequence[str]) -> dict[str, str]:
    """Path below `folder` -> hash of the contents (of the target's name for a link)."""
    found: dict[str, str] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            short = str(path.relative_to(folder))
            patterns = [p for p in may_differ if fnmatch.fnmatch(short, p)]
            if any(p.endswith("*") for p in patterns):
                continue
            found[short] = "not compared" if patterns else digest(path)
    return found


def digest(path: Path) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    if not path.is_file():
        return "not a regular file"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def explain(name: str, left: Path, right: Path) -> str:
    """The first differing lines of two texts, or sizes and first differing byte of other files."""
    sizes = f"{left.stat().st_size} and {right.stat().st_size} bytes"
    one, two = read(left), read(right)
    if b"\0" in one[:8192] or b"\0" in two[:8192]:
        first = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), None)
        where = f"first difference at byte {first}" if first is not None else "one is a prefix"
        return f"{name}: {sizes}, {where}"
    lines = difflib.unified_diff(
        one.decode(errors="replace").splitlines(),
        two.decode(errors="replace").splitlines(),
        "without", "with the library", lineterm="", n=1,
    )  # fmt: skip
    return "\n".join([f"{name}: {sizes}", *shorten(lines)])


def read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(DIFF_BYTES)


def shorten(lines: Iterable[str]) -> list[str]:
    shown: list[str] = []
    for line in lines:
        if len(shown) == SHOWN_LINES:
            return [*shown, "    ..."]
        shown.append("    " + line[:SHOWN_COLUMNS])
    return shown


def report(found: Sequence[str]) -> str:
    more = len(found) - SHOWN_FILES
    text = "\n".join(f"  {entry}" for entry in found[:SHOWN_FILES])
    return text + (f"\n  and {more} more files" if more > 0 else "")
