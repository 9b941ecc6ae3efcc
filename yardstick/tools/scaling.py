#!/usr/bin/env python3
"""Counts how often threads meet: visits to what they share, by rows of the suite, 1 to 64 threads.

A malloc or a free touches nothing that another thread writes, but for its visits to a shard or a
transfer cache, when a stack is empty or full. So visits for 1000 operations say how work scales on
many processors, where there are none to measure it on.

Usage: yardstick/tools/scaling.py [--write]; with --write the table goes into docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
PAGE = ROOT / "docs/performance.md"
BEGIN, END = "<!-- scaling -->", "<!-- end of scaling -->"
THREADS = (1, 2, 4, 8, 16, 32, 64)
ROWS = {
    "local": "own blocks",
    "remote": "each frees its neighbour's",
}
TELLER = """
#include <stdio.h>
#include <hakmem/hakmem.h>
__attribute__((destructor)) static void tell(void)
{
    struct hakmem_stats s;
    hakmem_stats(&s, sizeof s);
    fprintf(stderr, "visits %zu\\n", s.refills + s.flushes);
}
"""


def teller(folder: Path) -> Path:
    library = folder / "teller.so"
    include = str(ROOT / "include")
    command = ["cc", "-shared", "-fPIC", "-O2", "-I", include, "-xc", "-", "-o", str(library)]
    subprocess.run(command, input=TELLER, text=True, check=True)
    return library


def visits(row: str, preloaded: str) -> float:
    """For 1000 operations, those of the start among them."""
    done = subprocess.run(
        [BUILD / "bench/suite", row],
        env={**os.environ, "LD_PRELOAD": preloaded},
        capture_output=True,
        text=True,
        check=True,
    )
    said = next(line for line in done.stderr.splitlines() if line.startswith("visits "))
    return 1000 * int(said.split()[1]) / int(json.loads(done.stdout)["operations"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    lines = [
        "| threads | " + " | ".join(str(n) for n in THREADS) + " |",
        "|---|" + "---:|" * len(THREADS),
    ]
    with tempfile.TemporaryDirectory() as folder:
        preloaded = f"{teller(Path(folder))}:{BUILD / 'libhakmem.so'}"
        for row, what in ROWS.items():
            figures = [f"{visits(f'{row}-{n}t', preloaded):.3g}" for n in THREADS]
            lines.append(f"| `{row}`: {what} | " + " | ".join(figures) + " |")
    table = "\n".join(lines)
    print(table)
    if arguments.write:
        before, rest = PAGE.read_text().split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
