#!/usr/bin/env python3
"""What starting a program costs under hakmem.

`/bin/true`, which allocates nothing, and `/bin/echo`, whose locale allocates, must stay within
128 KiB and 300 microseconds of the processor of what they need without.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.memory.figures import SKIPPED, figures, plain_environment, program

KIB = 1024
MOST_BYTES = 128 * KIB
MOST_MICROSECONDS = 300


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--rounds", type=int, default=1000, help="of each, in turn")
    options = parser.parse_args()
    library = str((options.build / "libhakmem.so").resolve(strict=True))

    over: list[str] = []
    for path in ("/bin/true", "/bin/echo"):
        print(path)
        found = measure(program(options.build, "start"), library, path, options.rounds)
        if found is None:
            print("no process may trace another here")
            return SKIPPED
        over += [f"{path}: {line}" for line in found]
    for line in over:
        print(line)
    return 1 if over else 0


def measure(start: str, library: str, path: str, rounds: int) -> list[str] | None:
    """Prints the figures; returns what is over its bound."""
    memory = figures([start, "memory", library, path], plain_environment())
    time = figures([start, "time", library, path, "--rounds", str(rounds)], plain_environment())
    if memory is None or time is None:
        return None
    over = []
    for name in ("anonymous", "private_dirty", "resident"):
        without = memory[f"{name}_without"]
        more = memory[f"{name}_with"] - without
        print(f"  {name:14} {without / KIB:8.0f} KiB, {more / KIB:+6.0f} KiB")
        if name != "resident" and more > MOST_BYTES:
            over.append(f"expected at most {MOST_BYTES} bytes more of {name}, found {more:.0f}")
    without = time["faults_without"]
    print(f"  {'faults':14} {without:8.0f},     {time['faults_with'] - without:+6.0f}")
    more = time["microseconds_more"]
    print(f"  {'microseconds':14} {time['microseconds_without']:8.0f},     {more:+6.0f}")
    if more > MOST_MICROSECONDS:
        over.append(f"expected at most {MOST_MICROSECONDS} microseconds more, found {more:.0f}")
    return over


if __name__ == "__main__":
    sys.exit(main())
