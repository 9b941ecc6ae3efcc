"""Accesses that go a page beyond small blocks, or before them, end a program with a hardened heap,
where the kernel has guard pages in the midst of a mapping."""

import mmap
from pathlib import Path

import pytest

from tests.misuse import matrix

MADV_GUARD_INSTALL = 102
AT_ONCE = [
    "overread_page_small",
    "overread_page_mid",
    "underread_32_mid",
    "overflow_page_small",
    "overflow_page_mid",
    "underflow_page_mid",
]


@pytest.fixture
def program(programs: Path) -> Path:
    page = mmap.mmap(-1, mmap.PAGESIZE)
    try:
        page.madvise(MADV_GUARD_INSTALL)
    except OSError:
        pytest.skip("this kernel has no guard pages (Linux 6.13)")
    return programs / "misuse_kinds"


def endings(program: Path, library: Path, kind: str, **options: str) -> set[str]:
    variables = {f"HAKMEM_{name.upper()}": value for name, value in options.items()}
    allocator = matrix.Allocator("hakmem", library, variables)
    found = next(each for each in matrix.kinds(program) if each.name == kind)
    return {str(matrix.run(program, found, allocator)) for _ in range(5)}


@pytest.mark.parametrize("kind", AT_ONCE)
def test_an_access_a_page_away_ends_the_program(program: Path, library: Path, kind: str) -> None:
    assert endings(program, library, kind, preset="hardened") == {"at once SIGSEGV"}
    assert endings(program, library, kind, preset="hardened", shuffle="off") == {"at once SIGSEGV"}


def test_they_are_one_of_the_guards(program: Path, library: Path) -> None:
    found = endings(program, library, "overread_page_small", preset="hardened", guards="off")
    assert "at once SIGSEGV" not in found


@pytest.mark.parametrize("kind", ["free_never_handed_out_small", "free_never_handed_out_mid"])
def test_the_blocks_between_are_no_blocks(program: Path, library: Path, kind: str) -> None:
    found = endings(program, library, kind, preset="hardened")
    assert found <= {"at once SIGABRT", "later SIGABRT"}
