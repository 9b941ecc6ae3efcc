"""A session in nine lines at most, which stand before everything else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hakmem_yardstick.content import Apart, Content, Means
from hakmem_yardstick.units import THIN
from hakmem_yardstick.words import (
    counted,
    counts_text,
    decimals,
    goals_text,
    mean_text,
    no_wins_text,
    ratio_text,
)

_NAMED = 3
_MEASURES = {"time": ("time", "fastest"), "peak": ("peak memory", "leanest")}


def lines(content: Content) -> list[tuple[str, str]]:
    """What each is about, and what it says."""
    found = [*_means(content), *_others(content), *_rows(content)]
    if content.goals:
        found.append(("goals", goals_text(content.goals)))
    if content.ours:
        found.append(("largest losses", _names(content.losses) or "none"))
        found.append(("largest wins", _names(content.wins) or no_wins_text(content)))
    runs = f"{len(content.results.runs):,}".replace(",", THIN)
    rounds = counted(content.rounds, "round")
    failed = f"{content.failures} failed" if content.failures else "none failed"
    found.append(("runs", f"{runs} in up to {rounds}, {failed}"))
    return found


def _over_all(content: Content) -> dict[str, Means]:
    """Of all rows, which come first; those of the only group, where there is one."""
    found: dict[str, Means] = {}
    for means in content.means:
        if means.measure.name in _MEASURES:
            found.setdefault(means.measure.name, means)
    return found


def _means(content: Content) -> Iterator[tuple[str, str]]:
    for name, means in _over_all(content).items():
        own = means.to_best.get(content.ours or "")
        if own is not None:
            what, best = _MEASURES[name]
            text = f"{ratio_text(own.ratio)} of the {best} other allocator of each row"
            if means.to_system is not None:
                text += f"; {decimals(means.to_system.ratio.value)} of glibc's"
            yield what, f"{text}; {counted(len(means.rows), 'row')}"


def _others(content: Content) -> Iterator[tuple[str, str]]:
    """The best single other allocator, by the same figure."""
    found = []
    for name, means in _over_all(content).items():
        others = {other: mean for other, mean in means.to_best.items() if other != content.ours}
        if others:
            best = min(others, key=lambda other: others[other].ratio.value)
            found.append(f"{best} in {_MEASURES[name][0]} ({mean_text(others[best])})")
    if found:
        yield "best other allocator", ", ".join(found)


def _rows(content: Content) -> Iterator[tuple[str, str]]:
    for name, means in _over_all(content).items():
        if content.ours:
            yield f"rows better / level / worse, {_MEASURES[name][0]}", counts_text(means)


def _names(rows: Iterable[Apart]) -> str:
    found = list(rows)
    named = ", ".join(f"{a.line.row.name} ({a.title} {decimals(a.ratio)})" for a in found[:_NAMED])
    more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"{named}{more}"
