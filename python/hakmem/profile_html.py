"""A heap profile as a page that needs nothing else: a flame graph and a table of all stacks."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hakmem import profile_text
from hakmem.symbols import Line, Named

TEMPLATE = Path(__file__).resolve().parent / "profile.html"
TITLE, DATA = "@TITLE@", "@DATA@"


@dataclass(frozen=True)
class Section:
    """What comes before the graph: a table, or a curve of bytes over seconds."""

    title: str
    note: str = ""
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    curve: tuple[tuple[float, int], ...] = ()


def page(named: Named, name: str, sections: Sequence[Section] = (), about: str = "") -> str:
    """`about`: a line on what the figures are, where they are no estimates."""
    title = f"{name}: heap profile" if not named.is_difference else f"{name}: difference"
    data = _data(named, title if not about else name)
    data |= {"about": about, "sections": [asdict(section) for section in sections]}
    return filled(data, str(data["title"]))


def filled(facts: dict[str, Any], title: str) -> str:
    data = json.dumps(facts, separators=(",", ":"))
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
    name, brief = profile_text.bounded(line.function), profile_text.brief(line.function)
    return [name, line.where, *([] if brief == name else [brief])]
