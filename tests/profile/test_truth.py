"""Estimates of a real program's profile, site by site, beside the exact figures that the same work
gives where each block is a sample. What is asked is so much that it does not fail by chance: a
right estimate is further away once in 10^8."""

from __future__ import annotations

import math
import shutil
import statistics
from collections import defaultdict
from pathlib import Path

import pytest

from hakmem import heap_profile
from tests.ran import clean_environment, ran

SIGMAS = 6.0
RATE = 4096
ENOUGH = 10 * RATE  # bytes, below which an estimate is not nearly normal
ALLOCATED, IN_USE = 3, 1  # of a site's figures
WORK = """
import ctypes, json, sys
hakmem = ctypes.CDLL(None)
before = [str(i) * 3 for i in range(int(sys.argv[1]))]
assert hakmem.hakmem_profile_start() == 0
texts = [json.dumps({str(i): [i] * 10}) for i in range(20000)]
kept = {str(i): (i, str(i) * 3) for i in range(30000)}
del texts[::2], before
with open(sys.argv[2], "w") as file:
    assert hakmem.hakmem_profile_write(file.fileno()) == 0
"""
Sums = dict[tuple[tuple[str, int], ...], tuple[list[float], list[float]]]


def sums(library: Path, rate: int, after: int, to: Path) -> Sums:
    """By call stack, as places in files: figures, and the squares of their standard errors."""
    variables = {
        "LD_PRELOAD": str(library),
        "PYTHONMALLOC": "malloc",
        "PYTHONHASHSEED": "0",
        "HAKMEM_PROFILE_RATE": str(rate),
        "HAKMEM_PROFILE_SAMPLES": "0",
        "HAKMEM_PROFILE_SCRIPTS": "off",
    }
    words = ["/usr/bin/python3", "-S", "-c", WORK, str(after), str(to)]
    done = ran(*words, env=clean_environment("PYTHON") | variables)
    assert done.returncode == 0, done.stderr
    profile = heap_profile.read(to)
    found: Sums = defaultdict(lambda: ([0.0] * 6, [0.0] * 6))
    for site in profile.sites:
        maps = [(profile.mapping_of(address), address) for address in site.stack]
        stack = tuple((one.path, at - one.start) if one else ("", at) for one, at in maps)
        figures, squares = found[stack]
        for which in ALLOCATED, IN_USE:
            figures[which] += site.figures[which]
            squares[which] += site.errors[which] ** 2
    return found


@pytest.mark.parametrize("after", [0, 20000])
def test_python(library: Path, tmp_path: Path, after: int) -> None:
    if shutil.which("/usr/bin/python3") is None:
        pytest.skip("there is no /usr/bin/python3")
    exact = sums(library, 1, after, tmp_path / "exact.heap")
    estimated = sums(library, RATE, after, tmp_path / "estimated.heap")
    assert all(squares[ALLOCATED] == 0 for _, squares in exact.values())
    assert estimated.keys() <= exact.keys()
    for which in ALLOCATED, IN_USE:
        difference = sum(estimated[stack][0][which] - exact[stack][0][which] for stack in exact)
        error = math.sqrt(sum(squares[which] for _, squares in estimated.values()))
        assert abs(difference) < SIGMAS * error, (which, difference, error)
    scaled = [
        (estimated[stack][0][ALLOCATED] - figures[ALLOCATED])
        / max(math.sqrt(estimated[stack][1][ALLOCATED]), figures[ALLOCATED] / 1000)
        for stack, (figures, _) in exact.items()
        if figures[ALLOCATED] > ENOUGH
    ]
    assert sum(figures[ALLOCATED] for figures, _ in exact.values()) > 8 * 2**20
    assert len(scaled) > 10
    assert abs(statistics.mean(scaled)) < SIGMAS / math.sqrt(len(scaled)), scaled
    assert max(map(abs, scaled)) < 2 * SIGMAS, scaled
