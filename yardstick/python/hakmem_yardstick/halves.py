"""Which rows may tune the allocator, and which only judge it (halves.tsv).

yardstick/tools/halves.py draws the halves by lot; yardstick/docs/judge.md says what they are for.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

TABLE = Path(__file__).resolve().with_name("halves.tsv")
TUNING, JUDGING = HALVES = ("tuning", "judging")


def read() -> dict[str, str]:
    """The half of each row."""
    with TABLE.open(newline="") as file:
        return {line["row"]: line["half"] for line in csv.DictReader(file, dialect="excel-tab")}


def write(half: Mapping[str, str]) -> None:
    lines = ["row\thalf", *(f"{row}\t{name}" for row, name in half.items())]
    TABLE.write_text("\n".join(lines) + "\n")
