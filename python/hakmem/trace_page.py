"""What `hakmem trace` found as a page that needs nothing else: the curve of memory in use, and of
any range of it a flame graph and tables. The page has what changed at each moment, packed."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from hakmem import profile_html, symbols
from hakmem.events import Process
from hakmem.heap_profile import Site
from hakmem.moments import Path
from hakmem.profile_html import Section
from hakmem.symbols import Line, Located
from hakmem.traced import Traced

ABOUT = """\
All calls were recorded: the figures are exact, except for the median and 90% of lifetimes, which
are within 0.4%."""
# Limits of the page: it has no more than some MiB.
MOST = 20_000  # call paths
CHANGES = 250_000  # of paths at moments
NODES = 400_000  # of the tree that all paths make
_DIGITS = 9  # of a second


def paths(told: Traced) -> list[Path]:
    """Those that the page has."""
    return told.moments.paths(MOST, CHANGES)


def calls(process: Process, shown: Iterable[Path]) -> set[int]:
    """Addresses for which `page` wants names."""
    return {address for path in shown for address in process.path(path.number)}


def page(
    told: Traced,
    shown: list[Path],
    names: Located,
    notes: Sequence[str],
    sections: Sequence[Section],
) -> str:
    process = told.process
    title = f"{process.name} {process.facts['pid']}"
    packed = zlib.compress(json.dumps(_stacks(told, shown, names)).encode(), 9)
    recorded = {
        "begin": round(process.since, _DIGITS),
        "end": round(process.since + told.seconds, _DIGITS),
        "times": [round(second, _DIGITS) for second, _ in told.curve],
        "sizes": [size for _, size in told.curve],
        "packed": base64.b64encode(packed).decode(),
    }
    data = {
        "title": title,
        "about": ABOUT,
        "notes": list(notes),
        "sections": [asdict(section) for section in sections],
        "difference": False,
        "recorded": recorded,
    }
    return profile_html.filled(data, title)


def _stacks(told: Traced, shown: list[Path], names: Located) -> dict[str, Any]:
    """A tree of lines: of each node its caller and its line. Of each stack its node, and what
    changed, as in Path."""
    lines: dict[Line, int] = {}
    nodes: dict[tuple[int, int], int] = {}
    stacks: dict[int, list[int]] = {}
    for path in shown:  # the largest first
        number = path.number if len(nodes) < NODES else _OTHERS
        node = -1
        for line in reversed(_lines(told, number, names)):
            step = node, lines.setdefault(line, len(lines))
            node = nodes.setdefault(step, len(nodes))
        before = stacks.get(node)
        stacks[node] = path.changes if before is None else _added(before, path.changes)
    return {
        "lines": [profile_html.described(line) for line in lines],
        "nodes": [number for step in nodes for number in step],
        "paths": [[node, *changes] for node, changes in stacks.items()],
    }


def _lines(told: Traced, number: int, names: Located) -> Sequence[Line]:
    """The innermost first."""
    if number == _OTHERS:
        return (Line("(smaller paths)"),)
    site = Site(tuple(call + 1 for call in told.process.path(number)), _NONE, _NONE)
    found = [line for frame in symbols.stack_of(site, names.frames) for line in frame.shown]
    return found or (Line("(no stack)"),)


_OTHERS = -1  # as in Path
_NONE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def _added(some: list[int], more: list[int]) -> list[int]:
    """The changes of both."""
    sums: dict[int, list[int]] = {}
    for changes in (some, more):
        for at in range(0, len(changes), 5):
            moment, *figures = changes[at : at + 5]
            before = sums.get(moment, [0, 0, 0, 0])
            sums[moment] = [a + b for a, b in zip(before, figures, strict=True)]
    return [number for moment in sorted(sums) for number in (moment, *sums[moment])]
