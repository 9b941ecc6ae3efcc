#!/usr/bin/env python3
"""What tools/rounding.py records is what programs ask for: known blocks, a child's, C++."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.rounding import Figures, environment, read

# Blocks of 100 bytes lie in ones of 112.
BLOCKS = 100_000
ASKED, USABLE = 100, 112
OTHERS = 256 * 1024  # what the interpreter itself asks for at other moments, at most
CODE = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
take = getattr(libc, sys.argv[1])
take.restype = ctypes.c_void_p
blocks = [None] * 100000
def work():
    for i in range(100000):
        blocks[i] = take(ctypes.c_size_t(100))
if sys.argv[2] == "twice":
    work()
    if os.fork() == 0:
        work()
        os._exit(0)
    os.wait()
elif sys.argv[2] == "freed":
    for _ in range(5):
        work()
        for block in blocks:
            libc.free(block)
elif sys.argv[2] == "once":
    work()
"""


def recorded(library: Path, how: str, function: str = "malloc") -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        surroundings = {**os.environ, "LD_PRELOAD": str(library), **environment(Path(folder))}
        # The interpreter's own blocks come from elsewhere, but for a few.
        surroundings["PYTHONMALLOC"] = "pymalloc"
        surroundings["PYTHONHASHSEED"] = "0"
        command = [sys.executable, "-I", "-S", "-c", CODE, function, how]
        subprocess.run(command, env=surroundings, check=True)
        found = read(Path(folder))
    assert len(found) == 1, found
    return next(iter(found.values()))


def check(what: str, figure: int, expected: int) -> None:
    print(f"{what}: {figure}, expected {expected}")
    if not expected - OTHERS <= figure <= expected + OTHERS:
        sys.exit(f"FAIL: {what}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    library = (parser.parse_args().build / "tests/memory/librounding.so").resolve(strict=True)
    nothing = recorded(library, "nothing")
    for function in ("malloc", "_Znwm"):
        once = recorded(library, "once", function)
        check(f"{function}: asked", once.peak_asked - nothing.peak_asked, BLOCKS * ASKED)
        check(f"{function}: usable", once.peak_usable - nothing.peak_usable, BLOCKS * USABLE)
    freed = recorded(library, "freed")
    check("freed: at the peak", freed.peak_asked - nothing.peak_asked, BLOCKS * ASKED)
    check("freed: of all", freed.all_usable - nothing.all_usable, 5 * BLOCKS * USABLE)
    twice = recorded(library, "twice")
    # The child's peak has the parent's blocks too.
    child = 2 * BLOCKS * USABLE + nothing.peak_usable
    check("a child's", twice.peak_usable - once.peak_usable, child)
    return 0


if __name__ == "__main__":
    sys.exit(main())
