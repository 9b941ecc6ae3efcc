"""How many instructions an allocation and a free execute more while a profile is on: as many as
docs/profile.md says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hakmem import callgrind
from tests.counts.callgrind import skip_without_valgrind
from tests.ran import clean_environment, ran

PAGE = Path(__file__).resolve().parents[2] / "docs" / "profile.md"
ROWS = {"up to 640": (16, 640), "up to 32 KiB": (641, 32768), "more": (65536,)}
BLOCKS = 3200
DRAWS = 3


def _said() -> dict[str, tuple[int, int]]:
    rows = re.findall(r"^\| (up to .+?|more) \| (\d+) to (\d+) \|", PAGE.read_text(), re.MULTILINE)
    return {name: (int(least), int(most)) for name, least, most in rows}


@pytest.mark.parametrize("pattern", ["same", "batch"])
@pytest.mark.parametrize("row", ROWS)
def test_instructions(
    row: str, pattern: str, programs: Path, library: Path, tmp_path: Path
) -> None:
    skip_without_valgrind()
    program = programs / "profile_plant_cost"

    def executed(bytes_: int, blocks: int, settings: dict[str, str]) -> int:
        out = tmp_path / "callgrind"
        done = ran(
            *callgrind.command(out),
            str(program),
            pattern,
            str(bytes_),
            str(blocks),
            env=clean_environment() | {"LD_PRELOAD": str(library)} | settings,
        )
        assert done.returncode == 0, done.stderr
        return int(out.read_text().rpartition("totals: ")[2].split()[0])

    def each(bytes_: int, settings: dict[str, str]) -> float:
        """Without the process's start and end."""
        more = executed(bytes_, 3 * BLOCKS, settings) - executed(bytes_, BLOCKS, settings)
        return more / (2 * BLOCKS)

    on = {"HAKMEM_PROFILE": "on", "HAKMEM_PROFILE_RATE": "1G"}  # samples are rare
    least, most = _said()[row]
    for bytes_ in ROWS[row]:
        off = each(bytes_, {})
        # Where the stack begins decides which blocks are samples, should one be.
        found = []
        for draw in range(DRAWS):
            found.append(each(bytes_, on | {"DRAW": 16 * draw * "x"}) - off)
            if least <= found[-1] <= most:
                break
        assert least <= found[-1] <= most, (pattern, bytes_, found)
