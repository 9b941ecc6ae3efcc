"""Addresses of small processes, beside the system's malloc: about 2 MiB more.

A limit of addresses counts them, and one of locked memory under mlockall."""

import re
from pathlib import Path

from tests.ran import clean_environment, ran

MORE = 2048  # KiB


def said(*command: str | Path, library: Path | None = None) -> str:
    preload = {"LD_PRELOAD": str(library)} if library else {}
    return ran(*command, env=clean_environment() | preload, check=True).stdout


def test_a_program_that_allocates_little(programs: Path, library: Path) -> None:
    program = programs / "limits_addresses"
    plain = [int(n) for n in said(program).split()]
    ours = [int(n) for n in said(program, library=library).split()]
    for before, after in zip(plain, ours, strict=True):
        assert before < after <= before + MORE


def test_a_program_of_the_system(library: Path) -> None:
    """Every class that a program uses has 64 KiB of addresses: cat uses some twenty."""

    def size(of: str, preload: Path | None = None) -> int:
        found = re.search(rf"{of}:\s*(\d+) kB", said("cat", "/proc/self/status", library=preload))
        assert found
        return int(found[1])

    assert size("VmPeak") < size("VmPeak", library) <= size("VmPeak") + MORE + 256
    assert size("VmPTE", library) <= size("VmPTE") + 32
