"""Rows of single calls see slow calls of malloc and of free, and by which clock they are slow."""

from collections.abc import Callable
from pathlib import Path

import pytest

from yardstick.tests.rows import figures, run

ROWS = ("tail-mixed", "tail-large", "tail-survivors", "tail-threads")
SCALE = {"tail-mixed": "0.01", "tail-large": "0.02", "tail-survivors": "0.001"}
SLOW_NS = 2_000_000
TRIES = 20

# The C library's malloc; each 200th call of CALL does ACTION first.
SLOW = """
#include <stddef.h>
#include <time.h>
void *__libc_malloc(size_t), __libc_free(void *);
static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static void compute(void) { for (long long end = now() + SLOW_NS; now() < end;) continue; }
static void rest(void) { nanosleep(&(struct timespec){.tv_nsec = SLOW_NS}, NULL); }
static void in_malloc(int is_malloc)
{
    static int calls;
    (void)compute, (void)rest;
    if (is_malloc == IS_MALLOC && __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % 200 == 0)
        ACTION();
}
void *malloc(size_t size) { in_malloc(1); return __libc_malloc(size); }
void free(void *block) { in_malloc(0); __libc_free(block); }
"""


@pytest.fixture
def slow(compiled: Callable[[str, str], Path]) -> Callable[[str, str], Path]:
    def make(call: str, action: str) -> Path:
        text = SLOW.replace("ACTION", action).replace("SLOW_NS", str(SLOW_NS))
        return compiled(f"{call}-{action}", text.replace("IS_MALLOC", str(int(call == "malloc"))))

    return make


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("call", ["malloc", "free"])
def test_slow_calls_are_seen_by_both_clocks(
    call: str, row: str, suite: Path, slow: Callable[[str, str], Path]
) -> None:
    # Most mallocs of this row are not timed: they fill the heap.
    names = ("worst",) if (row, call) == ("tail-survivors", "malloc") else ("p99.9", "worst")
    program = slow(call, "compute")
    for tries_left in reversed(range(TRIES)):
        told = figures(run(suite, program, row, "--scale", SCALE.get(row, "0.01")))
        # While other programs ran, some of the call's own time counts as absence: not in each run.
        if tries_left == 0 or all(told[f"cpu-{name}"] > 0.98 * SLOW_NS for name in names):
            break
    for name in names:
        assert told[name] > 0.98 * SLOW_NS, name
        assert told[f"cpu-{name}"] > 0.98 * SLOW_NS, name
    assert told["cpu-p99"] < SLOW_NS / 2


def test_calls_that_wait_are_slow_by_the_clock_alone(
    suite: Path, slow: Callable[[str, str], Path]
) -> None:
    told = figures(run(suite, slow("free", "rest"), "tail-mixed", "--scale", "0.01"))
    assert told["p99.9"] > 0.98 * SLOW_NS
    assert told["cpu-p99.9"] < SLOW_NS / 2
