"""Runs the driver under valgrind's callgrind and reads what the calls of the allocator cost.

Collected is the counted part alone (--toggle-collect of its function). What is read from it are
the inclusive costs of the calls that the loop makes, which are those of malloc and free with
everything they call; the loop's own instructions are in no figure.
"""

import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.counts.work import Work, clean_environment

LOOP, MEASURED = "work_operate", "work_operate_measured"


@dataclass(frozen=True)
class Cost:
    """Calls of malloc and free, and what they executed."""

    calls: int  # those of the warm-up too: callgrind counts calls at all times
    instructions: int
    branches: int  # conditional ones


def skip_without_valgrind() -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")


def cost(driver: Path, library: Path | None, work: Work, warm: bool, out: Path) -> Cost:
    """Of the malloc of a preloaded library, or of the system's; `out` gets the profile."""
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--branch-sim=yes"]
    command += ["--compress-pos=no", "--compress-strings=no", f"--toggle-collect={MEASURED}"]
    command += [str(driver), *work.arguments(), *([] if warm else ["0"])]
    environment = clean_environment()
    if library:
        environment["LD_PRELOAD"] = str(library)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    in_force = Path(done.stdout.splitlines()[0])
    assert in_force == library if library else in_force.name.startswith("libc"), in_force
    return calls_from(out.read_text(), LOOP)


def calls_from(profile: str, function: str) -> Cost:
    """Inclusive cost of the calls that a function makes, in a profile without compression."""
    events: list[str] = []
    own: Counter[str] = Counter()  # of all functions
    called: Counter[str] = Counter()
    calls = 0
    total: Counter[str] = Counter()
    current, inclusive = "", False
    for line in profile.splitlines():
        key, _, value = line.partition("=")
        if line.startswith("events: "):
            events = line.split()[1:]
        elif line.startswith("totals: "):
            total = _costs(events, line.split()[1:])
        elif key == "fn":
            current = value
        elif key == "calls":
            inclusive = True
            calls += int(value.split()[0]) if current == function else 0
        elif line[:1].isdigit():
            costs = _costs(events, line.split()[1:])
            if not inclusive:
                own += costs
            elif current == function:
                called += costs
            inclusive = False
    assert total and own == total, f"profile misread: {own} of {total}"
    return Cost(calls, called["Ir"], called["Bc"])


def _costs(events: list[str], numbers: list[str]) -> Counter[str]:
    # Zeros at the end of a line of costs are left out.
    return Counter({event: int(n) for event, n in zip_longest(events, numbers, fillvalue="0")})
