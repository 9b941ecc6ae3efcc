"""Functions of C++ with names of up to 100,000 letters: what is shown of them, and that it takes no
longer than as many letters in short names."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest

from hakmem import profile_html, profile_text
from hakmem.profile_text import VERY_LONG, Table, bounded, brief
from hakmem.symbols import Frame, Line, Named, Stack
from tests.profile.planted import Planted, named
from tests.watch.watched import Command

LETTERS = 400_000
# The quadratic way took 1000 times as long as the short names.
TIMES = 50
LONG = 50_000  # letters


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("short<int>()", "short<int>()"),
        (f"a::b<{'x' * 60}>::c", "a::b<…>::c"),
        (f"a<{'b<c>, ' * 20}d>::e<{'f' * 60}>()", "a<…>::e<…>()"),
        (f"operator<< <{'x' * 60}>(A&, B)", "operator<< <…>(A&, B)"),
        (f"operator< <{'x' * 60}>(A&, B)", "operator< <…>(A&, B)"),
        (f"A<{'x' * 60}>::operator->()", "A<…>::operator->()"),
        (f"A<{'x' * 60}>::operator()(int)", "A<…>::operator()(int)"),
        (f"A<decltype(a->b), {'x' * 60}>::c", "A<…>::c"),
        (f"cooperator<{'x' * 60}>::c", "cooperator<…>::c"),
        (f"(anonymous namespace)::a({'x' * 60})", "(anonymous namespace)::a(…)"),
        (f"A<{'x' * 60}>::operator()({'y' * 60}) const", "A<…>::operator()(…) const"),
        (f"<A<{'x' * 60}> as B>::c", "<…>::c"),
        (f"a<{'x' * 60}", "a<…>"),
        ("x" * 100, "x" * 59 + "…"),
        (
            f"std::map<{'int, ' * 30}int>::operator[](int const&)",
            "std::map<…>::operator[](int const&)",
        ),
        (f"f(std::vector<{'x' * 80}>, int)", "f(std::vector<…>, int)"),
        (f"a<{'x' * 80}>::operator<< <b<c> >(d)", "a<…>::operator<< <…>(d)"),
        ("<" * 100, "<…>"),
        (">" * 100, ">" * 59 + "…"),
    ],
)
def test_brief(name: str, shown: str) -> None:
    assert brief(name) == shown


def test_bounded() -> None:
    one, other = "a" * 5000 + "b" + "a" * 5000, "a" * 10001
    assert bounded("a" * VERY_LONG) == "a" * VERY_LONG
    assert bounded(one) != bounded(other) and len(bounded(one)) < VERY_LONG + 20


def _profile(names: list[str]) -> Named:
    frames = [Frame(at, None, at, (Line(name, "a.cc", 1),)) for at, name in enumerate(names)]
    figures = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    stacks = tuple(Stack((frame,) * 8, figures, figures) for frame in frames)
    return Named(1, stacks, {})


def _seconds(names: list[str]) -> float:
    """Of the processor, for the text, the page and stacks for other programs."""
    profile = _profile(names)
    begin = time.process_time()
    list(profile_text.table(profile, Table("inuse", len(names)), "x"))
    profile_html.page(profile, "x")
    profile_text.collapsed(profile, 1)
    return time.process_time() - begin


@pytest.mark.parametrize(
    "part", ["Pair<int, long>, ", "Pair<", "operator<", "a->b ", "(anonymous ", "x", "@A", "::h0"]
)
def test_time(part: str) -> None:
    short = [f"f<{at:045}>({at:045})" for at in range(LETTERS // 100)]
    long = "f<" + part * (LETTERS // len(part)) + ">()"
    assert _seconds([long]) < TIMES * max(_seconds(short), 0.01)


@pytest.fixture(scope="module")
def heap(planted: Planted) -> Path:
    if not (planted.programs / "profile_plant_long").exists():
        pytest.skip("built without a C++ compiler")
    return planted.profile("profile_plant_long")


def test_names(heap: Path) -> None:
    """Of the program they are whole."""
    names = {line.function for stack in named(heap).stacks for line in stack.lines()}
    assert max(map(len, names)) > LONG


def test_text_and_page(heap: Path, command: Command, tmp_path: Path) -> None:
    page, text = tmp_path / "x.html", tmp_path / "x.collapsed"
    done = command("profile", "--text", "-o", str(page), "-o", str(text), str(heap))
    assert done.returncode == 0, done.stderr
    assert "plant::Grows<…>::keep()" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 200
    for file in page, text:
        assert "plant::Grows" in file.read_text() and file.stat().st_size < LONG * 4, file


def test_whole_in_pprof(heap: Path, command: Command, tmp_path: Path) -> None:
    pytest.importorskip("google.protobuf")
    file = tmp_path / "x.pb.gz"
    done = command("profile", "-o", str(file), str(heap))
    assert done.returncode == 0, done.stderr
    (longest,) = sorted(
        (line.function for stack in named(heap).stacks for line in stack.lines()), key=len
    )[-1:]
    assert longest.encode() in gzip.decompress(file.read_bytes())


def test_others(heap: Path, command: Command, programs: Path, tmp_path: Path) -> None:
    """The difference of two, and what was recorded."""
    done = command("profile", "--text", "--diff", str(heap), str(heap))
    assert done.returncode == 0, done.stderr
    recording = tmp_path / "x.recording"
    program = programs / "profile_plant_long"
    done = command("record", "-o", str(recording), "--", str(program))
    assert done.returncode == 0, done.stderr
    page = tmp_path / "x.html"
    done = command("trace", str(recording))
    assert done.returncode == 0 and "plant::Grows<…>::keep()" in done.stdout, done.stderr
    assert max(map(len, done.stdout.splitlines())) < 2000
    done = command("trace", "-o", str(page), str(recording))
    assert done.returncode == 0, done.stderr
    assert "plant::Grows" in page.read_text() and page.stat().st_size < LONG * 4
