"""With check_functions a block that the wrong function frees is reported, and ends the program."""

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.misuse.runs import END, IGNORED, run_with
from tests.misuse.test_misuse import HEX

OF_MALLOC = ["malloc", "calloc", "realloc", "aligned_alloc"]
OF_NEW = ["new", "new_nothrow", "new_aligned"]
OF_ARRAY = ["new[]", "new[]_nothrow", "new[]_aligned"]
FREES = ["free", "realloc", "realloc_more"]
DELETES = [f"delete{form}" for form in ("", "_sized", "_nothrow", "_aligned", "_aligned_sized")]
ARRAY_DELETES = [name.replace("delete", "delete[]") for name in DELETES]
GROUPS = [(OF_MALLOC, FREES), (OF_NEW, DELETES), (OF_ARRAY, ARRAY_DELETES)]
ALLOCATED = ["malloc or a function like it", "new", "new[]"]
FOR = ["malloc", "new", "new[]"]
ADVICE = ["free it by free", "free it by delete", "free it by delete[]"]

Start = Callable[..., tuple[int, str, list[str]]]


@pytest.fixture
def start(programs: Path, library: Path) -> Start:
    program = programs / "misuse_functions"

    def run(*arguments: object, **options: str) -> tuple[int, str, list[str]]:
        return run_with(library, program, *arguments, **options)

    return run


def wrong_pairs() -> Iterator[tuple[int, str, int, str]]:
    for made, (makers, _) in enumerate(GROUPS):
        for freed, (_, functions) in enumerate(GROUPS):
            if made != freed:
                yield from ((made, m, freed, f) for m in makers for f in functions)


def right_pairs() -> Iterator[tuple[str, str]]:
    """An aligned delete is for an aligned new."""
    for makers, functions in GROUPS:
        for maker in makers:
            for function in functions:
                if functions is FREES or ("aligned" in function) == ("aligned" in maker):
                    yield maker, function


def judge(lines: list[str], made: int, freed: int, function: str) -> None:
    """The report of one wrong pair."""
    name = function.split("_")[0]
    expected = f"this block was allocated by {ALLOCATED[made]}; {name} is only for blocks of "
    assert re.fullmatch(
        rf"{re.escape(name)}\({HEX}\): {re.escape(expected + FOR[freed])}", lines[0]
    )
    assert re.match("address: the start of a (block|large block|guarded block) of", lines[1]), lines
    assert lines[-2] == f"what to do: {ADVICE[made]}", lines


# Of a slab, above it, above the largest class.
SIZES = (24, 40000, 3000000)


@pytest.mark.parametrize(
    ("size", "made", "maker", "freed", "function"),
    [(size, *pair) for size in SIZES for pair in wrong_pairs()],
)
def test_a_wrong_pair_is_reported(
    start: Start, size: int, made: int, maker: str, freed: int, function: str
) -> None:
    status, output, lines = start(size, maker, function, check_functions="on")
    assert (status, output) == (-signal.SIGABRT, ""), lines
    judge(lines, made, freed, function)
    assert lines[-1] == END, lines


@pytest.mark.parametrize(
    "options",
    [
        {"preset": "hardened"},
        {"preset": "hardened", "guards": "off"},
        {"profile": "on", "profile_rate": "1", "profile_samples": "0"},
        {"check_frees": "on", "check_sizes": "on"},
    ],
    ids=str,
)
@pytest.mark.parametrize("size", SIZES)
def test_with_other_options(start: Start, size: int, options: dict[str, str]) -> None:
    for made, maker, freed, function in [
        (0, "malloc", 1, "delete"),
        (1, "new", 0, "free"),
        (1, "new", 2, "delete[]_sized"),
        (2, "new[]_aligned", 1, "delete_aligned"),
    ]:
        status, _, lines = start(size, maker, function, check_functions="on", **options)
        assert status == -signal.SIGABRT, lines
        judge(lines, made, freed, function)


@pytest.mark.parametrize(
    ("made", "maker", "freed", "function"),
    [(0, "malloc", 1, "delete"), (1, "new", 0, "free"), (2, "new[]", 1, "delete")],
)
def test_a_guarded_block(start: Start, made: int, maker: str, freed: int, function: str) -> None:
    options = {"check_functions": "on", "guards_a_second": "1000"}
    status, _, lines = start(77, maker, function, **options)
    assert status == -signal.SIGABRT, lines
    assert "a guarded block of 77 bytes" in lines[1], lines
    name = function.split("_")[0]
    expected = f"this block was allocated by {ALLOCATED[made]}; {name} is only for blocks of "
    assert lines[0].endswith(expected + FOR[freed]), lines
    assert f"what to do: {ADVICE[made]}" in lines


@pytest.mark.parametrize("size", [24, 40000])
@pytest.mark.parametrize(
    ("made", "maker", "freed", "function"),
    [(0, "malloc", 1, "delete"), (1, "new", 0, "free"), (2, "new[]", 1, "delete")],
)
def test_the_program_goes_on(
    start: Start, size: int, made: int, maker: str, freed: int, function: str
) -> None:
    options = {"check_functions": "on", "abort_on_misuse": "off"}
    status, output, lines = start(size, maker, function, **options)
    assert (status, output) == (0, "end\n"), lines
    judge(lines, made, freed, function)
    assert lines[-1] == IGNORED, lines


@pytest.mark.parametrize(
    "options",
    [
        {"check_functions": "on"},
        {"check_functions": "on", "preset": "hardened", "check_frees": "on"},
        {"check_functions": "on", "profile": "on", "profile_rate": "1"},
    ],
    ids=str,
)
@pytest.mark.parametrize(("maker", "function"), list(right_pairs()))
def test_right_pairs_are_not_reported(
    start: Start, maker: str, function: str, options: dict[str, str]
) -> None:
    for size in SIZES:
        assert start(size, maker, function, **options) == (0, "end\n", []), size


@pytest.mark.parametrize("options", [{}, {"preset": "hardened"}], ids=str)
def test_without_the_option_nothing_is_reported(start: Start, options: dict[str, str]) -> None:
    for made, maker, _, function in wrong_pairs():
        if "sized" not in function and maker == GROUPS[made][0][0]:
            assert start(24, maker, function, **options) == (0, "end\n", []), (maker, function)
