"""Addresses of small processes, beside the system's malloc: about 2 MiB more.

A limit of addresses counts them, and one of locked memory under mlockall."""

import os
import re

from tests.ran import ran

PROGRAM = os.environ["ADDRESSES"]
LIBRARY = os.environ["LIBRARY"]
MORE = 2048  # KiB


def said(*command: str, library: str = "") -> str:
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    if library:
        environment["LD_PRELOAD"] = library
    done = ran(*command, env=environment, check=True)
    return done.stdout


def test_a_program_that_allocates_little() -> None:
    plain = [int(n) for n in said(PROGRAM).split()]
    ours = [int(n) for n in said(PROGRAM, library=LIBRARY).split()]
    for before, after in zip(plain, ours, strict=True):
        assert before < after <= before + MORE


def test_a_program_of_the_system() -> None:
    """Every class that a program uses has 64 KiB of addresses: cat uses some twenty."""

    def size(library: str = "") -> int:
        found = re.search(r"VmSize:\s*(\d+) kB", said("cat", "/proc/self/status", library=library))
        assert found
        return int(found[1])

    assert size() < size(LIBRARY) <= size() + MORE + 256
