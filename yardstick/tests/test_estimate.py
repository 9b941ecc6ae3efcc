"""What is told before a session begins, and of what it had to do without. No network is used."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hakmem_yardstick import allocators
from hakmem_yardstick.estimate import Preparation, sentences
from hakmem_yardstick.peers import crates, packages
from hakmem_yardstick.peers.catalogue import CRATES, PACKAGES

FETCH = Preparation("fetching and building snmalloc", 35.0)
BUILD = Preparation("building the benchmarks", 20.0)
WHY = "load 9.0 on 2 processors"
BUSY = f"the machine is busy ({WHY}): it takes longer, and the figures will be noisy"


@pytest.mark.parametrize(
    ("preparations", "seconds", "busy", "expected"),
    [
        ([], 180.0, "", ["this takes about 3 min of runs"]),
        ([], None, "", []),
        ([FETCH], None, "", ["first: fetching and building snmalloc (about 35 s)"]),
        (
            [BUILD, FETCH],
            180.0,
            "",
            [
                "this takes about 4 min: building the benchmarks (about 20 s), fetching and "
                "building snmalloc (about 35 s), then about 3 min of runs"
            ],
        ),
        ([], None, WHY, [BUSY]),
    ],
)
def test_how_long_it_takes(
    preparations: list[Preparation], seconds: float | None, busy: str, expected: list[str]
) -> None:
    assert sentences(preparations, seconds, busy) == expected


def test_what_is_kept_need_not_be_made_again(tmp_path: Path) -> None:
    (crate,) = (crate for crate in CRATES if crate.name == "mimalloc3")
    both = crates.preparation(crate, tmp_path)
    assert both is not None and both.what == "fetching and building mimalloc3"
    crates._sources(crate, tmp_path).mkdir(parents=True)
    one = crates.preparation(crate, tmp_path)
    assert one == Preparation("building mimalloc3", crate.seconds) and one.seconds < both.seconds
    recipe = (crates.RECIPES / crate.name).read_text()
    library = crates._place(crate, tmp_path, recipe, crates._compiler(crate.clang))
    library.parent.mkdir(parents=True)
    library.touch()
    assert crates.preparation(crate, tmp_path) is None
    package = replace(PACKAGES[0], debian="libnosuch0", files=("libnosuch.so.0",))
    assert packages.preparation(package, tmp_path) == Preparation("downloading mimalloc2", 10.0)
    (tmp_path / "packages/libnosuch0/usr/lib").mkdir(parents=True)
    (tmp_path / "packages/libnosuch0/usr/lib/libnosuch.so.0").touch()
    assert packages.preparation(package, tmp_path) is None


def test_of_all_that_a_mode_wants(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    here = tmp_path / "lib"
    wanted = allocators.preparations(here, mode="standard")
    made = [one.what for one in wanted if one.what.startswith("fetching")]
    assert made == ["fetching and building mimalloc3", "fetching and building snmalloc"]
    given = [f"mimalloc3={library}"]
    (one,) = allocators.preparations(here, given, ["glibc", "mimalloc3", "snmalloc+A=1"])
    assert one.what == "fetching and building snmalloc"
    with pytest.raises(allocators.UnknownAllocator):
        allocators.preparations(here, vs=["nosuch"])


def test_a_peer_that_cannot_be_fetched(
    command: Path, library: Path, suite: Path, tmp_path: Path
) -> None:
    """Installed, with an empty cache, where there is no cargo."""
    (tmp_path / "bin").mkdir()
    front = shutil.copy(command, tmp_path / "bin")
    shutil.copy(library, tmp_path / "libhakmem.so")
    (tmp_path / "bench").symlink_to(suite.parent)
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in (*Path("/usr/bin").iterdir(), *Path("/bin").iterdir()):
        if not tool.name.startswith(("cargo", "rust")) and not (tools / tool.name).exists():
            (tools / tool.name).symlink_to(tool)
    words = ["bench", "--rows", "pair-64", "--rounds", "1", "--scale", "0.001"]
    done = subprocess.run(
        [front, *words, "--vs", "glibc,mimalloc3", "--out", "here"],
        env={"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "first: fetching and building mimalloc3 (about 21 s)"
    left_out = "left out: mimalloc3 (there is no cargo to fetch its sources; install cargo"
    assert sum(line.startswith(left_out) for line in lines) == 1  # when it was tried
    assert "runs are without" not in done.stdout  # nobody set anything
    # Above the summary, and once more at the end.
    told = [at for at, line in enumerate(lines) if line.startswith("L" + left_out[1:])]
    (means,) = (at for at, line in enumerate(lines) if line.startswith("Geometric means, to"))
    assert len(told) == 2 and told[0] < means < told[1]
    assert all(line[:1].isupper() for line in lines[told[1] :])  # only its like comes after it
    report = (tmp_path / "here" / "report.md").read_text().splitlines()
    assert report[2].startswith(("Measured on a busy machine", "The machine was busy", "Left out"))
    assert any(line.startswith("Left out: mimalloc3 (there is no cargo") for line in report[:7])
