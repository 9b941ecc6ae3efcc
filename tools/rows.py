#!/usr/bin/env python3
"""Makes python/hakmem/bench/rows.tsv, which `hakmem bench --list` prints, from the built suite.

Usage: tools/rows.py SUITE [--check], as in tools/rows.py build/release/bench/suite; --check writes
nothing and fails when the file is not what it would make.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from hakmem.bench.listing import TABLE, table
from hakmem.bench.suite import Suite


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--check"]):
        sys.exit(__doc__)
    made = table(Suite(Path(sys.argv[1]).parent).rows())
    if not sys.argv[2:]:
        TABLE.write_text(made)
    elif TABLE.read_text() != made:
        sys.exit(f"{TABLE} is not what tools/rows.py makes: run tools/rows.py SUITE")


if __name__ == "__main__":
    main()
