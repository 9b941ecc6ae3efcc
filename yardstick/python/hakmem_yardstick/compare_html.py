"""A comparison as a page of HTML, with plots. Apart from the rest, for what it takes to load."""

from __future__ import annotations

import math

import altair as alt
import jinja2
import polars as pl

from hakmem.process import short
from hakmem_yardstick import stats
from hakmem_yardstick.compare_runs import ROW, Comparison
from hakmem_yardstick.compare_text import LABELS, Verdicts, explained, lines, sentence
from hakmem_yardstick.drawing import Plot, memory_axis, plot
from hakmem_yardstick.palette import dark_rules, looks
from hakmem_yardstick.units import axis_of_kib


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
    runs = [r for r in comparison.results.runs if r.is_ok and r.allocator in names and r.series]
    if not runs:
        return None
    unit, divisor = axis_of_kib(max(kib for run in runs for _, kib in run.series))
    points = [
        {
            "allocator": run.allocator,
            "run": f"{run.allocator} {run.round}",
            "s": at,
            "size": kib / divisor,
        }
        for run in runs
        for at, kib in run.series
    ]
    chart = (
        alt.Chart(pl.DataFrame(points))
        .mark_line(strokeWidth=1, opacity=0.5)
        .encode(
            alt.X("s:Q", title="seconds since the start"),
            alt.Y("size:Q", axis=memory_axis(unit, title="resident (PSS of all processes)")),
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
            place = {"measure": LABELS[measure], "allocator": name}
            dots += [place | {"ratio": math.exp(value)} for value in logs.values()]
            if known.is_known:
                bars.append(place | {"ratio": known.value, "low": known.low, "high": known.high})
    if not dots:
        return None
    names = comparison.compared
    rows = [LABELS[measure] for measure in comparison.judge]
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
    said = "A dot is a round, the upright line the centre, the bar its 95% interval."
    title = alt.Title("Paired ratios", subtitle=said)
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
.box { overflow-x: auto; } h1, p, code { overflow-wrap: anywhere; }
@media (max-width: 640px) {
th { display: none; } table, tbody { display: block; }
tr { display: flex; flex-wrap: wrap; border-top: 1px solid #8884; }
td { text-align: left; } td:first-child { flex-basis: 100%; font-weight: 600; }
td[data-label]::before { content: attr(data-label); display: block; font-size: .75rem; }
}
svg { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) { {{ dark|safe }} }
</style>
<h1>{{ names|join(", ") }}</h1>
<p><code>{{ command }}</code></p>
{% for each in sentences %}<p><strong>{{ each }}</strong></p>
{% endfor -%}
<div class="box"><table>
<tr>{% for head in heads %}<th{% if loop.index in (2, 7) %} class="word"{% endif %}>{{ head }}</th>
{%- endfor %}</tr>
{% for line in lines -%}
<tr><td>{{ line.measure }}</td><td class="word">{{ line.name }}</td>
<td data-label="{{ heads[2] }}">{{ line.base }}</td>
<td data-label="{{ line.name }}">{{ line.own }}</td>
{% for text in (line.ratio, line.interval, line.said, line.showable) -%}
<td data-label="{{ heads[loop.index0 + 4] }}"
{%- if loop.index == 3 %} class="word {{ line.verdict or '' }}"{% endif %}>{{ text }}</td>
{% endfor %}</tr>
{% endfor -%}
</table></div>
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
        heads=(
            "",
            "",
            comparison.base,
            "its own",
            "ratio",
            "95% interval",
            "verdict",
            "could have shown",
        ),
        lines=lines(comparison, judged),
        explained=explained(comparison),
        plots=[each.inline() for each in plots(comparison)],
        dark=dark_rules(comparison.allocators),
        machine=comparison.results.machine,
    )
