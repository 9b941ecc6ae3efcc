"""A heap profile as a page that needs nothing else: a flame graph, and tables of all functions and
stacks."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakmem import profile_text
from hakmem.symbols import Line, Named, Stack

HERE = Path(__file__).resolve().parent
SCRIPTS = ("profile_curve.js", "profile.js")  # the last one begins
TITLE, DATA, SCRIPT = "@TITLE@", "@DATA@", "@SCRIPT@"


@dataclass(frozen=True)
class Section:
    """A table of its own."""

    title: str
    note: str = ""
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def page(named: Named, name: str, parts: Sequence[tuple[str, Named]] = ()) -> str:
    """`parts`: the profiles of which it is the sum, if there are several, and their names."""
    title = f"{name}: heap profile" if named.sides is None else " -> ".join(named.sides)
    lines: dict[Line, int] = {}
    stacks = [_stack(stack, lines) for stack in named.stacks]
    data = {
        "title": title,
        "rate": profile_text.rate(named.rate),
        "difference": named.is_difference,
        "notes": list(named.notes),
        "stacks": stacks,
        "lines": [described(line) for line in lines],
    }
    if named.is_difference:
        data["functions"] = {
            profile_text.bounded(name): significant for name, significant in named.functions.items()
        }
        for stack, made in zip(named.stacks, stacks, strict=True):
            made["significant"] = stack.significant
    if len(parts) > 1 and not named.is_difference:
        places = {stack.place: which for which, stack in enumerate(named.stacks)}
        for number, (_, part) in enumerate(parts):
            for stack in part.stacks:
                figures = [*map(round, stack.figures)], [*map(round, stack.errors)]
                stacks[places[stack.place]].setdefault("parts", []).append([number, *figures])
        data["processes"] = [{"name": part} for part, _ in parts]
    return filled(data, title)


def _stack(stack: Stack, lines: dict[Line, int]) -> dict[str, Any]:
    """The outermost first."""
    return {
        "frames": [lines.setdefault(line, len(lines)) for line in reversed(stack.lines())],
        "figures": [round(figure) for figure in stack.figures],
        "errors": [round(error) for error in stack.errors],
    }


def filled(facts: dict[str, Any], title: str) -> str:
    data = json.dumps(facts, separators=(",", ":"))
    # In HTML neither may end the element that it is in.
    data = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    made = (HERE / "profile.html").read_text()
    script = "\n".join((HERE / name).read_text() for name in SCRIPTS)
    for mark, content in ((TITLE, html.escape(title)), (SCRIPT, script), (DATA, data)):
        before, _, after = made.rpartition(mark)
        made = f"{before}{content}{after}"
    return made


def described(line: Line) -> list[str | int]:
    """The name, the place, the name where there is little room (empty: the same), and whether it is
    a wrapper."""
    name, brief = profile_text.bounded(line.function), profile_text.brief(line.function)
    shown = "" if brief == name else brief
    more: list[str | int] = [shown, 1] if line.is_wrapper else [shown] if shown else []
    return [name, line.where, *more]
