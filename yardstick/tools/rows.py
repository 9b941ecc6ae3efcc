#!/usr/bin/env python3
"""Makes rows.tsv of hakmem_yardstick from the suite: what `hakmem bench --list` prints, and which
rows may tune the allocator and which judge it (`hakmem bench --half tuning`, yardstick/judge).

Usage: yardstick/tools/rows.py SUITE [--check], where SUITE is build/release/bench/suite; --check
writes nothing and fails when the file is not what it would make.

The rows of a family (those that differ in one parameter) are shuffled and dealt out in turn, and
the families of a group one after the other, so that each half has rows of all kinds. A row that the
file has keeps its half: it may have tuned the allocator already.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "yardstick/python"))

from hakmem_yardstick.listing import HALVES, TABLE, halves, table
from hakmem_yardstick.model import Row, by_group
from hakmem_yardstick.parts import runners

SEED = "the judge, 2026-11"


def dealt(rows: Iterable[Row], known: Mapping[str, str]) -> dict[str, str]:
    """By row, in the order of the rows."""
    rows = list(rows)
    found = {row.name: known[row.name] for row in rows if row.name in known}
    for group, members in by_group(row for row in rows if row.name not in known).items():
        lot = Random(f"{SEED}/{group}")
        at = lot.randrange(len(HALVES))
        for _, family in groupby(sorted(members, key=_family), key=_family):
            for name in lot.sample(names := sorted(row.name for row in family), len(names)):
                found[name] = HALVES[at % len(HALVES)]
                at += 1
    return {row.name: found[row.name] for row in rows}


def _family(row: Row) -> str:
    return row.family


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--check"]):
        sys.exit(__doc__)
    rows = [row for runner in runners(Path(sys.argv[1]).parent) for row in runner.rows()]
    made = table(rows, dealt(rows, halves()))
    if not sys.argv[2:]:
        TABLE.write_text(made)
    elif TABLE.read_text() != made:
        sys.exit(f"{TABLE} is not up to date: run yardstick/tools/rows.py SUITE")


if __name__ == "__main__":
    main()
