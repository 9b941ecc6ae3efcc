"""Data races are fixed, not silenced: no line tells a checker to ignore code (trap 65)."""

import re
from pathlib import Path

from tests.ran import ran

ROOT = Path(__file__).parents[2]
ITSELF = {"tests/traps/test_tree.py"}

SILENCED_BY_NAME = re.compile(r"suppress|ignorelist|blacklist|\.supp$", re.IGNORECASE)
SILENCED_BY_TEXT = re.compile(
    r"""
    no_sanitize | no_sanitize_thread | disable_sanitizer_instrumentation
    | (?<![-\w])suppressions= | valgrind.*--suppressions | -fsanitize-(ignorelist|blacklist)
    | AnnotateIgnore | ANNOTATE_(BENIGN_RACE|IGNORE) | __tsan_ignore | __tsan_switch_to_fiber
    | (?:T|UB|A|L)SAN_OPTIONS.*(?:suppressions|halt_on_error=0|report_bugs=0)
    | BENIGN.RACE
    """,
    re.VERBOSE,
)


def files() -> list[str]:
    done = ran("git", "ls-files", "-z", cwd=ROOT)
    if done.returncode == 0:
        return [name for name in done.stdout.split("\0") if name]
    hidden = (".git", ".venv", "build")
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return [str(path) for path in paths if path.parts[0] not in hidden]


def test_no_file_of_suppressions() -> None:
    assert len(files()) > 50
    assert not [name for name in files() if SILENCED_BY_NAME.search(name)]


def test_no_line_that_silences_a_checker() -> None:
    found = []
    for name in files():
        path = ROOT / name
        if name in ITSELF or not path.is_file():
            continue
        text = path.read_text(errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if SILENCED_BY_TEXT.search(line):
                found.append(f"{name}:{number}: {line.strip()}")
    assert not found, "\n".join(found)


def test_the_patterns_find_what_they_are_for() -> None:
    for line in (
        '__attribute__((no_sanitize("thread")))',
        "TSAN_OPTIONS=suppressions=tsan.supp",
        "-fsanitize-ignorelist=list.txt",
        "valgrind --suppressions=x",
    ):
        assert SILENCED_BY_TEXT.search(line), line
    for name in ("test/tsan-suppressions.txt", "valgrind.supp"):
        assert SILENCED_BY_NAME.search(name), name
