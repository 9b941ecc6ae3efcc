"""What is said of a comparison: tables for the terminal, sentences, Markdown."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from hakmem.process import short
from hakmem_yardstick import stats
from hakmem_yardstick.compare_runs import ROW, Comparison
from hakmem_yardstick.stats import Judged, Ratio, Verdict
from hakmem_yardstick.subject import MEASURES
from hakmem_yardstick.units import DASH, scale_for

Verdicts = Mapping[tuple[str, str], Judged]

_STYLES = {Verdict.BETTER: "green", Verdict.WORSE: "red", Verdict.NONE: ""}
LABELS = {
    "time": "time",
    "cpu": "cpu time",
    "peak": "peak memory",
    "pss": "mean memory",
    "faults": "page faults",
    "major-faults": "major faults",
}


@dataclass(frozen=True)
class Line:
    """One measure of one allocator, against the first."""

    measure: str
    base: str
    """Median with unit."""
    name: str
    own: str
    ratio: str
    interval: str
    verdict: Verdict | None
    """None if it was not to be judged."""
    said: str
    """The verdict, or why there is none."""
    showable: str


def lines(comparison: Comparison, judged: Verdicts) -> list[Line]:
    found: list[Line] = []
    results, few = comparison.results, has_too_few_rounds(comparison)
    for name in comparison.compared:
        for measure, about in MEASURES.items():
            first = stats.spread_of(results, ROW, comparison.base, measure)
            own = stats.spread_of(results, ROW, name, measure)
            known = stats.ratio(results, ROW, name, comparison.base, measure)
            if first is None or own is None or known is None or first.high == own.high == 0:
                continue
            scale = scale_for(about.unit, [first.median, own.median])
            unit = "" if scale.unit == "faults" else scale.unit
            judgement = judged.get((name, measure))
            found.append(
                Line(
                    LABELS[measure],
                    f"{scale.text(first.median)} {unit}".rstrip(),
                    name,
                    f"{scale.text(own.median)} {unit}".rstrip(),
                    _times(known.value),
                    interval(known),
                    None if judgement is None else judgement.verdict,
                    "" if judgement is None else "too few rounds" if few else judgement.verdict,
                    "" if judgement is None or few else _percent(judgement.showable),
                )
            )
    return found


def rounds(comparison: Comparison) -> int:
    return len({run.round for run in comparison.results.runs})


def has_too_few_rounds(comparison: Comparison) -> bool:
    """For any verdict, however far the runs lie apart."""
    return rounds(comparison) < comparison.least_rounds


def interval(ratio: Ratio) -> str:
    if not ratio.is_known:
        return "too few rounds"
    return f"{_times(ratio.low)}{DASH}{_times(ratio.high)}"


def _times(ratio: float) -> str:
    """Three digits after the point near 1, where they matter."""
    return f"{ratio:.3f}" if ratio < 10 else f"{ratio:.3g}"


def _percent(part: float) -> str:
    if not math.isfinite(part):
        return "none"
    return f"{part:.1%}" if part < 0.1 else f"{part:.0%}"


def sentence(comparison: Comparison, judged: Verdicts, name: str) -> str:
    """The verdict on one allocator as a whole."""
    by: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict}
    for (other, measure), each in judged.items():
        if other == name:
            by[each.verdict].append(LABELS[measure])
    said = [
        f"{verdict.value} in {_listed(by[verdict])}"
        for verdict in (Verdict.BETTER, Verdict.WORSE)
        if by[verdict]
    ]
    if not said and has_too_few_rounds(comparison):
        least = comparison.least_rounds
        return (
            f"{name} against {comparison.base}: too few rounds for a verdict ({least} are needed)."
        )
    if not said:
        return f"{name} against {comparison.base}: no difference shown."
    rest = f"; no difference shown in {_listed(by[Verdict.NONE])}" if by[Verdict.NONE] else ""
    return f"{name} against {comparison.base}: {', '.join(said)}{rest}."


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def table(comparison: Comparison, judged: Verdicts, name: str) -> Table:
    """Of one against the first; 80 columns wide, where figures are of the usual lengths."""
    made = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    names = ("\n".join(textwrap.wrap(each, 12)) for each in (comparison.base, name))
    heads = ("", *names, "ratio", "95%\ninterval", "verdict", "could\nshow")
    for at, head in enumerate(heads):
        made.add_column(Text(head), justify="left" if at in (0, 5) else "right", no_wrap=True)
    for line in lines(comparison, judged):
        if line.name != name:
            continue
        verdict = Text(line.said, "" if line.verdict is None else _STYLES[line.verdict])
        made.add_row(
            line.measure, line.base, line.own, line.ratio, line.interval, verdict, line.showable
        )
    return made


def explained(comparison: Comparison) -> str:
    return (
        f"Medians of {rounds(comparison)} rounds; ratios to {comparison.base}, paired by round,"
        " below 1 is better. Verdicts hold for all of the table together, wrong once in 20 tables;"
        " the last column is the difference that 4 of 5 such runs would have shown."
    )


def markdown(comparison: Comparison, judged: Verdicts) -> str:
    several = len(comparison.compared) > 1
    others = "allocator" if several else "".join(comparison.compared)
    out = [
        f"`{short(comparison.program.command, 200)}`",
        "",
        f"| | {comparison.base} | {others} | ratio | 95% interval | verdict | could have shown |",
        "|---|--:|--:|--:|--:|---|--:|",
    ]
    for line in lines(comparison, judged):
        own = f"{line.name} {line.own}" if several else line.own
        out.append(
            f"| {line.measure} | {line.base} | {own} | {line.ratio} | {line.interval}"
            f" | {line.said} | {line.showable} |"
        )
    out += ["", *(sentence(comparison, judged, name) for name in comparison.compared)]
    return "\n".join([*out, "", explained(comparison)]) + "\n"
