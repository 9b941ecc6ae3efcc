"""A heap profile as a page that needs nothing else: a flame graph and a table of all stacks."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from hakmem import profile_text
from hakmem.symbols import Line, Named

TEMPLATE = Path(__file__).resolve().parent / "profile.html"
TITLE, DATA = "@TITLE@", "@DATA@"


def page(named: Named, name: str) -> str:
    title = f"{name}: heap profile" if not named.is_difference else f"{name}: difference"
    data = json.dumps(_data(named, title), separators=(",", ":"))
    # In HTML neither may end the element that it is in.
    data = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    before, _, rest = TEMPLATE.read_text().partition(TITLE)
    between, _, after = rest.partition(DATA)
    return f"{before}{html.escape(title)}{between}{data}{after}"


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
        "lines": [_line(line) for line in lines],
    }


def _line(line: Line) -> list[str]:
    """The name as it is shown where there is little room comes last, where it differs."""
    brief = profile_text.brief(line.function)
    return [line.function, line.where, *([] if brief == line.function else [brief])]
