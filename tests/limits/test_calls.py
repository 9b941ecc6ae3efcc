"""docs/contract.md lists the same system calls as the filter under which the library is tested."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTRACT = ROOT / "docs/contract.md"
RULES = ROOT / "tests/limits/sandboxes/after_start"


def documented() -> set[str]:
    text = CONTRACT.read_text()
    _, found, rest = text.partition("\n### After start\n")
    assert found
    rows = [line for line in rest.split("\n### ", 1)[0].splitlines() if line.startswith("| `")]
    return {match[1] for row in rows if (match := re.match(r"\| `(\w+)", row))}


def filtered() -> set[str]:
    text = RULES.read_text().split("# What the test itself does")[0]
    return {line.split()[0] for line in text.splitlines() if line and not line.startswith("#")}


def test_what_is_documented_is_what_is_tried() -> None:
    assert documented() == filtered()
    assert {"mmap", "munmap", "mremap", "madvise", "futex"} <= filtered()
