"""What is said of two builds: ratios of parts, verdicts, and a paragraph for a commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hakmem_yardstick.model import OURS, Results
from hakmem_yardstick.sheet import Sheet
from hakmem_yardstick.stats import Ratio
from yardstick.judge import means
from yardstick.judge.parts import Figures, Part

BEFORE = "before"
AFTER = OURS
EQUAL = 0.01
"""An interval that lies so near to 1 is one of equals: the place of code alone makes as much."""


@dataclass(frozen=True)
class Line:
    part: str
    what: str
    ratio: Ratio | None
    """Of after to before; None where there is none to be told. Its `rounds` are rows."""

    @property
    def verdict(self) -> str:
        ratio = self.ratio
        if ratio is None:
            return "no figure"
        if not ratio.is_known:
            return "can't tell"
        if ratio.low >= 1 - EQUAL and ratio.high <= 1 + EQUAL:
            return "equal"
        if ratio.shown_better:
            return "better"
        return "worse" if ratio.shown_worse else "can't tell"

    @property
    def text(self) -> str:
        if self.ratio is None:
            return f"{self.what} {self.verdict}"
        return f"{self.what} {shown(self.ratio)} {self.verdict}"

    def to_json(self) -> dict[str, Any]:
        known: dict[str, Any] = {"part": self.part, "what": self.what, "verdict": self.verdict}
        if self.ratio is None:
            return known
        ratio = self.ratio
        known |= {"ratio": ratio.value, "rows": ratio.rounds}
        if ratio.is_known:
            known |= {"interval": [ratio.low, ratio.high], "could_show": ratio.showable()}
        return known


def shown(ratio: Ratio) -> str:
    if not ratio.is_known:
        return f"{ratio.value:.3f}"
    return f"{ratio.value:.3f} ({ratio.low:.3f}\N{EN DASH}{ratio.high:.3f})"


def lines(part: Part, results: Results, seed: int) -> list[Line]:
    return [
        Line(part.name, what, _ratio(part, figures, results, seed))
        for what, figures in part.lines.items()
        if figures
    ]


def _ratio(part: Part, figures: Figures, results: Results, seed: int) -> Ratio | None:
    there = {row.name for row in results.rows}
    ran = {row: own for row, own in figures.items() if row in there}
    ratio = means.mean_of_work(results, ran, AFTER, BEFORE, seed)
    if ratio is not None and part.is_secret and not ratio.is_known:
        return None
    return ratio


def sheet(all_lines: Sequence[Line]) -> Sheet:
    heads = ("part", "what", "after/before", "95% interval", "could show", "rows", "verdict")
    return Sheet(heads, [_cells(line) for line in all_lines], left=range(7))


def _cells(line: Line) -> tuple[str, ...]:
    ratio = line.ratio
    if ratio is None:
        return line.part, line.what, "-", "-", "-", "0", line.verdict
    value, _, ends = shown(ratio).partition(" ")
    showable = f"{100 * ratio.showable():.1f}%" if ratio.is_known else "-"
    ends = ends.strip("()") or "-"
    return line.part, line.what, value, ends, showable, str(ratio.rounds), line.verdict


def paragraph(before: str, after: str, all_lines: Iterable[Line]) -> str:
    """For a commit's message."""
    by_part: dict[str, list[Line]] = {}
    for line in all_lines:
        by_part.setdefault(line.part, []).append(line)
    said = "; ".join(
        f"{part}: {', '.join(line.text for line in own)}" for part, own in by_part.items()
    )
    return (
        f"Judged (yardstick/docs/judge.md), {after} to {before}, geometric means with 95%"
        f" intervals, below 1 is better. {said[0].upper()}{said[1:]}."
    )
