"""Replays as a page of HTML. Apart from the rest, for what it takes to load."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import jinja2
import numpy as np
import polars as pl

from hakmem.process import short
from hakmem_yardstick.drawing import Plot, memory_axis, plot
from hakmem_yardstick.model import Allocator, Kind
from hakmem_yardstick.palette import dark_rules, looks
from hakmem_yardstick.replay import curve
from hakmem_yardstick.replay_cli import HEADS, RANK_HEADS, Replayed, ranks, rows
from hakmem_yardstick.units import axis_of_kib

_IN_USE = "in use"


def _plot(done: Replayed, number: int, allocators: Sequence[Allocator]) -> Plot | None:
    curves = {_IN_USE: curve(np.asarray(done.ready.times), np.asarray(done.ready.live))}
    for name in done.played:
        typical = done.typical(name)
        if typical is not None:
            curves[name] = typical.curve
    if len(curves) == 1:
        return None
    unit, divisor = axis_of_kib(max(size for each in curves.values() for _, size in each) / 1024)
    points = [
        {"allocator": name, "s": at, "size": size / 1024 / divisor}
        for name, each in curves.items()
        for at, size in each
    ]
    look = looks(allocators)
    names = list(curves)
    colours = [look[name].colour if name in look else "#6e7780" for name in names]
    chart = (
        alt.Chart(pl.DataFrame(points))
        .mark_line(strokeWidth=1.5)
        .encode(
            alt.X("s:Q", title="seconds of the recording"),
            alt.Y("size:Q", axis=memory_axis(unit, title="memory of the heap")),
            alt.Color("allocator:N", title=None).scale(domain=names, range=colours),
        )
        .properties(width=640, height=280, title="Memory over time")
    )
    return plot(f"curve{number}", "Memory over time", chart, allocators)


_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>hakmem replay</title>
<style>
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .9rem .25rem 0; text-align: right; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
.small { opacity: .75; font-size: .9rem; }
.box { overflow-x: auto; } h1, h2, p, code { overflow-wrap: anywhere; }
svg { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) { {{ dark|safe }} }
</style>
<h1>hakmem replay</h1>
{% macro table(heads, rows) -%}
<div class="box"><table>
<tr>{% for head in heads %}<th>{{ head }}</th>{% endfor %}</tr>
{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</table></div>
{%- endmacro %}
{% if ranks %}{{ table(rank_heads, ranks) }}{% endif %}
{% for each in recordings %}
<h2>{{ each.name }}</h2>
<p><code>{{ each.command }}</code></p>
<p>{{ each.calls }}</p>
{{ table(heads, each.rows) }}
{{ each.svg|safe }}
{% endfor %}
<p class="small">{{ note }}</p>
</html>
"""


def html(all_of_them: Sequence[Replayed], note: str) -> str:
    """A page of its own: nothing is loaded from elsewhere."""
    allocators = [Allocator(name, Kind.PEER) for name in all_of_them[0].played]
    recordings = []
    for number, done in enumerate(all_of_them):
        drawn = _plot(done, number, allocators)
        recordings.append(
            {
                "name": str(done.recording),
                "command": short(done.ready.command, 500),
                "calls": f"{done.ready.calls:,} calls of {done.ready.threads} threads in"
                f" {done.ready.times[-1]:.2f} s; at most {done.ready.peak / 2**20:.1f} MiB in use",
                "rows": rows(done),
                "svg": drawn.inline() if drawn is not None else "",
            }
        )
    template = jinja2.Environment(autoescape=True).from_string(_PAGE)
    return template.render(
        recordings=recordings,
        heads=HEADS,
        rank_heads=RANK_HEADS,
        ranks=ranks(all_of_them) if len(all_of_them) > 1 else [],
        note=note,
        dark=dark_rules(allocators),
    )
