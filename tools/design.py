#!/usr/bin/env python3
"""Makes the table of locks in docs/design.md from src/os/lock.h.

Usage: tools/design.py [--check]; --check writes nothing and fails when the page is not what it
would make.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RANKS = ROOT / "src/os/lock.h"
PAGE = ROOT / "docs/design.md"
BEGIN, END = "<!-- locks: made by tools/design.py -->\n", "<!-- end of the locks -->\n"
RANK = re.compile(r'\bRANK\([A-Z]+, "([^"]+)",\s*\\?\s*"([^"]+)"\)')


def table() -> str:
    ranks = RANK.findall(re.sub(r"\\\n", "\n", RANKS.read_text()))
    rows = (f"| {number} | {word} | {what} |\n" for number, (word, what) in enumerate(ranks, 1))
    return "| rank | lock | what it is for |\n|---:|---|---|\n" + "".join(rows)


def page() -> str:
    before, rest = PAGE.read_text().split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


def main() -> None:
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: tools/design.py [--check]")
    if not sys.argv[1:]:
        PAGE.write_text(page())
    elif PAGE.read_text() != page():
        sys.exit(f"{PAGE} is not what tools/design.py makes: run tools/design.py")


if __name__ == "__main__":
    main()
