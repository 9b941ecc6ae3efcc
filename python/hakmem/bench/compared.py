"""What a comparison is told in: a table for the terminal, Markdown, and a page with plots."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import altair as alt
import jinja2
import polars as pl
from rich.table import Table
from rich.text import Text

from hakmem.bench import stats
from hakmem.bench.comparison import MEASURES, ROW, Comparison
from hakmem.bench.drawing import Plot, plot
from hakmem.bench.palette import dark_rules, looks
from hakmem.bench.stats import Judged, Ratio, Verdict
from hakmem.bench.units import DASH, scale_for
from hakmem.process import short

Verdicts = Mapping[tuple[str, str], Judged]

_STYLES = {Verdict.BETTER: "green", Verdict.WORSE: "red", Verdict.NONE: ""}
_LABELS = {
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
    showable: str


def lines(comparison: Comparison, judged: Verdicts) -> list[Line]:
    found: list[Line] = []
    results = comparison.results
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
                    _LABELS[measure],
                    f"{scale.text(first.median)} {unit}".rstrip(),
                    name,
                    f"{scale.text(own.median)} {unit}".rstrip(),
                    _times(known.value),
                    interval(known),
                    None if judgement is None else judgement.verdict,
                    "" if judgement is None else _percent(judgement.showable),
                )
            )
    return found


def interval(ratio: Ratio) -> str:
    if not ratio.is_known:
        return "too few rounds"
    return f"{_times(ratio.low)}{DASH}{_times(ratio.high)}"


def _times(ratio: float) -> str:
    """Three digits behind the point near 1, where they matter."""
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
            by[each.verdict].append(_LABELS[measure])
    said = [
        f"{verdict.value} in {_listed(by[verdict])}"
        for verdict in (Verdict.BETTER, Verdict.WORSE)
        if by[verdict]
    ]
    if not said:
        return f"{name} against {comparison.base}: no difference shown."
    rest = f"; no difference shown in {_listed(by[Verdict.NONE])}" if by[Verdict.NONE] else ""
    return f"{name} against {comparison.base}: {', '.join(said)}{rest}."


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def table(comparison: Comparison, judged: Verdicts) -> Table:
    """80 columns wide, where figures are of the usual lengths."""
    made = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    several = len(comparison.compared) > 1
    first = "" if several else comparison.compared[0]
    heads = ("", comparison.base, first, "ratio", "95%\ninterval", "verdict", "could\nshow")
    for at, head in enumerate(heads):
        made.add_column(Text(head), justify="left" if at in (0, 5) else "right", no_wrap=True)
    before = ""
    for line in lines(comparison, judged):
        if several and line.name != before:
            made.add_row(Text(line.name, style="bold"))
            before = line.name
        verdict = Text("") if line.verdict is None else Text(line.verdict, _STYLES[line.verdict])
        made.add_row(
            line.measure, line.base, line.own, line.ratio, line.interval, verdict, line.showable
        )
    return made


def _explained(comparison: Comparison) -> str:
    rounds = len({run.round for run in comparison.results.runs})
    return (
        f"Medians of {rounds} rounds; ratios to {comparison.base}, paired by round, below 1 is"
        " better. Verdicts hold for all of the table together, wrong once in 20 such tables;"
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
            f" | {line.verdict or ''} | {line.showable} |"
        )
    out += ["", *(sentence(comparison, judged, name) for name in comparison.compared)]
    return "\n".join([*out, "", _explained(comparison)]) + "\n"


_HEADS = ("ratio", "95% interval", "verdict", "could have shown")

# ---- plots ----


def plots(comparison: Comparison) -> list[Plot]:
    made = (_memory_over_time(comparison), _ratios(comparison))
    return [each for each in made if each is not None]


def _colours(comparison: Comparison, names: list[str]) -> alt.Color:
    look = looks(comparison.allocators)
    return alt.Color("allocator:N", title=None).scale(
        domain=names, range=[look[name].colour for name in names]
    )


def _memory_over_time(comparison: Comparison) -> Plot | None:
    """All runs, each a thin line: how much they differ is part of the picture."""
    names = [comparison.base, *comparison.compared]
    points = [
        {
            "allocator": run.allocator,
            "run": f"{run.allocator} {run.round}",
            "s": at,
            "MiB": kib / 1024,
        }
        for run in comparison.results.runs
        if run.is_ok and run.allocator in names
        for at, kib in run.series
    ]
    if not points:
        return None
    chart = (
        alt.Chart(pl.DataFrame(points))
        .mark_line(strokeWidth=1, opacity=0.5)
        .encode(
            alt.X("s:Q", title="seconds since the start"),
            alt.Y("MiB:Q", title="resident, MiB (PSS of all processes)"),
            _colours(comparison, names),
            detail="run:N",
        )
        .properties(width=640, height=280, title="Resident memory over time, every run")
    )
    return plot("memory", "Resident memory over time", chart, comparison.allocators)


def _ratios(comparison: Comparison) -> Plot | None:
    """Each round a dot, the interval a bar through the centre."""
    dots: list[dict[str, object]] = []
    bars: list[dict[str, object]] = []
    for name in comparison.compared:
        for measure in comparison.judge:
            logs = stats.logs_of(comparison.results, ROW, name, comparison.base, measure)
            known = stats.ratio_of(logs.values())
            if known is None:
                continue
            place = {"measure": _LABELS[measure], "allocator": name}
            dots += [place | {"ratio": math.exp(value)} for value in logs.values()]
            if known.is_known:
                bars.append(place | {"ratio": known.value, "low": known.low, "high": known.high})
    if not dots:
        return None
    names = comparison.compared
    rows = [_LABELS[measure] for measure in comparison.judge]
    y = alt.Y("measure:N", title=None, sort=rows).scale(padding=0.4)
    offset = alt.YOffset("allocator:N", sort=names)
    colour = _colours(comparison, names)
    x = alt.X("ratio:Q", title=f"ratio to {comparison.base}, less is better").scale(
        type="log", nice=False, padding=12
    )
    layers: list[alt.Chart] = [
        alt.Chart(pl.DataFrame({"ratio": [1.0]})).mark_rule(strokeDash=[4, 3]).encode(x),
        alt.Chart(pl.DataFrame(dots))
        .mark_circle(size=22, opacity=0.35)
        .encode(x, y, colour, offset),
    ]
    if bars:
        base = alt.Chart(pl.DataFrame(bars))
        layers += [
            base.mark_rule(strokeWidth=3).encode(alt.X("low:Q"), y, colour, offset, x2="high:Q"),
            base.mark_tick(thickness=3, size=14).encode(x, y, colour, offset),
        ]
    height = 34 * len(rows) * len(names)
    title = "Paired ratios: every round, centre and 95% interval"
    chart = alt.LayerChart(layer=layers, width=640, height=height, title=title)
    return plot("ratios", "Paired ratios of every round", chart, comparison.allocators)


_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>hakmem compare: {{ command }}</title>
<style>
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .9rem .25rem 0; text-align: right; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child, .word { text-align: left; }
.better { color: #188a5b; } .worse { color: #cf1245; }
.small { opacity: .75; font-size: .9rem; }
svg { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) { {{ dark|safe }} }
</style>
<h1>{{ names|join(", ") }}</h1>
<p><code>{{ command }}</code></p>
{% for each in sentences %}<p><strong>{{ each }}</strong></p>
{% endfor -%}
<table>
<tr>{% for head in heads %}<th{% if loop.index in (2, 6) %} class="word"{% endif %}>{{ head }}</th>
{%- endfor %}</tr>
{% for line in lines -%}
<tr><td>{{ line.measure }}</td><td class="word">{{ line.name }}</td><td>{{ line.base }}</td>
<td>{{ line.own }}</td><td>{{ line.ratio }}</td>
<td>{{ line.interval }}</td><td class="word {{ line.verdict or '' }}">{{ line.verdict or '' }}</td>
<td>{{ line.showable }}</td></tr>
{% endfor -%}
</table>
<p class="small">{{ explained }}</p>
{% for svg in plots %}{{ svg|safe }}
{% endfor -%}
<p class="small">{% for name, value in machine.items() %}{{ name }}: {{ value }}; {% endfor %}</p>
</html>
"""


def html(comparison: Comparison, judged: Verdicts) -> str:
    """A page of its own: nothing is loaded from elsewhere."""
    template = jinja2.Environment(autoescape=True).from_string(_PAGE)
    return template.render(
        command=short(comparison.program.command, 500),
        names=[allocator.name for allocator in comparison.allocators],
        sentences=[sentence(comparison, judged, name) for name in comparison.compared],
        heads=("", "", comparison.base, "its own", *_HEADS),
        lines=lines(comparison, judged),
        explained=_explained(comparison),
        plots=[each.inline() for each in plots(comparison)],
        dark=dark_rules(comparison.allocators),
        machine=comparison.results.machine,
    )
