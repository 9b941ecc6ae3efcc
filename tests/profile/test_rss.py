"""The option profile_rss: a program writes its heap profile by itself when its resident memory
passes a number; files are there in whole, and what can't be written gives one line."""

from __future__ import annotations

import re
import resource
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hakmem.symbols import Named
from tests.profile.planted import SECONDS, functions, named
from tests.ran import clean_environment
from tests.watch.watched import Command, running

LIMIT = 48
BEYOND = 100  # MiB, so there are two or more profiles
MIB = 2**20


@pytest.fixture
def run(programs: Path, library: Path, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """A program that grows, with these variables; its number, and what it said."""

    def grow(
        *words: str | int, before: Callable[[], object] | None = None, **more: str
    ) -> tuple[int, str]:
        others = clean_environment()
        process = subprocess.Popen(
            [programs / "profile_grow", *map(str, words)],
            cwd=tmp_path,
            env=others
            | {"LD_PRELOAD": str(library), "HAKMEM_PROFILE_RSS": f"{LIMIT}M"}
            | {f"HAKMEM_{name.upper()}": value for name, value in more.items()},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,
        )
        _, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, err
        return process.pid, err

    return grow


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def is_right(profile: Named) -> None:
    """Of memory that has passed the limit, nine tenths are of one site. What is not of the heap is
    resident as well, and other memory grows while it is written."""
    largest = max(profile.stacks, key=lambda stack: stack.figures[1])
    assert "growing" in functions(largest)
    grown = [stack for stack in profile.stacks if "growing" in functions(stack)]
    size = sum(stack.figures[1] for stack in grown)
    error = sum(stack.errors[1] for stack in grown)
    assert size + 6 * error > 0.8 * (LIMIT - 8) * MIB
    assert size > 0.6 * profile.sums[1]


def test_by_itself(run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    """The one option is enough."""
    pid, err = run(BEYOND)
    assert err == ""
    files = sorted(names_in(tmp_path))
    assert files[0] == f"profile_grow.{pid}.rss-1.heap"
    # Each a quarter more than the last: 48, 60, 75, 93.
    assert files == [f"profile_grow.{pid}.rss-{n}.heap" for n in range(1, len(files) + 1)]
    assert 1 <= len(files) <= 4
    sizes = []
    for name in files:
        profile = named(tmp_path / name)
        is_right(profile)
        sizes.append(profile.sums[1])
    assert sizes == sorted(sizes)


def test_beside_the_one_at_the_end(run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    pid, err = run(BEYOND, profile_file="x.%p.heap")
    assert err == ""
    assert {f"x.{pid}.heap", f"x.{pid}.rss-1.heap"} <= names_in(tmp_path)
    first, last = (named(tmp_path / f"x.{pid}.{end}") for end in ("rss-1.heap", "heap"))
    is_right(first)
    assert last.sums[3] > first.sums[3], "more is allocated at the end"
    # A name that ends otherwise.
    run(BEYOND, profile_file="other")
    assert {"other", "other.rss-1"} <= names_in(tmp_path)
    is_right(named(tmp_path / "other.rss-1"))


@pytest.mark.parametrize("more", [{}, {"profile": "off"}])
def test_below(run: Callable[..., tuple[int, str]], tmp_path: Path, more: dict[str, str]) -> None:
    _, err = run(20, **more)
    assert err == "" and names_in(tmp_path) == set()
    _, err = run(20, profile_file="end.heap", **more)
    assert err == "" and names_in(tmp_path) == {"end.heap"}, "the profile is on"
    assert named(tmp_path / "end.heap").stacks


def test_off(run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    _, err = run(BEYOND, profile_rss="0")
    assert err == "" and names_in(tmp_path) == set()


def test_threads(run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    """They all grow at once; one of them writes."""
    pid, err = run(BEYOND, "threads", profile_rate="16K", profile_samples="0")
    assert err == ""
    files = names_in(tmp_path)
    assert f"profile_grow.{pid}.rss-1.heap" in files and len(files) <= 4
    for name in files:
        is_right(named(tmp_path / name))


def test_forks(run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    """Each process has its own."""
    _, err = run(BEYOND, "fork")
    assert err == ""
    pids = {name.split(".")[1] for name in names_in(tmp_path)}
    assert len(pids) == 2
    for pid in pids:
        is_right(named(tmp_path / f"profile_grow.{pid}.rss-1.heap"))


def no_more_than(size: int) -> Callable[[], object]:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize(
    ("name", "before", "why"),
    [
        ("/nowhere/x.heap", None, "no such"),
        ("x.heap", no_more_than(100), ""),
    ],
)
def test_what_can_not_be_written(
    run: Callable[..., tuple[int, str]],
    tmp_path: Path,
    name: str,
    before: Callable[[], object] | None,
    why: str,
) -> None:
    """One line, though it tries again at each further quarter; and that of the end."""
    _, err = run(BEYOND, before=before, profile_file=name)
    first, second = err.splitlines()
    assert first.startswith(f"hakmem: profile_rss: {name.removesuffix('.heap')}.rss-1.heap: ")
    assert re.search(why, first)
    assert second.startswith(f"hakmem: profile_file: {name}: ")
    assert names_in(tmp_path) == set(), "nothing is left"


def test_in_a_running_process(
    command: Command, programs: Path, library: Path, tmp_path: Path
) -> None:
    """It is set while the process works; that turns the profile on."""
    words: Sequence[str | Path] = (programs / "profile_grow", "16", "serve")
    with running(*words, library=library, HAKMEM_PROFILE_FILE=str(tmp_path / "x.heap")) as process:
        process.ask("grow")
        done = command("set", process.pid, "profile_rss=1M")
        assert done.returncode in (0, 4), done.stderr
        process.ask("work")
        process.ask("work")
        assert names_in(tmp_path) == {"x.rss-1.heap"}
        process.ask("grow")
        process.ask("grow")
        assert {"x.rss-1.heap", "x.rss-2.heap"} <= names_in(tmp_path)
        heap = named(max(tmp_path.iterdir()))
        assert any("growing" in functions(stack) for stack in heap.stacks)
        # Another number begins anew; 0 ends it.
        command("set", process.pid, "profile_rss=0")
        process.ask("work")
        before = names_in(tmp_path)
        for _ in range(4):
            process.ask("grow")
        assert names_in(tmp_path) == before
