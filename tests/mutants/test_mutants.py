"""The tool itself, on a project of two functions."""

import subprocess
from pathlib import Path

import pytest

from tests.mutants import draw
from tests.mutants.draw import Mutant
from tests.mutants.quick import Stage
from tests.mutants.run import FOLDER, Trial, trial
from tests.mutants.tree import Tree

SOURCE = """\
#include "part/small.h"

/* Sums what is
 * below n. */
int sum_below(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) /* each once */
        sum += i;
    static_assert(sizeof(int) >= 4 &&
                  sizeof(int) <= 8, "as C has it");
    return sum + 0;
}
"""
HEADER = """\
#include <assert.h>
int sum_below(int n);
static inline int larger(int a, int b) { return a > b ? a : b; }
"""
CHECK = """\
#include "part/small.h"
int main(void) { return larger(2, 3) == 3 && sum_below(4) == 6 ? 0 : 1; }
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES C)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
enable_testing()
include_directories(src)
add_library(small OBJECT src/part/small.c)
add_executable(check check.c $<TARGET_OBJECTS:small>)
add_test(NAME check COMMAND check)
file(WRITE ${PROJECT_BINARY_DIR}/written "")
set_tests_properties(check PROPERTIES
    ENVIRONMENT "SEEN=${PROJECT_BINARY_DIR}/check;WRITTEN=${PROJECT_BINARY_DIR}/written")
"""
PRESETS = """\
{"version": 6, "configurePresets": [{"name": "quick", "generator": "Ninja",
 "binaryDir": "${sourceDir}/build/quick", "cacheVariables": {"CMAKE_C_FLAGS_INIT": "-O2"}}]}
"""
STAGES = (Stage("quick", ("check",)),)
OBJECTS = r"/(small|check)\.dir/"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    (root / "src" / "part").mkdir(parents=True)
    for name, text in {
        "src/part/small.c": SOURCE,
        "src/part/small.h": HEADER,
        "src/part/made.c": draw.MADE + "a script. */\nint x = 1 + 1;\n",
        "check.c": CHECK,
        "CMakeLists.txt": CMAKE,
        "CMakePresets.json": PRESETS,
        ".gitignore": "/build/\n",
    }.items():
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


@pytest.fixture(scope="module")
def ready(project: Path) -> Trial:
    folder = project / "build" / "mutants"
    folder.mkdir(parents=True)
    return trial(Tree(project, folder, ["quick"], OBJECTS), STAGES, folder, least=5)


def mutant(file: str, old: str, new: str) -> Mutant:
    """Of the line in which `old` is."""
    text = {"src/part/small.c": SOURCE, "src/part/small.h": HEADER}[file]
    lines = draw.without_comments(text).splitlines(keepends=True)
    line = next(number for number, line in enumerate(lines, 1) if old in line)
    return Mutant(file, line, lines[line - 1], lines[line - 1].replace(old, new))


@pytest.mark.parametrize(
    ("file", "old", "new", "outcome", "how"),
    [
        ("src/part/small.c", "i < n", "i <= n", "killed", "status 1"),
        ("src/part/small.h", "a > b", "a < b", "killed", "status 1"),
        ("src/part/small.c", "i++", "", "killed", "hangs"),
        ("src/part/small.c", "sum = 0", "sum = (0)", "same object code", None),
        ("src/part/small.c", "sum + 0", "sum - 0", "same object code", None),
        ("src/part/small.c", "sum + 0", "sum + ;", "does not compile", None),
        ("src/part/small.c", "return sum + 0", "return n > 4 ? 1 : sum", "survived", None),
    ],
)
def test_outcome(
    ready: Trial, project: Path, file: str, old: str, new: str, outcome: str, how: str | None
) -> None:
    result = ready.outcome(mutant(file, old, new))
    assert result["outcome"] == outcome, result
    assert how is None or result["how"] == how
    assert (ready.tree.top / file).read_text() == (project / file).read_text()
    assert not ready.tree.build("quick", ["check"]).anything, "what was changed was not put back"


def test_an_assertion_is_all_its_lines() -> None:
    assert draw.assertions(SOURCE.splitlines()) == {10, 11}


def test_lines_keep_their_numbers_without_comments() -> None:
    lines = draw.without_comments(SOURCE).splitlines()
    assert len(lines) == len(SOURCE.splitlines())
    assert lines[3].strip() == ""
    assert lines[7] == "    for (int i = 0; i < n; i++) "


def test_tables_made_by_a_script_are_left_out(project: Path) -> None:
    assert [path.name for path in draw.sources(project)] == ["small.c", "small.h"]


MANY = [
    Mutant("src/part/small.c", line, f"x = {line};\n", f"x = {line} + {change};\n")
    for line in range(1, 30)
    for change in range(1, 3 if line > 5 else 9)
]


def test_a_seed_draws_the_same_again() -> None:
    assert draw.drawn(MANY, 1) == draw.drawn(MANY[::-1], 1)
    assert draw.drawn(MANY, 1) != draw.drawn(MANY, 2)


def test_each_line_is_drawn_before_a_line_is_drawn_twice() -> None:
    assert {m.line for m in draw.drawn(MANY, 1)[:29]} == set(range(1, 30))


def test_a_line_that_comes_in_keeps_the_order_of_the_others() -> None:
    more = Mutant("src/part/small.c", 1, "y = 0;\n", "y = 1;\n")
    assert [m for m in draw.drawn([*MANY, more], 1) if m != more] == draw.drawn(MANY, 1)


def test_what_the_package_makes(project: Path) -> None:
    folder = FOLDER / "python"
    if not (folder / "universalmutator").is_dir():
        pytest.skip(f"{draw.PACKAGE}: make test-mutants installs it")
    draw.install(folder)
    made = list(draw.mutants_of(project / "src/part/small.c", project))
    changes = {(m.line, draw.brief(m.new)) for m in made}
    assert (8, "for (int i = 0; i <= n; i++)") in changes, "a comment hides the line"
    assert (9, "/*sum += i;*/") in changes
    assert not {m.line for m in made} & {3, 4, 10, 11}, "comments and assertions"
    assert len({m.name for m in made}) == len(made)
