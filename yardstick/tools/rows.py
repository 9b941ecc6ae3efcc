#!/usr/bin/env python3
"""Makes rows.tsv of hakmem_yardstick, which `hakmem bench --list` prints, from the built suite.

Usage: yardstick/tools/rows.py SUITE [--check], where SUITE is build/release/bench/suite; --check
writes nothing and fails when the file is not what it would make.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "yardstick/python"))

from hakmem_yardstick.listing import TABLE, table
from hakmem_yardstick.suite import Suite


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--check"]):
        sys.exit(__doc__)
    made = table(Suite(Path(sys.argv[1]).parent).rows())
    if not sys.argv[2:]:
        TABLE.write_text(made)
    elif TABLE.read_text() != made:
        sys.exit(f"{TABLE} is not up to date: run yardstick/tools/rows.py SUITE")


if __name__ == "__main__":
    main()
