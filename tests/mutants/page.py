"""Results: one JSON object a line, the first about the run; and the page made from them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.mutants.tree import Code

COUNT = 150
LEFT_OUT = (Code.INVALID.value, Code.SAME.value)
NOT_EXPLAINED = "not explained"


def read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    # The last line may be half of one, where a run was ended.
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def words(result: dict[str, Any]) -> str:
    by = f" by {result['by']} ({result['how']})" if "by" in result else ""
    return f"{result['outcome']}{by}"


def figures(results: Sequence[dict[str, Any]]) -> Counter[str]:
    return Counter(result["outcome"] for result in results[1:])


def summary(results: Sequence[dict[str, Any]]) -> str:
    n = figures(results)
    tested = n["killed"] + n["survived"]
    share = f" ({100 * n['killed'] / tested:.0f}%)" if tested else ""
    left = ", ".join(f"{n[why]} left out ({why})" for why in LEFT_OUT)
    return f"{tested} tested: {n['killed']} killed{share}, {n['survived']} survived; {left}"


def reasons(folder: Path) -> dict[str, str]:
    """What survivors.md says, by the mutant's name."""
    text = (folder / "survivors.md").read_text()
    rows = re.findall(r"^\| `(.+)` \| (.+) \|$", text, re.MULTILINE)
    return {name.replace("\\|", "|"): reason for name, reason in rows}


def write(results: Sequence[dict[str, Any]], folder: Path) -> None:
    (folder / "results.md").write_text(_page(results, reasons(folder)))


def _page(results: Sequence[dict[str, Any]], why: dict[str, str]) -> str:
    head, n = results[0], figures(results)
    tested = n["killed"] + n["survived"]
    part = f" A part of a run: {tested} of {COUNT} mutants." if tested < COUNT else ""
    only = f" Only `{head['only']}`." if head["only"] else ""
    killers = Counter(r["by"] for r in results[1:] if r["outcome"] == "killed")
    hangs = sum(r.get("how") == "hangs" for r in results[1:])
    survivors = [r for r in results[1:] if r["outcome"] == "survived"]
    lines = [
        "# Mutants: results",
        "",
        f"Made by `make test-mutants ARGS=--page` on {head['date']}, commit {head['commit']}, "
        f"seed {head['seed']}.{part}{only} [README.md](README.md) explains it.",
        "",
        "| | mutants |",
        "|---|--:|",
        f"| drawn | {len(results) - 1} |",
        *(f"| left out: {reason} | {n[reason]} |" for reason in LEFT_OUT),
        f"| tested | {tested} |",
        f"| killed | {n['killed']} ({100 * n['killed'] / max(tested, 1):.0f}%), "
        f"{hangs} of them by a test that hangs |",
        f"| survived | {n['survived']} |",
        "",
        "## Which test killed",
        "",
        "The first that failed, in the order in which they run.",
        "",
        "| test | mutants |",
        "|---|--:|",
        *(f"| {name} | {count} |" for name, count in killers.most_common()),
        "",
        "## Survivors",
        "",
        "Reasons are kept in [survivors.md](survivors.md).",
        "",
        "| line | change | why |",
        "|---|---|---|",
        *(_row(result, why) for result in survivors),
    ]
    return "\n".join(lines) + "\n"


def _row(result: dict[str, Any], why: dict[str, str]) -> str:
    change = result["name"].removeprefix(f"{result['file']}: ").replace("|", "\\|")
    reason = why.get(result["name"], NOT_EXPLAINED)
    return f"| {result['file']}:{result['line']} | `{change}` | {reason} |"
