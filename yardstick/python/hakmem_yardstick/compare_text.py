"""What is said of a comparison: a table for each allocator, sentences, a page."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hakmem.process import short
from hakmem_yardstick import machine, stats
from hakmem_yardstick.compare_runs import ROW, Comparison
from hakmem_yardstick.sheet import BETTER, WORSE, Cell, Part, Sheet, document, page
from hakmem_yardstick.stats import Judged, Ratio, Verdict
from hakmem_yardstick.subject import MEASURES
from hakmem_yardstick.units import DASH, scale_for

Verdicts = Mapping[tuple[str, str], Judged]

_STYLES = {Verdict.BETTER: BETTER, Verdict.WORSE: WORSE, Verdict.NONE: ""}
LABELS = {
    "time": "time",
    "cpu": "cpu time",
    "peak": "peak memory",
    "pss": "mean memory",
    "faults": "page faults",
    "major-faults": "major faults",
}


def sheet(comparison: Comparison, judged: Verdicts, name: str) -> Sheet:
    """Of one allocator against the first."""
    results, few = comparison.results, has_too_few_rounds(comparison)
    rows: list[tuple[Cell | str, ...]] = []
    for measure, about in MEASURES.items():
        first = stats.spread_of(results, ROW, comparison.base, measure)
        own = stats.spread_of(results, ROW, name, measure)
        known = stats.ratio(results, ROW, name, comparison.base, measure)
        if first is None or own is None or known is None or first.high == own.high == 0:
            continue
        scale = scale_for(about.unit, [first.median, own.median])
        unit = "" if scale.unit == "faults" else scale.unit
        figures = [f"{scale.text(each.median)} {unit}".rstrip() for each in (first, own)]
        each = judged.get((name, measure))
        verdict = Cell("") if each is None else Cell(
            "too few rounds" if few else each.verdict, "" if few else _STYLES[each.verdict]
        )  # fmt: skip
        showable = "" if each is None or few else _percent(each.showable)
        rows.append(
            (LABELS[measure], *figures, _times(known.value), _interval(known), verdict, showable)
        )
    heads = ("", comparison.base, name, "ratio", "95% interval", "verdict", "could show")
    return Sheet(heads, rows, left=(0, 5), fixed=6)


def has_too_few_rounds(comparison: Comparison) -> bool:
    """For any verdict, however far the runs lie apart."""
    return comparison.rounds < comparison.least_rounds


def _interval(ratio: Ratio) -> str:
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


def explained(comparison: Comparison) -> str:
    return (
        f"Medians of {comparison.rounds} rounds. A ratio is the median over pairs of runs of one"
        f" round, and below 1 is less than {comparison.base}. The verdicts of one comparison hold"
        ' together with 95% confidence. "Could show": smaller differences would mostly not have'
        " been found."
    )


def markdown(comparison: Comparison, judged: Verdicts) -> str:
    return document(_title(comparison), _parts(comparison, judged), "")


def html(comparison: Comparison, judged: Verdicts) -> str:
    from hakmem_yardstick import plots  # takes a second to load

    base, names = comparison.base, [comparison.base, *comparison.compared]
    known = {n: c for n, c in plots.colours(comparison.allocators).items() if n in names}
    runs = [run for run in comparison.results.runs if run.is_ok and run.allocator in names]
    curves = [plots.Curve(r.allocator, f"{r.allocator} {r.round}", r.series) for r in runs]
    logs = {
        (LABELS[measure], name): list(found.values())
        for measure in comparison.judge
        for name in comparison.compared
        if (found := stats.logs_of(comparison.results, ROW, name, base, measure))
    }
    made = (
        plots.over_time("memory", "Resident memory over time, every run", curves, known,
                        "PSS of all its processes", seconds="seconds since the start"),
        plots.rounds("Paired ratios", base, logs, {n: c for n, c in known.items() if n != base}),
    )  # fmt: skip
    drawn = Part(plots=[plot for plot in made if plot is not None])
    facts = [(label, value) for label, value in machine.told(comparison.results.machine)]
    about = Part("Machine", sheet=Sheet(("", ""), facts, left=(0, 1)))
    return page(_title(comparison), [*_parts(comparison, judged), drawn, about])


def _title(comparison: Comparison) -> str:
    return "hakmem compare: " + ", ".join(each.name for each in comparison.allocators)


def _parts(comparison: Comparison, judged: Verdicts) -> list[Part]:
    found = [Part(text=[short(comparison.program.command, 500)])]
    for name in comparison.compared:
        said = sentence(comparison, judged, name)
        found.append(Part(text=[said], sheet=sheet(comparison, judged, name)))
    return [*found, Part(text=[explained(comparison)])]
