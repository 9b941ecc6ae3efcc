#!/usr/bin/env python3
"""Looks for links in Markdown that lead nowhere: to files that git does not know, to headings or
anchors that a page does not have. Exit status: 0 none, 1 some."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)  # fmt: skip
    files = {ROOT / name for name in listed.stdout.split("\0") if name}
    known = files | {parent for file in files for parent in file.parents}
    pages = sorted(file for file in files if file.suffix == ".md" and file.exists())
    dead = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in LINK.findall(FENCED.sub("", page.read_text()))
        if not _alive(page, target, known)
    ]
    for line in dead:
        print(f"leads nowhere: {line}")
    print(f"{len(pages)} pages, {len(dead)} dead links")
    return 1 if dead else 0


def _alive(page: Path, target: str, known: set[Path]) -> bool:
    if re.match(r"[a-z]+:", target):
        return True
    name, _, heading = target.partition("#")
    file = (page.parent / name).resolve() if name else page
    return file in known and (not heading or heading in _headings(file))


def _headings(page: Path) -> set[str]:
    """As links name them: in small letters, without signs, with - for a space."""
    words = FENCED.sub("", page.read_text())
    found = set(re.findall(r'<a id="([^"]+)">', words))
    for heading in re.findall(r"^#+ (.*)$", words, re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
    return found


if __name__ == "__main__":
    sys.exit(main())
