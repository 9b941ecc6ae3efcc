#!/usr/bin/env python3
"""Sees to it that each row that the baseline says is lost has a reason, and each reason a row.

docs/benchmarks/losses.md names rows by patterns and their measures: `pair-*` (time, peak memory).
Exit status: 0 all have, 1 some have not."""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GROUP = re.compile(r"((?:`[^`]+`\s*)+)\(([^)]*)\)")
LOSS = re.compile(r"^\| `([^`]+)` \| ([^|]+) \|", re.MULTILINE)


def main() -> int:
    losses = lost((ROOT / "docs/benchmarks.md").read_text())
    reasons = given((ROOT / "docs/benchmarks/losses.md").read_text())
    used = set()
    wrong = [] if losses and reasons else ["no losses, or no reasons: are the pages as expected?"]
    for row, measure in losses:
        why = {(glob, of) for glob, of in reasons if measure in of and fnmatchcase(row, glob)}
        used |= why
        if not why:
            wrong.append(f"no reason: {row}, {measure}")
    wrong += [f"not lost: {glob} ({', '.join(of)})" for glob, of in sorted(reasons - used)]
    for line in wrong:
        print(line)
    print(f"{len(losses)} losses, {len(reasons)} patterns of reasons, {len(wrong)} wrong")
    return 1 if wrong else 0


def lost(report: str) -> list[tuple[str, str]]:
    part = report[report.index("### Losses") :]
    return [(row, measure.strip()) for row, measure in LOSS.findall(part)]


def given(page: str) -> set[tuple[str, tuple[str, ...]]]:
    """Patterns, each with its measures, of the paragraphs that begin with "Rows:"."""
    return {
        (glob, tuple(re.split(r",\s*", measures.replace("\n", " "))))
        for paragraph in page.split("\n\n")
        if paragraph.startswith("Rows:")
        for globs, measures in GROUP.findall(paragraph)
        for glob in re.findall(r"`([^`]+)`", globs)
    }


if __name__ == "__main__":
    sys.exit(main())
