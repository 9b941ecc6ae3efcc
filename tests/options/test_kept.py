"""How much memory is kept for reuse follows the options, for any number."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.counts.work import clean_environment

MIB = 1024  # in KiB
FREED = {"huge": 64 * MIB, "slices": 32 * MIB}
SLICE = 64  # KiB
SUPERSLAB = 4 * MIB  # of slices: runs of them go back in one
BEYOND = MIB + 4 * SLICE + 16  # how far a cap may be passed, and what the program has besides

# So that memory that lies idle never goes back in the time of a test.
STAYS = {"HAKMEM_RETAIN_LEAST": "1G", "HAKMEM_RETAIN_MOST": "1024G"}


def resident(program: Path, kind: str, others: int, **variables: str) -> tuple[int, int]:
    """KiB left of freed blocks at once, and after `others` MiB of other blocks were freed."""
    done = subprocess.run(
        [str(program), kind, str(others)],
        env=clean_environment() | variables,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    at_once, later = map(int, done.stdout.split())
    print(
        f"{variables}: of {FREED[kind]} KiB of {kind} {at_once} are left, "
        f"{later} after {others} MiB were freed elsewhere"
    )
    return at_once, later


@pytest.mark.parametrize("budget", [0, 1, 65535, 65536, 65537, 1000001, 20000001, 68157440])
def test_of_huge_blocks_at_most_the_budget(budget: int, kept: Path) -> None:
    cap = {"HAKMEM_BIG_CACHE_BYTES": str(budget)}
    at_once, later = resident(kept, "huge", 100, **cap, **STAYS)
    right = min(budget // 1024, FREED["huge"])
    assert right - SLICE <= at_once <= right + BEYOND
    assert right - SLICE <= later <= right + BEYOND


@pytest.mark.parametrize("slices", [0, 1, 31, 64, 100, 4096])
def test_of_free_slices_at_most_so_many(slices: int, kept: Path) -> None:
    cap = {"HAKMEM_RETAIN_SLICES": str(slices)}
    at_once, later = resident(kept, "slices", 100, **cap, **STAYS)
    right = min(slices * SLICE, FREED["slices"])
    assert right - SUPERSLAB <= at_once <= right + BEYOND
    assert right - SUPERSLAB <= later <= right + BEYOND


@pytest.mark.parametrize("kind", ["huge", "slices"])
def test_a_parameter_set_by_the_first_call_holds(kind: str, kept: Path) -> None:
    """The program has the last word, also where it speaks before hakmem has read its options."""
    caps = {"HAKMEM_BIG_CACHE_BYTES": "1M", "HAKMEM_RETAIN_SLICES": "8"}
    done = subprocess.run(
        [str(kept), kind, "first"],
        env=clean_environment() | caps,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert min(map(int, done.stdout.split())) >= FREED[kind] - SUPERSLAB


def after_turns(program: Path, kind: str, **variables: str) -> int:
    """KiB left where 240 MiB come and go, which hakmem learns to keep unless it may not."""
    # The scavenger is there, so that more may be learned, and never wakes.
    still = {"HAKMEM_SCAVENGE_MS": "3600000"}
    done = subprocess.run(
        [str(program), kind, "turns"],
        env=clean_environment() | still | variables,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    print(f"{variables}: of {240 * MIB} KiB of {kind} at most {int(done.stdout)} are left")
    return int(done.stdout)


@pytest.mark.parametrize(
    ("kind", "name", "value", "right"),
    [
        *(("slices", "RETAIN_SLICES", str(n), n * SLICE) for n in (511, 512)),
        *(("huge", "BIG_CACHE_BYTES", f"{n}M", n * MIB) for n in (95, 96)),
    ],
)
def test_a_number_is_obeyed_whatever_was_learned(
    kind: str, name: str, value: str, right: int, kept: Path
) -> None:
    """Also the number with which hakmem begins where it may learn."""
    left = after_turns(kept, kind, **{f"HAKMEM_{name}": value})
    assert left <= right + SUPERSLAB + BEYOND


@pytest.mark.parametrize(
    ("kind", "name"), [("slices", "RETAIN_SLICES"), ("huge", "BIG_CACHE_BYTES")]
)
def test_auto_keeps_what_comes_and_goes(kind: str, name: str, kept: Path) -> None:
    """As where nothing is set."""
    for variables in ({}, {f"HAKMEM_{name}": "auto"}):
        assert after_turns(kept, kind, **variables) >= 160 * MIB


@pytest.mark.parametrize("kind", ["huge", "slices"])
def test_idle_memory_goes_back_after_its_span(kind: str, kept: Path) -> None:
    """Two spans: the first shows that it lies idle."""
    caps = {"HAKMEM_BIG_CACHE_BYTES": "1G", "HAKMEM_RETAIN_SLICES": "16384"}
    span = {"HAKMEM_RETAIN_LEAST": "20M", "HAKMEM_RETAIN_MOST": "20M"}
    _, before = resident(kept, kind, 8, **caps, **span)
    assert before >= FREED[kind] - 4 * MIB
    _, after = resident(kept, kind, 400, **caps, **span)
    assert after <= BEYOND
