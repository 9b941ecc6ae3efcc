"""Estimates of a real program's profile against exact counts of the same run (truth.py). What is
asked is so much that it does not fail by chance: a right estimate is further away once in 10^8."""

from __future__ import annotations

import math
import shutil
import statistics
from pathlib import Path

import pytest

from tests.profile import truth

SIGMAS = 6.0
RATE = 4096
WORK = """
import json
texts = [json.dumps({str(i): [i] * 10}) for i in range(20000)]
kept = {str(i): (i, str(i) * 3) for i in range(30000)}
"""


@pytest.mark.parametrize("after", [0, 20000])
def test_python(programs: Path, library: Path, tmp_path: Path, after: int) -> None:
    python = shutil.which("/usr/bin/python3")
    if python is None:
        pytest.skip("there is no /usr/bin/python3")
    counter = programs / "libprofile_exact.so"
    errors = (truth.Errors(), truth.Errors())
    program = ["/usr/bin/env", "PYTHONMALLOC=malloc", python, "-c", WORK]
    truth.run(program, counter, library, tmp_path, RATE, after)
    assert truth.compare(tmp_path, counter, errors) >= 1
    allocated, _ = errors
    assert allocated.exact > 8 * 2**20 and len(allocated.scaled) > 10
    for one in errors:
        assert abs(one.total_scaled()) < SIGMAS, one.lines()
    mean = statistics.mean(allocated.scaled)
    assert abs(mean) < SIGMAS / math.sqrt(len(allocated.scaled)), allocated.lines()
    assert max(map(abs, allocated.scaled)) < 2 * SIGMAS, allocated.lines()
