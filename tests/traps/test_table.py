"""docs/traps.md names, for every trap and every promise, tests that exist."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.ran import ran

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs/traps.md"
TRAPS = 72

# Kinds of tests that are still being written. Empty when the list is complete.
PENDING: frozenset[str] = frozenset()

# A cell of tests: parts behind semicolons, each one of these.
TEST = re.compile(r"`(?P<name>\w+)`(: (?P<parts>\w+(, \w+)*))?")
STILL_PENDING = re.compile(r"\(pending: (?P<kind>\w+)\)")
REASON = re.compile(r"no test: .{10,}")


@dataclass(frozen=True)
class Row:
    key: str
    """The trap's number, or the promise's words."""
    rule: str
    tests: str


def section(text: str, title: str) -> str:
    _, found, rest = text.partition(f"\n## {title}\n")
    assert found, f"no section {title!r}"
    return rest.split("\n## ", 1)[0]


def rows(text: str, columns: int) -> list[Row]:
    cells = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    assert all(len(row) == columns for row in cells), [r for r in cells if len(r) != columns]
    return [Row(row[0], row[-2], row[-1]) for row in cells[2:]]


@cache
def sources() -> str:
    suffixes = (".c", ".cc", ".py")
    paths = (p for p in (ROOT / "tests").rglob("*") if p.suffix in suffixes)
    return "\n".join(path.read_text() for path in paths)


def is_in_sources(part: str) -> bool:
    """As a function that a test runs, not as a word of some comment."""
    runs = rf"^ *TEST\w*\((\d, )?{part}[,)]|def {part}\(|^    {part}\(\);"
    return re.search(runs, sources(), re.M) is not None


def wrong(row: Row, tests: set[str]) -> list[str]:
    """What is wrong with a row, in words."""
    found = []
    if not row.rule:
        found.append("no rule")
    if not row.tests:
        found.append("neither a test nor a reason")
    for entry in row.tests.split("; ") if row.tests else []:
        test, pending = TEST.fullmatch(entry), STILL_PENDING.fullmatch(entry)
        if test is not None:
            if test["name"] not in tests:
                found.append(f"there is no test {test['name']}")
            parts = (test["parts"] or "").split(", ")
            found += [f"no test runs {p}" for p in parts if p and not is_in_sources(p)]
        elif pending is not None:
            if pending["kind"] not in PENDING:
                found.append(f"{entry} is no kind of tests being written")
        elif REASON.fullmatch(entry) is None:
            found.append(f"not understood: {entry!r}")
    return found


@pytest.fixture(scope="module")
def tests(build: Path) -> set[str]:
    command = ["ctest", "--test-dir", str(build), "--show-only=json-v1"]
    done = ran(*command, check=True)
    return {test["name"] for test in json.loads(done.stdout)["tests"]}


def test_every_trap_has_tests(tests: set[str]) -> None:
    found = rows(section(TABLE.read_text(), "Traps"), 4)
    assert [row.key for row in found] == [str(n) for n in range(1, TRAPS + 1)]
    assert not {row.key: what for row in found if (what := wrong(row, tests))}
    pending = sum("(pending: " in row.tests for row in found)
    print(f"\n{len(found)} traps, {pending} of them with tests that are still to come")


def test_every_promise_has_tests(tests: set[str]) -> None:
    found = rows(section(TABLE.read_text(), "What hakmem works with"), 2)
    assert len(found) >= 30
    assert not {row.key: what for row in found if (what := wrong(row, tests))}


def test_every_test_of_this_folder_is_listed(tests: set[str]) -> None:
    named = {match["name"] for match in TEST.finditer(TABLE.read_text())}
    ours = {name for name in tests if name.startswith("trap_")}
    assert "trap_table" in ours
    assert not sorted(ours - named - {"trap_table"})


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("", "neither a test nor a reason"),
        ("`no_such_test`", "there is no test no_such_test"),
        ("`trap_table`: no_such_part", "no test runs no_such_part"),
        ("(pending: something)", "no kind of tests"),
        ("someone looked at it", "not understood"),
        ("no test: -", "not understood"),
    ],
)
def test_wrong_rows_are_named(cell: str, message: str, tests: set[str]) -> None:
    found = wrong(Row("1", "a rule", cell), tests)
    assert len(found) == 1 and message in found[0]


def test_right_rows_pass(tests: set[str]) -> None:
    cell = "`trap_table`: test_right_rows_pass; `trap_tree`; no test: the machine has no such clock"
    assert wrong(Row("1", "a rule", cell), tests) == []
