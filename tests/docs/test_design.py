"""What docs/design.md says of the source is so: its names, and its counts of the fast paths. And
the names in docs/traps.md and docs/contract.md. The table of locks is made from the source."""

import re
import sys
from pathlib import Path

import pytest

from tests.docs.options_named import ROOT, tracked
from tests.ran import ran

PAGE = (ROOT / "docs/design.md").read_text()
CODE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"\b(?=\w*[a-z])\w+_\w+\b|\b[A-Z]+_[A-Z_]+\b")
FILE = re.compile(r"\b[\w/]+\.(?:h|c|cc|def|py)\b")
# Of the kernel, of other systems and allocators.
OF_OTHERS = {"page_reporting_order"}
NUMBERS = {"two": 2, "four": 4}


def sources() -> list[Path]:
    return [file for file in tracked() if file.suffix not in (".md", ".gz", ".svg")]


@pytest.fixture(scope="module")
def words(library: Path) -> set[str]:
    """All of the source; tests are named as ctest names them."""
    found = set(re.findall(r"\w+", "\n".join(f.read_text(errors="replace") for f in sources())))
    listed = ran("ctest", "--test-dir", library.parent, "-N", check=True)
    return found | set(re.findall(r"#\d+: (\S+)", listed.stdout)) | OF_OTHERS


def test_names_in_code_are_names_in_the_source(words: set[str]) -> None:
    """As its first lines promise."""
    files = {str(file.relative_to(ROOT)) for file in sources()}
    spans = CODE.findall(re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))
    named_files = {name for span in spans for name in FILE.findall(span)}
    names = {name for span in spans for name in NAME.findall(FILE.sub("", span))}
    assert len(named_files) > 50 and len(names) > 150
    ends = {"/".join(file.split("/")[at:]) for file in files for at in range(file.count("/") + 1)}
    assert sorted(named_files - ends) == []
    assert sorted(names - words) == []


def test_every_trap_names_tests_that_there_are(words: set[str], library: Path) -> None:
    """In the last column: a test, perhaps with the functions of it that matter."""
    if library.parent.name != "release":
        pytest.skip("some are of our release preset alone")
    rows = re.findall(r"^\| .*\| (.*) \|$", (ROOT / "docs/traps.md").read_text(), re.MULTILINE)
    cells = [cell for cell in rows if cell != "tests"]
    assert len(cells) > 100
    assert [cell for cell in cells if not re.match(r"`\w+`|no test: ", cell)] == []
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    named |= {name for cell in cells for part in re.findall(r"`: ([\w, ]+)", cell)
              for name in part.split(", ")}  # fmt: skip
    assert sorted(named - words) == []


def test_every_promise_names_tests_that_there_are(words: set[str]) -> None:
    named = re.findall(r"`\w+: (\w+)`", (ROOT / "docs/contract.md").read_text())
    assert len(named) > 50
    assert sorted(set(named) - words) == []


def test_counts_of_the_fast_paths() -> None:
    golden = (ROOT / "tests/golden/fast_path.md").read_text()
    for name in "malloc", "free":
        row = re.search(rf"^\| `{name}` \| (\d+) \| (\d+) \|", golden, re.MULTILINE)
        assert row is not None
        told = re.search(
            rf"^### {name}\(.*?That is (\d+) instructions,? with (\w+) conditional branches",
            PAGE,
            re.MULTILINE | re.DOTALL,
        )
        assert told is not None
        assert (told[1], NUMBERS[told[2]]) == (row[1], int(row[2]))


def test_the_table_of_locks_is_made_from_the_source() -> None:
    command = [sys.executable, str(ROOT / "tools/design.py"), "--check"]
    done = ran(*command)
    assert done.returncode == 0, done.stderr


def test_the_lists_of_the_walk_name_what_the_source_has() -> None:
    done = ran(sys.executable, str(ROOT / "tools/walk.py"), "--check")
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
