"""How much memory is kept for reuse follows the options, for any number."""

from pathlib import Path

import pytest

from tests.ran import clean_environment, ran

MIB = 1024  # in KiB
FREED = {"huge": 64 * MIB, "slices": 32 * MIB}
SLICE = 64  # KiB
SUPERSLAB = 4 * MIB  # of slices: runs of them go back in one
BEYOND = MIB + 4 * SLICE + 64  # how far a cap may be passed, and what the program has besides
IDLE = 4 * MIB  # may be kept though it is much of a small heap
HOLD = 100  # milliseconds, after which idle memory may go back


def resident(program: Path, kind: str, others: str, **variables: str) -> tuple[int, int, int]:
    """KiB left of freed blocks at once, and after others were freed; and milliseconds between."""
    done = ran(str(program), kind, others, env=clean_environment() | variables)
    assert (done.returncode, done.stderr) == (0, "")
    at_once, later, between = map(int, done.stdout.split())
    print(
        f"{variables}: of {FREED[kind]} KiB of {kind} {at_once} are left, "
        f"{later} after {others} MiB were freed elsewhere, in {between} ms"
    )
    return at_once, later, between


def keeps(program: Path, kind: str, least: int, most: int, **variables: str) -> None:
    """That so many KiB stay. On a busy machine a program may rest though it does not want to."""
    for _ in range(20):
        at_once, later, between = resident(program, kind, "100", **variables)
        assert least <= at_once <= most
        assert later <= most
        if between < HOLD:
            assert later >= least - SUPERSLAB  # others may take the place of some
            return
    pytest.fail("this machine is too busy")


@pytest.mark.parametrize("budget", [0, 1, 65535, 65536, 65537, 1000001, 20000001, 68157440])
def test_of_huge_blocks_at_most_the_budget(budget: int, kept: Path) -> None:
    cap = {"HAKMEM_KEEP_BYTES": str(budget)}
    right = min(budget // 1024, FREED["huge"])
    keeps(kept, "huge", right - SLICE, right + BEYOND, **cap)


@pytest.mark.parametrize("slices", [0, 1, 31, 64, 100, 4096])
def test_of_free_slices_at_most_so_many(slices: int, kept: Path) -> None:
    cap = {"HAKMEM_KEEP_BYTES": f"{slices * SLICE}K"}
    right = min(slices * SLICE, FREED["slices"])
    keeps(kept, "slices", right - SUPERSLAB, right + BEYOND, **cap)


@pytest.mark.parametrize("kind", ["huge", "slices"])
def test_a_parameter_set_by_the_first_call_holds(kind: str, kept: Path) -> None:
    """The program has the last word, also where it speaks before hakmem has read its options."""
    caps = {"HAKMEM_KEEP_BYTES": "1M"}
    done = ran(str(kept), kind, "first", env=clean_environment() | caps)
    assert (done.returncode, done.stderr) == (0, "")
    at_once, later, _ = map(int, done.stdout.split())
    assert min(at_once, later) >= FREED[kind] - SUPERSLAB


def after_turns(program: Path, kind: str, **variables: str) -> int:
    """KiB left where 240 MiB come and go, which hakmem learns to keep unless it may not."""
    done = ran(str(program), kind, "turns", env=clean_environment() | variables)
    assert (done.returncode, done.stderr) == (0, "")
    print(f"{variables}: of {240 * MIB} KiB of {kind} at most {int(done.stdout)} are left")
    return int(done.stdout)


@pytest.mark.parametrize(
    ("kind", "right"),
    [*(("slices", n * SLICE) for n in (511, 512)), *(("huge", n * MIB) for n in (95, 96))],
)
def test_a_number_is_obeyed_whatever_was_learned(kind: str, right: int, kept: Path) -> None:
    """Also the number with which hakmem begins where it may learn. While the scavenger gives back
    and waits for a processor nobody else can, so not each run needs to show it."""
    most = right + SUPERSLAB + BEYOND
    assert any(after_turns(kept, kind, HAKMEM_KEEP_BYTES=f"{right}K") <= most for _ in range(10))


@pytest.mark.parametrize("kind", ["huge", "slices"])
def test_auto_keeps_what_comes_and_goes(kind: str, kept: Path) -> None:
    """As where nothing is set. What the scavenger finds between two turns goes back, so not each
    run needs to show it."""
    for variables in ({}, {"HAKMEM_KEEP_BYTES": "auto"}):
        assert any(after_turns(kept, kind, **variables) >= 160 * MIB for _ in range(10))


@pytest.mark.parametrize("kind", ["huge", "slices"])
def test_what_is_within_a_number_stays(kind: str, kept: Path) -> None:
    at_once, later, _ = resident(kept, kind, "rests", HAKMEM_KEEP_BYTES="1G")
    assert min(at_once, later) >= FREED[kind] - SUPERSLAB


@pytest.mark.parametrize("kind", ["huge", "slices"])
def test_what_is_idle_goes_back_by_time(kind: str, kept: Path) -> None:
    _, later, _ = resident(kept, kind, "rests")
    assert later <= BEYOND


@pytest.mark.parametrize("kind", ["huge", "slices"])
def test_by_default_what_is_much_goes_back_at_once(kind: str, kept: Path) -> None:
    at_once, _, _ = resident(kept, kind, "0")
    assert at_once <= IDLE + BEYOND
