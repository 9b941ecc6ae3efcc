"""What `hakmem trace` found as a page that needs nothing else: the curve of memory in use, and of
any range of it a flame graph and tables. The page has what changed at each moment, packed."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
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
PROCESSES = 60
MOST = 20_000  # call paths
LEAST = 100  # of either, of a process
CHANGES = 250_000  # of paths at moments
MARKS = 1000
NODES = 400_000  # of the tree that all paths make
_DIGITS = 9  # of a second


@dataclass(frozen=True)
class Part:
    """A process on the page."""

    told: Traced
    paths: list[Path]  # those that the page has
    names: Located


def paths(told: Traced, share: float = 1.0) -> list[Path]:
    """Those that the page has, where the process has this share of it."""
    most, changes = (max(round(share * limit), LEAST) for limit in (MOST, CHANGES))
    return told.moments.paths(most, changes)


def calls(process: Process, shown: Iterable[Path]) -> set[int]:
    """Addresses for which `page` wants names."""
    return {address for path in shown for address in process.path(path.number)}


def page(
    parts: Sequence[Part], title: str, notes: Sequence[str], sections: Sequence[Section]
) -> str:
    packed = zlib.compress(json.dumps(_stacks(parts)).encode(), 9)
    recorded = {
        "begin": round(min(_begin(part.told) for part in parts), _DIGITS),
        "end": round(max(_end(part.told) for part in parts), _DIGITS),
        "part": parts[0].told.begin is not None,
        "processes": [_process(part.told) for part in parts],
        "marks": [
            (round(when, _DIGITS), name) for part in parts for when, _, name in part.told.marks
        ][:MARKS],
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


def _begin(told: Traced) -> float:
    return told.process.since if told.begin is None else told.begin.at


def _end(told: Traced) -> float:
    """Of the curve, or of the marks after it."""
    return max([told.curve[-1][0], *(when for when, _, _ in told.marks[-1:])])


def _process(told: Traced) -> dict[str, Any]:
    return {
        "name": f"{told.process.name} {told.process.facts['pid']}",
        "ended": round(told.ended, _DIGITS),
        "times": [round(second, _DIGITS) for second, _ in told.curve],
        "sizes": [size for _, size in told.curve],
    }


def _stacks(parts: Sequence[Part]) -> dict[str, Any]:
    """A tree of lines: of each node its caller and its line. Of each stack its node, the number of
    the process, and what changed, as in Path."""
    lines: dict[Line, int] = {}
    nodes: dict[tuple[int, int], int] = {}
    stacks: dict[tuple[int, int], list[int]] = {}
    for which, part in enumerate(parts):
        for path in part.paths:  # the largest first
            number = path.number if len(nodes) < NODES else _OTHERS
            node = -1
            for line in reversed(_lines(part, number)):
                step = node, lines.setdefault(line, len(lines))
                node = nodes.setdefault(step, len(nodes))
            before = stacks.get((node, which))
            changes = path.changes if before is None else _added(before, path.changes)
            stacks[node, which] = changes
    return {
        "lines": [profile_html.described(line) for line in lines],
        "nodes": [number for step in nodes for number in step],
        "paths": [[node, which, *changes] for (node, which), changes in stacks.items()],
    }


def _lines(part: Part, number: int) -> Sequence[Line]:
    """The innermost first."""
    if number == _OTHERS:
        return (Line("(smaller paths)"),)
    site = Site(tuple(call + 1 for call in part.told.process.path(number)), _NONE, _NONE)
    found = [line for frame in symbols.stack_of(site, part.names.frames) for line in frame.shown]
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
