"""docs/contract.md: the tables for readers name the calls of the rules from which filters are made
(rules.h, test_every.py)."""

import re
from pathlib import Path

CONTRACT = Path(__file__).parents[2] / "docs/contract.md"


def section(heading: str) -> str:
    _, found, rest = CONTRACT.read_text().partition(f"\n### {heading}\n")
    assert found, heading
    return rest.split("\n### ", 1)[0]


def in_table(heading: str) -> set[str]:
    first = [line.split("|")[1] for line in section(heading).splitlines() if line[:3] == "| `"]
    return {name for cell in first for name in re.findall(r"`(\w+)[`(]", cell)}


def in_rules(heading: str) -> set[str]:
    text = section(heading)
    blocks = re.findall(r"^# rules: .*\n((?:.*\n)*?)```", text, re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    return {line.split()[0] for line in lines if line and not line.startswith("#")}


def test_tables_and_rules_name_the_same_calls() -> None:
    for heading in "After start", "For statistics that the process writes":
        assert in_table(heading) == in_rules(heading) != set(), heading
    # Of a hardened heap the vDSO answers in the test.
    assert in_rules("In a hardened heap") == in_table("In a hardened heap") - {"clock_gettime"}
    prose = set(re.findall(r"`(\w+)`", section("With sampled guards")))
    assert in_rules("With sampled guards") <= prose
