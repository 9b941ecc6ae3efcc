"""Rows see what they are made to see: each runs on an allocator that does just that wrong."""

import subprocess
from pathlib import Path

import pytest

from yardstick.tests.rows import figures, run

# Blocks come one after another, small ones SPACING bytes apart, from memory that is never used
# again; realloc loses the content. With TWICE, each so manieth block is that of the call before.
ALLOCATOR = """
#include <stdatomic.h>
#include <stddef.h>
static char memory[1 << 28] __attribute__((aligned(4096)));
static _Atomic size_t used;
static void *take(size_t alignment, size_t size)
{
    const size_t room = size <= 8 ? SPACING : ((size + 63) & ~(size_t)63) + alignment;
    const size_t at = atomic_fetch_add(&used, room);
    if (at + room > sizeof memory)
        return NULL;
    return memory + ((at + alignment - 1) & ~(alignment - 1));
}
void *malloc(size_t size)
{
    static _Thread_local void *last;
    static _Atomic unsigned calls;
    if (TWICE && atomic_fetch_add(&calls, 1) % (TWICE + 1) == TWICE && last)
        return last;
    return last = take(size <= 8 ? SPACING : 64, size);
}
void *calloc(size_t count, size_t size) { return take(64, count * size); }
void *realloc(void *block, size_t size) { (void)block; return malloc(size); }
void *memalign(size_t alignment, size_t size) { return take(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return take(alignment, size); }
void free(void *block) { (void)block; }
"""


def allocator(spacing: int, folder: Path, twice: int = 0) -> Path:
    library = folder / f"liballocator{spacing}.so"
    numbers = [f"-DSPACING={spacing}", f"-DTWICE={twice}"]
    flags = ["-shared", "-fPIC", "-O1", "-fno-builtin", *numbers, "-x", "c", "-"]
    subprocess.run(["cc", *flags, "-o", str(library)], input=ALLOCATOR, text=True, check=True)
    return library


@pytest.mark.parametrize("row", ["share-active-2t", "share-passive-2t"])
def test_lines_of_one_thread_are_not_shared(row: str, suite: Path, tmp_path: Path) -> None:
    done = run(suite, allocator(64, tmp_path), row, "--scale", "0.05")
    assert figures(done)["threads-a-line"] == 1


def test_dealt_neighbours_share_lines(suite: Path, tmp_path: Path) -> None:
    """All but one of them are still there after a single turn."""
    done = run(suite, allocator(8, tmp_path), "share-passive-2t", "--iterations", "1")
    assert figures(done)["threads-a-line"] > 1.5


@pytest.mark.parametrize(
    ("row", "twice", "scale"),
    [("keep-64k-4t", 0, "0.001"), ("random-1000-64", 50, "0.002"), ("tail-mixed", 50, "0.01")],
)
def test_damaged_content_is_found(
    row: str, twice: int, scale: str, suite: Path, tmp_path: Path
) -> None:
    """Lost in realloc; or a block has two owners."""
    library = allocator(64, tmp_path, twice)
    done = run(suite, library, row, "--check", "1", "--scale", scale)
    assert done.returncode == 4, done
    assert "not those written" in done.stderr
