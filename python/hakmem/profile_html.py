"""A heap profile as a page that needs nothing else: a flame graph, and tables of all functions and
stacks."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakmem import profile_text
from hakmem.symbols import Line, Named

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


def page(named: Named, name: str) -> str:
    title = f"{name}: heap profile" if not named.is_difference else f"{name}: difference"
    return filled(_data(named, title), title)


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


def _data(named: Named, title: str) -> dict[str, Any]:
    lines: dict[Line, int] = {}
    return {
        "title": title,
        "rate": profile_text.rate(named.rate),
        "difference": named.is_difference,
        "notes": list(named.notes),
        # The outermost first.
        "stacks": [
            {
                "frames": [lines.setdefault(line, len(lines)) for line in reversed(stack.lines())],
                "figures": [round(figure) for figure in stack.figures],
                "errors": [round(error) for error in stack.errors],
            }
            for stack in named.stacks
        ],
        "lines": [described(line) for line in lines],
    }


def described(line: Line) -> list[str | int]:
    """The name, the place, the name where there is little room (empty: the same), and whether it is
    a wrapper."""
    name, brief = profile_text.bounded(line.function), profile_text.brief(line.function)
    shown = "" if brief == name else brief
    more: list[str | int] = [shown, 1] if line.is_wrapper else [shown] if shown else []
    return [name, line.where, *more]
