"""A hardened heap chooses by chance where slabs lie. Where addresses are few it leaves the program
some: each run has another chance."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

KIB = 18000
LEFT = 4096  # for what the program maps
RUNS = 50
# It uses the heap, as its words are in blocks of many sizes, and then maps files.
PROGRAM = f"""
ulimit -v {KIB} || exit 77
LD_PRELOAD=$0 HAKMEM_PRESET=hardened ls -l /proc/self/ >/dev/null &&
LD_PRELOAD=$0 HAKMEM_PRESET=hardened sed -n '/^VmSize:/p' /proc/self/status
"""


def test_a_hardened_program_within_few_addresses(library: Path) -> None:
    for _ in range(RUNS):
        done = subprocess.run(
            ["sh", "-c", PROGRAM, str(library)],
            capture_output=True,
            text=True,
            env=os.environ | {"LC_ALL": "C"},
        )
        assert (done.returncode, done.stderr) == (0, "")
        size = re.fullmatch(r"VmSize:\s+(\d+) kB\n", done.stdout)
        assert size is not None and int(size[1]) <= KIB - LEFT, done.stdout
