"""Two processes in a real control group of 150 MB: what one has freed does not kill the other.

Skipped where no group can be made, or memory can be swapped out, so that nobody is killed."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SECONDS = 600
MB = 1000 * 1000
LIMIT = 150 * MB
FREED = 120 * MB
TAKEN = 120 * MB
KEEPS = {"HAKMEM_KEEP_BYTES": "1G"}
"""With these what is freed stays, but for what the group's limit forbids."""


def own_group() -> tuple[Path, str]:
    """Where a group can be made beside this process's own, and the file for its limit."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return Path("/sys/fs/cgroup/memory" + path), "memory.limit_in_bytes"
    return Path("/sys/fs/cgroup"), "memory.max"


BothLive = Callable[..., bool]


@pytest.fixture
def group() -> Iterator[Path]:
    if len(Path("/proc/swaps").read_text().splitlines()) > 1:
        pytest.skip("this machine swaps")
    parent, limit = own_group()
    folder = parent / f"hakmem-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    try:
        try:
            (folder / limit).write_text(str(LIMIT))
        except OSError as error:
            pytest.skip(f"a control group without a limit of memory: {error}")
        yield folder
    finally:
        folder.rmdir()


@pytest.fixture
def both_live(group: Path, programs: Path, library: Path) -> BothLive:
    def enter() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    def start(*arguments: str, **options: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [programs / "limits_container", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=enter,
            env={**os.environ, "LD_PRELOAD": str(library), **options},
        )

    def live(kind: str, **options: str) -> bool:
        holder = start("hold", kind, str(FREED), **options)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "freed\n"
        neighbour = start("take", str(TAKEN))
        taken = neighbour.wait(SECONDS)
        holder.communicate(timeout=SECONDS)
        assert taken in (0, -9) and holder.returncode in (0, -9)
        return taken == 0 and holder.returncode == 0

    return live


@pytest.mark.parametrize("options", [{}, KEEPS], ids=["default", "keeps"])
@pytest.mark.parametrize("kind", ["huge", "large", "small", "threads"])
def test_the_neighbour_lives(both_live: BothLive, kind: str, options: dict[str, str]) -> None:
    """With threads, that one of them that was giving memory back when the others ended may wait for
    a processor on a busy machine, while the neighbour already takes its own."""
    assert any(both_live(kind, **options) for _ in range(3 if kind == "threads" else 1))


@pytest.mark.parametrize("kind", ["huge", "large"])
def test_without_the_option_one_of_them_is_killed(both_live: BothLive, kind: str) -> None:
    assert not both_live(kind, HAKMEM_CONTAINER_LIMITS="off", **KEEPS)


def test_what_lies_idle_needs_no_limit(both_live: BothLive) -> None:
    """By default it goes back anyway."""
    assert both_live("huge", HAKMEM_CONTAINER_LIMITS="off")
