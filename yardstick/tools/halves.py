#!/usr/bin/env python3
"""Draws which rows of the benchmarks may tune the allocator and which judge it: halves.tsv of
hakmem_yardstick, which `hakmem bench --half tuning` and the judge (yardstick/judge) read.

Usage: yardstick/tools/halves.py SUITE [--check], where SUITE is build/release/bench/suite; --check
writes nothing and fails when a row has no half.

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

from hakmem_yardstick import halves
from hakmem_yardstick.halves import HALVES
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
    known = halves.read() if halves.TABLE.exists() else {}
    made = dealt(rows, known)
    if not sys.argv[2:]:
        halves.write(made)
    elif made != known:
        sys.exit(f"{halves.TABLE} is not up to date: run yardstick/tools/halves.py SUITE")


if __name__ == "__main__":
    main()
