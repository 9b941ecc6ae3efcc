#!/usr/bin/env python3
"""What fork costs under hakmem and under the system's malloc, counted: system calls and page
faults of parent and child, for each fork. hakmem may have 2% more where the child becomes another
program.

    fork_cost.py --program build/release/tests/torture/fork_cost --lib build/release/libhakmem.so

Exit status: 0 within the bound, 1 not, 77 when calls can't be counted for want of strace.
"""

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SKIPPED = 77
MORE = 1.02
FEW, MANY = 10, 40
PADDINGS = (0, 1300, 2600)
"""Bytes in the environment: one run with each, of each library. Where the stack begins near the end
of a page, a fork has two faults more. A run's result is the median over its forks; of the runs the
one with the least counts, as other work on the machine can only add faults."""
BY_CHANCE = 2
"""Page faults that a run has more or fewer with random addresses. So addresses are fixed, where the
kernel permits that."""
BOUND = ("exec", "spawn")
"""A child that only ends has so few faults that the one for our handler's code is above 2%."""


@dataclass(frozen=True)
class Cost:
    calls: float
    parent_faults: float
    child_faults: float
    microseconds: float

    def faults(self) -> float:
        return self.parent_faults + self.child_faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--lib", type=Path, required=True)
    parser.add_argument("--forks", type=int, default=40, help="of each run, for faults and time")
    options = parser.parse_args()
    program, library = (str(p.resolve(strict=True)) for p in (options.program, options.lib))
    if not can_run(["strace", "-f", "true"]):
        print("strace is not here, or may not trace")
        return SKIPPED

    fixed = ["setarch", "--addr-no-randomize"]
    if not can_run([*fixed, "true"]):
        fixed = []
    chance = 0 if fixed else BY_CHANCE
    over = []
    print("for each fork            calls   faults: parent    child   microseconds")
    for how in ("exec", "spawn", "exit"):
        for threads in (1, 8):
            command = [program, how, "--threads", str(threads)]
            glibc, hakmem = costs(command, [None, library], options.forks, fixed)
            print(f"{how}, {threads} thread{'s' if threads > 1 else ''}")
            for name, found in (("glibc", glibc), ("hakmem", hakmem)):
                print(
                    f"  {name:20} {found.calls:8.2f} {found.parent_faults:16.2f} "
                    f"{found.child_faults:8.2f} {found.microseconds:14.0f}"
                )
            for what, ours, most in (
                ("system calls", hakmem.calls, glibc.calls * MORE),
                ("page faults", hakmem.faults(), glibc.faults() * MORE + chance),
            ):
                if how in BOUND and ours > most:
                    over.append(
                        f"{how}, {threads} threads: expected at most {most:.2f} {what} "
                        f"for each fork, found {ours:.2f}"
                    )
    print("\n".join(over))
    return 1 if over else 0


def can_run(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def costs(
    command: list[str], libraries: list[str | None], forks: int, prefix: list[str]
) -> list[Cost]:
    """The least of runs in turn."""
    runs: list[list[dict[str, float]]] = [[] for _ in libraries]
    for padding in PADDINGS:
        for values, library in zip(runs, libraries, strict=True):
            found = run([*prefix, *command, "--forks", str(forks)], library, padding).stdout
            values.append({k: float(v) for k, v in re.findall(r"(\w+)=(\S+)", found)})
    result = []
    for values, library in zip(runs, libraries, strict=True):
        least = {name: min(each[name] for each in values) for name in values[0]}
        few, many = (calls([*command, "--forks", str(n)], library) for n in (FEW, MANY))
        result.append(Cost(calls=(many - few) / (MANY - FEW), **least))
    return result


def calls(command: list[str], library: str | None) -> int:
    """Of all threads and children, from start to end."""
    preload = [] if library is None else ["-E", f"LD_PRELOAD={library}"]
    # A small heap: how it is made is not what is counted, and a traced call is slow.
    traced = ["strace", "-f", "-c", "-U", "calls,name", *preload, *command, "--bytes", "4194304"]
    total = re.search(r"(?m)^\s*(\d+)\s+total$", run(traced, None).stderr)
    assert total is not None, "strace printed no total"
    return int(total.group(1))


def run(
    command: list[str], library: str | None, padding: int = 0
) -> subprocess.CompletedProcess[str]:
    settings = ("HAKMEM_", "MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")
    env = {name: value for name, value in os.environ.items() if not name.startswith(settings)}
    env["PADDING"] = "x" * padding
    if library is not None:
        env["LD_PRELOAD"] = library
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr}"
    return done


if __name__ == "__main__":
    sys.exit(main())
