"""Counts are those of the allocator that is meant, and repeat; runs without figures say why."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hakmem_yardstick.counts import Counts
from hakmem_yardstick.model import Allocator, Kind, Row
from hakmem_yardstick.runner import Outcome, Unavailable
from tests.counts.callgrind import skip_without_valgrind

Compile = Callable[[str, str], Path]
SECONDS = 300.0
LITTLE_MEMORY = """\
#include <stddef.h>
static _Alignas(16) char memory[32768];
static size_t used;
void *malloc(size_t size)
{
    used += (size + 15) & ~(size_t)15;
    return used <= sizeof memory ? memory + used - ((size + 15) & ~(size_t)15) : NULL;
}
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *old, size_t size)
{
    char *fresh = malloc(size);
    for (size_t i = 0; fresh && old && i < size; i++)
        fresh[i] = ((char *)old)[i];
    return fresh;
}
"""


@pytest.fixture
def counts(suite: Path) -> Counts:
    skip_without_valgrind()
    return Counts(suite)


def count(counts: Counts, name: str, allocator: Allocator, timeout: float = SECONDS) -> Outcome:
    return counts.run(_row(counts, name), allocator, scale=1, timeout=timeout)


def _row(counts: Counts, name: str) -> Row:
    return next(row for row in counts.rows() if row.name == name)


def broken(library: Path) -> Allocator:
    return Allocator("broken", Kind.PEER, library)


def test_figures_repeat(counts: Counts, library: Path) -> None:
    ours = Allocator("hakmem", Kind.OURS, library)
    surroundings = {"OF_ANOTHER_SIZE": "x" * 1000}
    moved = Allocator("hakmem", Kind.OURS, library, environment=surroundings)
    first, second = count(counts, "count-pair-64", ours), count(counts, "count-pair-64", moved)
    assert first.outcome == second.outcome == "ok", (first.detail, second.detail)
    for measure in ("instructions", "branches", "data-refs"):
        assert first.values[measure] == second.values[measure] > 1
    assert first.raw["operations"] == 200_000
    assert first.raw["checksum"] == second.raw["checksum"]


def test_how_long_paths_are_does_not_tell(counts: Counts, compiled: Compile) -> None:
    code = """\
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((constructor)) static void tell(void)
{
    if (strstr(program_invocation_name, "suite") == NULL)
        return; /* what leads to it */
    fprintf(stderr, "%s is the name, %s\\n", program_invocation_name, getenv("LD_PRELOAD"));
    _Exit(9);
}
"""
    library = compiled("told", code)
    outcome = count(counts, "count-pair-64", broken(library))
    assert outcome.outcome == "exit 9", outcome.detail
    assert "./suite is the name" in outcome.detail
    assert outcome.detail.endswith(f":./{library.name}:./libstill_clock.so"), outcome.detail


def test_the_systems_malloc(counts: Counts) -> None:
    system = count(counts, "count-pair-64", Allocator("glibc", Kind.PEER))
    assert system.outcome == "ok", system.detail
    assert 20 < system.values["instructions"] < 200


def test_rows_are_those_of_the_model(counts: Counts) -> None:
    rows = counts.rows()
    assert {row.group for row in rows} == {"counts"}
    assert all(row.exact and row.name == f"count-{row.parameters['row']}" for row in rows)
    for row in rows:
        assert set(row.judged) <= {measure.name for measure in row.measures}


def test_a_library_without_malloc_is_not_active(counts: Counts, compiled: Compile) -> None:
    outcome = count(counts, "count-pair-64", broken(compiled("nothing", "int nothing;")))
    assert outcome.outcome == "not active"
    assert "libc.so" in outcome.detail


def test_a_crash_is_named(counts: Counts, compiled: Compile) -> None:
    code = "#include <stddef.h>\nvoid *malloc(size_t n) { return *(void *volatile *)n; }"
    outcome = count(counts, "count-pair-64", broken(compiled("crash", code)))
    assert outcome.outcome == "SIGSEGV"
    assert not outcome.values


def test_no_memory_is_named(counts: Counts, compiled: Compile) -> None:
    outcome = count(counts, "count-random-1000-64", broken(compiled("little", LITTLE_MEMORY)))
    assert outcome.outcome == "no memory", outcome.detail
    assert outcome.detail == "under valgrind: suite: malloc(64) found no memory"


def test_what_takes_too_long_is_a_hang(counts: Counts) -> None:
    assert count(counts, "count-pair-64", Allocator("glibc", Kind.PEER), 0.05).outcome == "hang"


def test_without_valgrind_there_is_a_reason(
    counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Unavailable, match="valgrind"):
        counts.prepare(_row(counts, "count-pair-64"))
