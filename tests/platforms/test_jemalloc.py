"""Programs that look whether jemalloc's functions are there, with and without its library."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.ran import clean_environment, ran

SOURCE = Path(__file__).parent / "programs/asks_jemalloc.c"
JEMALLOC = Path("/usr/lib", f"{os.uname().machine}-linux-gnu", "libjemalloc.so.2")
# hakmem has no counter that grows with each malloc, and says so.
OURS = "there, malloc, 0 0 wrong\n"


@pytest.fixture(params=["alone", "linked"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    words = ["gcc", "-O2", "-fno-builtin", "-Wall", str(SOURCE), "-o", str(tmp_path / "program")]
    if request.param == "linked":
        if not JEMALLOC.exists():
            pytest.skip("jemalloc is not installed")
        words += ["-Wl,--no-as-needed", str(JEMALLOC)]
    subprocess.run(words, check=True)
    return tmp_path / "program"


def said(program: Path, **variables: str) -> str:
    done = ran(program, env=clean_environment() | variables)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_without_hakmem_it_finds_what_is_so(program: Path) -> None:
    needed = ran("ldd", program).stdout
    is_there = "libjemalloc" in needed
    expected = "there, jemalloc, 0 0 wrong\n" if is_there else "not there, malloc, 0 0 wrong\n"
    assert said(program) == expected


@pytest.mark.parametrize("options", [{}, {"HAKMEM_PRESET": "hardened"}])
def test_with_hakmem_it_uses_malloc(program: Path, library: Path, options: dict[str, str]) -> None:
    assert said(program, LD_PRELOAD=str(library), **options) == OURS


def test_linked_with_hakmem(library: Path, archive: Path, tmp_path: Path) -> None:
    """Weak names take nothing out of an archive."""
    whole = archive.with_name("hakmem.o")
    parts: dict[str, list[str | Path]]
    parts = {"shared": [library, f"-Wl,-rpath,{library.parent}"], "object": [whole]}
    for name, ours in parts.items():
        words = ["gcc", "-O2", "-fno-builtin", SOURCE, *ours, "-o", tmp_path / name]
        subprocess.run(list(map(str, words)), check=True)
        assert said(tmp_path / name) == OURS
