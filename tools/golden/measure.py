"""Measures what a call of an entry point executes, under valgrind's callgrind."""

import os
import subprocess
import tempfile
from itertools import zip_longest
from pathlib import Path

from tools.golden.walk import Counts, Library, NoFastPath

# Two lengths: what start, warm-up and end cost is in both.
SHORT, LONG = 2000, 3000


def measured(driver: Path, library: Library, name: str) -> Counts:
    """Counts per warm call, what it calls included."""
    short = _events(driver, library, name, SHORT)
    long = _events(driver, library, name, LONG)
    per_call: dict[str, int] = {}
    for event in ("Ir", "Bc", "Dr", "Dw"):
        per_call[event], rest = divmod(long[event] - short[event], LONG - SHORT)
        if rest:
            raise NoFastPath(
                f"{name}: {LONG - SHORT} warm calls took {long[event] - short[event]} {event}: "
                "some of them left the fast path"
            )
    address_of_return = 1
    loads = per_call["Dr"] - address_of_return
    return Counts(per_call["Ir"], per_call["Bc"], loads, per_call["Dw"])


def _events(driver: Path, library: Library, name: str, rounds: int) -> dict[str, int]:
    """Events of a whole run, counted only between entry and return of the function."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
        command += ["--cache-sim=yes", "--branch-sim=yes", "--demangle=no"]
        # valgrind knows code with several names by one of them, which is not told.
        command += [f"--toggle-collect={alias}" for alias in library.aliases(name)]
        command += [str(driver.resolve()), name, str(rounds)]
        environment = {**os.environ, "LD_PRELOAD": str(library.path.resolve())}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
        header = dict(line.split(": ", 1) for line in out.read_text().splitlines() if ": " in line)
    # Zeros at the end of a line of costs are left out.
    pairs = zip_longest(header["events"].split(), header["totals"].split(), fillvalue="0")
    return {event: int(cost) for event, cost in pairs}
