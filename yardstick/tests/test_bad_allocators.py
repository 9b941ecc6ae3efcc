"""Rows see what they are made to see: each runs on an allocator that does just that wrong."""

from collections.abc import Callable
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


@pytest.fixture
def allocator(compiled: Callable[[str, str], Path]) -> Callable[..., Path]:
    def make(spacing: int, twice: int = 0) -> Path:
        numbers = f"#define SPACING {spacing}\n#define TWICE {twice}\n"
        return compiled(f"allocator{spacing}-{twice}", numbers + ALLOCATOR)

    return make


@pytest.mark.parametrize("row", ["share-active-2t", "share-passive-2t"])
def test_lines_of_one_thread_are_not_shared(
    row: str, suite: Path, allocator: Callable[..., Path]
) -> None:
    done = run(suite, allocator(64), row, "--scale", "0.05")
    assert figures(done)["threads-a-line"] == 1


def test_dealt_neighbours_share_lines(suite: Path, allocator: Callable[..., Path]) -> None:
    """All but one of them are still there after a single turn."""
    done = run(suite, allocator(8), "share-passive-2t", "--iterations", "1")
    assert figures(done)["threads-a-line"] > 1.5


@pytest.mark.parametrize(
    ("row", "twice", "scale"),
    [("keep-64k-4t", 0, "0.001"), ("random-1000-64", 50, "0.002"), ("tail-mixed", 50, "0.01")],
)
def test_damaged_content_is_found(
    row: str, twice: int, scale: str, suite: Path, allocator: Callable[..., Path]
) -> None:
    """Lost in realloc; or a block has two owners."""
    done = run(suite, allocator(64, twice), row, "--check", "1", "--scale", scale)
    assert done.returncode == 4, done
    assert "not those written" in done.stderr
