"""How much of the library's code a small process has mapped. The kernel maps 64 KiB around each
page that is touched, so this grows by that when a function that most programs execute, or a
constant that it reads, lies elsewhere: `make layout-update` puts it back."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ran import clean_environment

WINDOW = 64 << 10
# Of data that is written only while the library is loaded, a page or two.
MOST = WINDOW + (8 << 10)
PROGRAM = """
import json, sys
json.dumps([{i: "x" * i} for i in range(500)])
print(flush=True)
sys.stdin.read()
"""


def test_code_that_a_small_process_maps(library: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-S", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environment() | {"LD_PRELOAD": str(library)},
    ) as python:
        assert python.stdin is not None and python.stdout is not None
        python.stdout.readline()  # it has done its work
        smaps = Path(f"/proc/{python.pid}/smaps").read_text()
        python.stdin.close()
    mappings = re.findall(
        rf"^(\w+)-\w+ (r-[x-])p .*{re.escape(library.resolve().name)}\n(?:.*\n)*?Rss: +(\d+) kB",
        smaps,
        re.MULTILINE,
    )
    assert mappings, smaps
    print(mappings)
    if int(mappings[0][0], 16) % WINDOW != 0:
        pytest.skip("this libc places libraries at any page")
    assert sum(int(kib) << 10 for _, _, kib in mappings) <= MOST
