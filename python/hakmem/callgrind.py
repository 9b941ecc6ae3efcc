"""What callgrind counts: its command, and the profiles that it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path


class Misread(Exception):
    """A profile that is not of the form known here."""


@dataclass(frozen=True)
class Entry:
    """One line of costs: a function's own, or those of calls that it makes, with all they call."""

    object: str
    """The file that the function is in, as it was loaded; empty if the profile tells none."""
    function: str
    calls: int | None
    """How many; None for the function's own costs. Counted at all times, costs only while
    callgrind collects."""
    costs: Counter[str]
    """By the event's name: Ir, Bc, D1mr."""


def command(out: Path, *options: str) -> list[str]:
    """To stand before a program and its arguments; what it writes to `out` can be read here."""
    return [
        "valgrind",
        "--tool=callgrind",
        f"--callgrind-out-file={out}",
        "--compress-pos=no",
        "--compress-strings=no",
        *options,
    ]


def entries(profile: str) -> Iterator[Entry]:
    """All lines of costs. Raises Misread, at the end, if they don't add up to what it tells."""
    events: list[str] = []
    own: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    current_object = current = ""
    calls: int | None = None
    for line in profile.splitlines():
        key, _, value = line.partition("=")
        if line.startswith("events: "):
            events = line.split()[1:]
        elif line.startswith("totals: "):
            totals = _costs(events, line.split()[1:])
        elif key == "ob":
            current_object = value
        elif key == "fn":
            current = value
        elif key == "calls":
            calls = int(value.split()[0])
        elif line[:1].isdigit():
            costs = _costs(events, line.split()[1:])
            if calls is None:
                own += costs
            yield Entry(current_object, current, calls, costs)
            calls = None
    if not totals or own != totals:
        raise Misread(f"its lines add up to {dict(own)}, its totals are {dict(totals)}")


def _costs(events: list[str], numbers: list[str]) -> Counter[str]:
    # Zeros at the end of a line of costs are left out.
    return Counter({event: int(n) for event, n in zip_longest(events, numbers, fillvalue="0")})
