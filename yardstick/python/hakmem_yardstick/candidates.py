"""What `hakmem tune` tries: settings of hakmem, each with what it may be good for, and other
allocators."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hakmem.table import table
from hakmem.variants import split
from hakmem_yardstick.model import OURS


@dataclass(frozen=True)
class Candidate:
    settings: tuple[str, ...]
    """As in "huge_pages=off"."""
    why: str
    """As in "for ..."."""


CANDIDATES = (
    Candidate(("huge_pages=off",), "little memory in large regions"),
    Candidate(("huge_pages=on",), "heaps that grow"),
    Candidate(("thread_bytes=64M", "stack_bytes=8M"), "bursts, and threads that use much memory"),
    Candidate(("thread_bytes=1M", "stack_bytes=128K"), "many threads with little to do"),
    Candidate(("keep_bytes=256M",), "memory that is soon needed again"),
    Candidate(("keep_bytes=4G", "scavenger=off"), "one use of much"),
    Candidate(("keep_bytes=0",), "memory that is not needed again"),
    Candidate(("extra_calls=on",), "free pages between blocks in use"),
    Candidate(("compact=off",), "heaps that shrink and grow again"),
    Candidate(("learn=off",), "short runs"),
)
"""Each changes what one cause costs; a setting that is as it is anyway is left out."""


def names(base: str, others: Iterable[str]) -> list[str]:
    """Of allocators, the base left out. `base`: hakmem, perhaps with settings, on top of which the
    candidates' come."""
    _, given = split(base)
    found = []
    for candidate in CANDIDATES:
        pairs = dict(setting.split("=", 1) for setting in candidate.settings)
        merged = given | pairs
        if merged != given and not _is_default(pairs, given):
            found.append("+".join([OURS, *(f"{name}={value}" for name, value in merged.items())]))
    return [*found, *(name for name in others if name != base)]


def _is_default(pairs: dict[str, str], given: dict[str, str]) -> bool:
    defaults = {option.name: option.shown(option.value) for option in table()}
    return all(given.get(name, defaults[name]) == value for name, value in pairs.items())
