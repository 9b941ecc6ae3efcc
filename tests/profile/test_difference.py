"""What `hakmem profile --diff` calls significant: of equal runs next to nothing, of others what
differs, and first. Each assertion on samples fails by chance less than once in 10^8 runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hakmem.profile_difference import difference
from tests.profile.planted import functions, named, profile_of
from tests.profile.test_formats import drawn
from tests.watch.watched import Command

PAIRS = 15
MORE = 10_000  # blocks of 200,000: 5%
FINE = {"HAKMEM_PROFILE_RATE": "512"}  # the difference is about 10 standard errors
EXACT = {"HAKMEM_PROFILE_RATE": "1"}
REAL = 'my %h = map { ($_ => [$_, "v$_"]) } 1..30000; my @a = map { "x$_" } 1..30000'


@pytest.fixture
def program(programs: Path) -> Path:
    return programs / "profile_plant_path"


@pytest.fixture
def run(library: Path, tmp_path: Path) -> Callable[..., Path]:
    """A profile of a run, in a file of its own."""

    def made(number: str, program: Path, *words: str, **variables: str) -> Path:
        folder = tmp_path / number
        folder.mkdir()
        return profile_of(program, library, folder, *words, **variables)

    return made


def painted(now: Path, before: Path) -> list[str]:
    """What is significant, by the innermost function, and functions that are in sum."""
    found = difference(named(now), named(before))
    stacks = [functions(stack)[0] for stack in found.stacks if any(stack.significant)]
    return stacks + [name for name, significant in found.functions.items() if any(significant)]


@pytest.mark.parametrize("variables", [{}, {"HAKMEM_PROFILE_SAMPLES": "500"}])
def test_equal_runs(run: Callable[..., Path], program: Path, variables: dict[str, str]) -> None:
    """Also where the rate changes on the way. If 5 of 100 pairs had something, 10 of 15 would have
    once in 10^10 runs."""
    pairs = [(run(f"a{i}", program, **variables), run(f"b{i}", program, **variables))
             for i in range(PAIRS)]  # fmt: skip
    assert sum(bool(painted(now, before)) for now, before in pairs) < 10


def test_equal_runs_of_a_real_program(run: Callable[..., Path]) -> None:
    perl = shutil.which("perl")
    if perl is None:
        pytest.skip("there is no perl")

    def one(number: str) -> Path:
        return run(number, Path(perl), "-e", REAL, PERL_HASH_SEED="0")

    pairs = [(one(f"a{i}"), one(f"b{i}")) for i in range(PAIRS)]
    assert sum(bool(painted(now, before)) for now, before in pairs) < 10


@pytest.mark.parametrize("variables", [FINE, EXACT])
@pytest.mark.parametrize("less", [False, True])
def test_a_path_that_differs(
    run: Callable[..., Path],
    command: Command,
    tmp_path: Path,
    program: Path,
    variables: dict[str, str],
    less: bool,
) -> None:
    plain, more = run("plain", program, **variables), run("more", program, str(MORE), **variables)
    before, now = (more, plain) if less else (plain, more)
    found = painted(now, before)
    assert found[0] == "planted"
    assert variables is FINE or set(found) >= {"planted", "main"}
    done = command("profile", "--text", "--diff", before, now)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"{before} -> {now}: differences, ")
    first = next(at for at, line in enumerate(lines) if "planted (plant_path.c" in line)
    assert lines[first].split()[0].startswith("-" if less else "+")
    assert "site" in lines[first - 1]
    if variables is FINE:
        assert any("not significant" in line for line in lines[first:])
    out = tmp_path / "page.html"
    assert command("profile", "--diff", before, "-o", out, now).returncode == 0  # type: ignore[arg-type]
    shown = drawn(out, "steady")
    assert shown["title"] == f"{before} -> {now}"
    assert shown["first"]["rows"][0][5].startswith("planted")
    titles = {frame["name"]: frame["title"] for frame in shown["first"]["frames"]}
    assert "not significant" not in titles["planted"] + titles["main"]
    if variables is FINE:
        assert "not significant" in titles.get("steady", "not significant")  # may be too small


def test_many_small_changes(run: Callable[..., Path], command: Command, program: Path) -> None:
    """Stacks that differ too little, each by itself, and the function that calls them."""
    before, now = run("a", program, **FINE), run("b", program, "0", "30", **FINE)
    found = difference(named(now), named(before))
    paths = [stack for stack in found.stacks if "one_of_many" in functions(stack)]
    assert len(paths) > 200 and sum(stack.significant[0] for stack in paths) < 5
    assert found.functions["one_of_many"][0] and found.functions["many"][0]
    assert not found.functions["steady"][0]
    if any(stack.significant[0] for stack in paths):
        return
    done = command("profile", "--text", "--diff", before, now)  # type: ignore[arg-type]
    _, _, rest = done.stdout.partition("functions that differ, though no stack of theirs does")
    assert "one_of_many" in rest
