#!/usr/bin/env python3
"""What learning gains and loses beside fixed settings: a table for docs/performance.md.

Usage: yardstick/tools/learning.py FOLDER [--write], of a session in which hakmem ran beside itself
with learn=frozen and other settings of it:

    hakmem bench --full --rounds 6 --out FOLDER --vs hakmem+learn=frozen,\\
        hakmem+learn=frozen+frozen_stack_bytes=1M,...

With --write the table goes into docs/performance.md. The best fixed setting is chosen for each row
by its median: nobody can choose so, but no tuning can do better with these settings.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "yardstick/python"))

from hakmem_yardstick import stats
from hakmem_yardstick.content import GROUPS
from hakmem_yardstick.model import OURS, Results, by_group, results_of
from hakmem_yardstick.stats import Ratio

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/performance.md"
BEGIN, END = "<!-- learning -->", "<!-- end of learning -->"
WINS = 15  # are named
MEASURES = {"time": ("time", 1.05), "peak": ("peak memory", 1.10)}
"""How each is called, and what is named: a row in which learning is so much worse, or better."""


def main() -> None:
    arguments = sys.argv[1:]
    write = "--write" in arguments
    folders = [argument for argument in arguments if argument != "--write"]
    if len(folders) != 1:
        sys.exit(__doc__)
    results = results_of(json.loads((Path(folders[0]) / "results.json").read_text()))
    text = "\n".join(report(results))
    print(text)
    if write:
        page = PAGE.read_text()
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


def report(results: Results) -> Iterator[str]:
    fixed = [name for name in results.names() if name != OURS]
    for measure, (called, apart) in MEASURES.items():
        yield f"**{called.capitalize()}**, learning to fixed:"
        yield ""
        heads = [said(name) for name in fixed]
        yield from row("rows", "", *heads, "the best of them in each row")
        yield from row("---", *["---:"] * (len(fixed) + 2))
        judged = stats.judging(results, measure)
        groups = {"all": judged} | {
            GROUPS[group].lower(): [one.name for one in rows if one.name in judged]
            for group, rows in by_group(results.rows).items()
        }
        for title, names in groups.items():
            if names:
                means = [mean(results, names, measure, [name]) for name in fixed]
                yield from row(title, str(len(names)), *means, mean(results, names, measure, fixed))
        yield ""
        yield from standing_out(results, judged, fixed, measure, called, apart)
        yield ""


def standing_out(
    results: Results, rows: Sequence[str], fixed: Sequence[str], measure: str, called: str,
    apart: float,
) -> Iterator[str]:  # fmt: skip
    """The rows that are shown to be worse or better by more than so much."""
    to_best = {name: stats.ratio_to_best(results, name, OURS, measure, fixed) for name in rows}
    known = {name: one for name, one in to_best.items() if one is not None and one.ratio.is_known}
    worse = sorted(
        (
            (name, one)
            for name, one in known.items()
            if one.ratio.shown_worse and one.ratio.value > apart
        ),
        key=lambda pair: -pair[1].ratio.value,
    )
    better = sorted(
        (
            (name, one.ratio)
            for name in rows
            if (one := stats.ratio_to_best(results, name, OURS, measure, fixed[:1])) is not None
            and one.ratio.is_known
            and one.ratio.shown_better
            and one.ratio.value < 1 / apart
        ),
        key=lambda pair: pair[1].value,
    )
    lost = "; ".join(f"`{name}` {shown(one.ratio)} ({said(one.peer)})" for name, one in worse)
    yield f"Lost, {called} above {apart:.2f} of the best fixed: {lost or 'none'}."
    yield ""
    wins = [f"`{name}` {shown(ratio)}" for name, ratio in better]
    more = [f"and {len(wins) - WINS} more"] if len(wins) > WINS else []
    won = "; ".join([*wins[:WINS], *more])
    yield f"Won, {called} below {1 / apart:.2f} of the default frozen: {won or 'none'}."


def mean(results: Results, rows: Sequence[str], measure: str, peers: Sequence[str]) -> str:
    found = stats.geometric_mean(results, rows, OURS, measure, peers=peers)
    return shown(found.ratio) if found is not None else "-"


def shown(ratio: Ratio) -> str:
    if not ratio.is_known or ratio.low == ratio.high:
        return f"{ratio.value:.3f}"
    return f"{ratio.value:.3f} ({ratio.low:.2f}-{ratio.high:.2f})"


def said(name: str) -> str:
    """A setting, by what it says beyond learn=frozen."""
    words = [word for word in name.split("+")[1:] if word != "learn=frozen"]
    return " ".join(f"`{word.removeprefix('frozen_')}`" for word in words) or "frozen, default"


def row(*cells: str) -> Iterator[str]:
    yield "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
