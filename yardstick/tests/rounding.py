#!/usr/bin/env python3
"""What tools/rounding.py records is what a program asks for: known blocks, a child's, C++."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from yardstick.tools.rounding import Figures, environment, read

# Blocks of 100 bytes lie in ones of 112.
BLOCKS = 100_000
ASKED, USABLE = 100, 112
# The peak is noted when it is a thousandth higher than the last.
NEARLY = 0.002


def recorded(folder: Path, how: str, function: str = "malloc") -> Figures:
    with tempfile.TemporaryDirectory() as files:
        library = str(folder / "librounding.so")
        surroundings = {**os.environ, "LD_PRELOAD": library, **environment(Path(files))}
        subprocess.run([folder / "rounding_known", how, function], env=surroundings, check=True)
        found = read(Path(files))
    assert len(found) == 1, found
    return next(iter(found.values()))


def check(what: str, figure: int, expected: int) -> None:
    print(f"{what}: {figure}, expected {expected}")
    if abs(figure - expected) > expected * NEARLY:
        sys.exit(f"FAIL: {what}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    folder = (parser.parse_args().build / "yardstick/tests").resolve(strict=True)
    nothing = recorded(folder, "nothing")
    for function in ("malloc", "_Znwm"):
        once = recorded(folder, "once", function)
        check(f"{function}: asked", once.all_asked - nothing.all_asked, BLOCKS * ASKED)
        check(f"{function}: usable", once.all_usable - nothing.all_usable, BLOCKS * USABLE)
        check(f"{function}: peak asked", once.peak_asked, BLOCKS * ASKED)
        check(f"{function}: peak usable", once.peak_usable, BLOCKS * USABLE)
    freed = recorded(folder, "freed")
    check("freed: at the peak", freed.peak_asked, BLOCKS * ASKED)
    check("freed: of all", freed.all_usable - nothing.all_usable, 5 * BLOCKS * USABLE)
    twice = recorded(folder, "twice")
    # The child's peak has the parent's blocks too.
    check("with a child", twice.peak_usable, 3 * BLOCKS * USABLE)
    check("with a child, of all", twice.all_usable - nothing.all_usable, 2 * BLOCKS * USABLE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
