"""Runs the driver under valgrind's callgrind and reads what the calls of the allocator cost.

Collected is the counted part alone (--toggle-collect of its function). What is read from it are
the inclusive costs of the calls that the loop makes, which are those of malloc and free with
everything they call; the loop's own instructions are in no figure.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from hakmem import callgrind
from tests.counts.work import Work
from tests.ran import clean_environment, ran

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


def cost(
    driver: Path, library: Path | None, work: Work, warm: bool, out: Path, **settings: str
) -> Cost:
    """Of the malloc of a preloaded library, or of the system's; `out` gets the profile. The
    settings go into the environment."""
    command = callgrind.command(out, "--branch-sim=yes", f"--toggle-collect={MEASURED}")
    command += [str(driver), *work.arguments(), *([] if warm else ["0"])]
    environment = clean_environment() | settings
    if library:
        environment["LD_PRELOAD"] = str(library)
    done = ran(*command, env=environment)
    assert done.returncode == 0, done.stderr
    in_force = Path(done.stdout.splitlines()[0])
    assert in_force == library if library else in_force.name.startswith("libc"), in_force
    return calls_from(out.read_text(), LOOP)


def calls_from(profile: str, function: str) -> Cost:
    """Inclusive cost of the calls that a function makes."""
    made = [entry for entry in callgrind.entries(profile) if entry.calls is not None]
    made = [entry for entry in made if entry.function == function]
    return Cost(
        sum(entry.calls or 0 for entry in made),
        sum(entry.costs["Ir"] for entry in made),
        sum(entry.costs["Bc"] for entry in made),
    )
