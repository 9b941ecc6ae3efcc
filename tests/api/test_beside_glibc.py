"""What calls return and leave in errno, with hakmem and with glibc's malloc: the same. malloc_stats
prints first what glibc's prints, with other numbers.

Usage: test_beside_glibc.py PROGRAM LIBRARY
"""

import difflib
import os
import re
import subprocess
import sys

LEAST_LINES = 1000


def lines(program: str, preload: str) -> tuple[list[str], list[str]]:
    """Of the calls, and of malloc_stats without the numbers."""
    settings = ("HAKMEM_", "MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")
    env = {name: value for name, value in os.environ.items() if not name.startswith(settings)}
    done = subprocess.run(
        [program], env=env | {"LD_PRELOAD": preload}, check=True, capture_output=True, text=True
    )
    stats = [re.sub(r"[ \d]{10}$", "#", line) for line in done.stderr.splitlines()]
    return done.stdout.splitlines(), stats


def main() -> None:
    glibc, wanted = lines(sys.argv[1], "")
    hakmem, stats = lines(sys.argv[1], sys.argv[2])
    differences = [
        *difflib.unified_diff(glibc, hakmem, "glibc", "hakmem", lineterm="", n=0),
        *difflib.unified_diff(wanted, stats[: len(wanted)], "glibc", "hakmem", lineterm="", n=0),
    ]
    print("\n".join(differences[:100]))
    print(f"{len(glibc)} calls, {len(wanted)} lines of malloc_stats")
    if differences or len(glibc) < LEAST_LINES or len(wanted) < 5:
        sys.exit(1)


if __name__ == "__main__":
    main()
