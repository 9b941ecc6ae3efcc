"""Plots with a line an allocator: memory while a row runs, cost over threads, cost over sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt

from hakmem_yardstick import stats
from hakmem_yardstick.content import Content, group_title
from hakmem_yardstick.drawing import Plot, colour, dash, inline, memory_axis, plot, shape, wrapped
from hakmem_yardstick.model import Row, Run
from hakmem_yardstick.units import THIN, axis_of_kib, of_bytes, scale_for
from hakmem_yardstick.words import standings_text

_FEWEST_POINTS = 3
"""A line of two says no more than the table."""
_MOST_SAMPLES = 120
_PANEL = (370, 210)
_MOST_PANELS = 6  # that the legend above them is in sight


def _panels(charts: list[alt.LayerChart], title: str, subtitle: list[str]) -> alt.ConcatChart:
    columns = 2 if len(charts) > 1 else 1
    joined = alt.concat(
        *charts,
        columns=columns,
        title=alt.Title(title, subtitle=wrapped(subtitle, columns * _PANEL[0])),
    )
    separate: alt.ConcatChart = joined.resolve_scale(x="independent", y="independent")
    return separate


def _lines(base: alt.Chart, content: Content, **more: Any) -> list[alt.Chart]:
    """Ours above the peers', and stronger."""
    own = alt.datum.allocator == (content.ours or "")
    kept = ((1.7, ~own), (3.2, own))
    return [
        base.transform_filter(which)
        .mark_line(strokeWidth=wide, strokeJoin="round", opacity=0.95)
        .encode(**more)
        for wide, which in kept
    ]


# ---- resident memory while a row runs ----


def memory_over_time(content: Content, group: str) -> list[Plot]:
    """Of the group's rows that were sampled."""
    rows = content.groups[group]
    charts = [chart for row in rows if (chart := _over_time(content, row)) is not None]
    title = f"{group_title(group)}: resident memory while a row runs"
    said = [
        "Proportional set size of the whole process tree over time; of each allocator "
        "the run of median length.",
        "Smaller is better.",
    ]
    made = []
    for at in range(0, len(charts), _MOST_PANELS):
        part = charts[at : at + _MOST_PANELS]
        number = f"-{at // _MOST_PANELS + 1}" if len(charts) > _MOST_PANELS else ""
        name = f"memory-over-time-{group}{number}"
        made.append(plot(name, title, _panels(part, title, said), content.drawn))
    return made


def _typical(runs: Iterable[Run]) -> Run | None:
    """Of those that were sampled, the one of median length."""
    ordered = sorted((run for run in runs if len(run.series) > 1), key=lambda run: run.seconds)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def _thinned(series: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
    """At most so many samples, of each stretch the largest: peaks must stay."""
    stretch = -(-len(series) // _MOST_SAMPLES)
    parts = (series[at : at + stretch] for at in range(0, len(series), stretch))
    return [max(part, key=lambda sample: sample[1]) for part in parts]


def _over_time(content: Content, row: Row) -> alt.LayerChart | None:
    drawn = content.drawn
    records: list[dict[str, Any]] = []
    for allocator in drawn:
        run = _typical(content.indexed.of(row.name, allocator.name).values())
        for at, kib in _thinned(run.series) if run else ():
            records.append({"allocator": allocator.name, "at": at, "kib": kib})
    if not records:
        return None
    unit, divisor = axis_of_kib(max(record["kib"] for record in records))
    for record in records:
        record["y"] = round(record.pop("kib") / divisor, 3)
    base = alt.Chart(inline(records)).encode(
        x=alt.X("at:Q", axis=alt.Axis(title="seconds", grid=False, tickCount=6, labelSeparation=8)),
        y=alt.Y("y:Q", axis=memory_axis(unit, title=None, tickCount=5, minExtent=56)),
        color=colour(drawn, symbol="stroke"),
    )
    width, height = _PANEL
    title = alt.Title(row.name, fontSize=13, offset=8)
    lines = _lines(base, content, strokeDash=dash(drawn))
    return alt.LayerChart(layer=lines, width=width, height=height, title=title)


# ---- a family's cost over one of its parameters ----


@dataclass(frozen=True)
class _Sweep:
    """Rows of one family that differ in one parameter alone."""

    family: str
    rows: tuple[tuple[float, Row], ...]
    measure: str
    unit: str


# Turns are set so that each row takes about as long; none of these changes what a row does.
_FREE = ("iterations", "seed")


def _sweeps(content: Content, at: Any, moving: tuple[str, ...]) -> list[_Sweep]:
    """`at` gives a row's place on the axis, or None; `moving` are the parameters that it covers."""
    found: dict[tuple[str, ...], dict[float, Row]] = {}
    for row in content.rows:
        place = at(row)
        if place is not None and "time" in {m.name for m in row.measures}:
            same = [f"{k}={v}" for k, v in row.parameters.items() if k not in (*moving, *_FREE)]
            found.setdefault((row.group, row.family, *same), {}).setdefault(float(place), row)
    made = []
    for (_, family, *_rest), rows in found.items():
        if len(rows) >= _FEWEST_POINTS:
            ordered = tuple(sorted(rows.items()))
            unit = next(m.unit for m in ordered[0][1].measures if m.name == "time")
            made.append(_Sweep(family, ordered, "time", unit))
    return made


_LABEL = 62
"""Pixels that a size below the axis takes."""


def _ticks(places: list[float], length: float) -> list[float]:
    """Of a logarithmic axis as long as that: those places whose labels find room."""
    pixels = length / math.log(places[-1] / places[0])
    chosen = [places[0]]
    for place in places[1:]:
        if math.log(place / chosen[-1]) * pixels >= _LABEL:
            chosen.append(place)
    return chosen


def _cost_ticks(values: list[float]) -> list[float]:
    """1, 2, 5, 10 and so on where they find room, else powers of ten."""
    low, high = math.log10(min(values)), math.log10(max(values))
    fine = (1, 1.5, 2, 3, 4, 5, 7) if high - low < 0.8 else (1, 2, 5)
    steps = fine if high - low < 2.5 else (1,)
    powers = range(math.floor(low), math.ceil(high) + 1)
    return [step * 10.0**power for power in powers for step in steps]


def labels(texts: Mapping[float, str]) -> str:
    """An expression of Vega's for the text of each tick."""
    cases = "".join(
        f"abs(datum.value / {at!r} - 1) < 1e-6 ? '{text}' : " for at, text in texts.items()
    )
    return cases + "''"


def _cost_text(value: float, unit: str) -> str:
    scale = scale_for(unit, [value])
    return f"{value / scale.divisor:g}{THIN}{scale.unit}"


def _finding(content: Content, sweep: _Sweep) -> str:
    standings = [content.to_best(row, sweep.measure) for _, row in sweep.rows]
    return standings_text(
        content.ours, [found.standing for found in standings if found is not None]
    )


def over_threads(content: Content) -> list[Plot]:
    sweeps = _sweeps(content, lambda row: row.parameters.get("threads", row.threads), ("threads",))
    title = "Cost of an operation over threads"
    return _curves(content, sweeps, "threads", title, "threads (log scale)")


def _size(row: Row) -> float | None:
    low, high = row.parameters.get("min"), row.parameters.get("max")
    return float(low) if low is not None and low == high else None


def over_sizes(content: Content) -> list[Plot]:
    sweeps = _sweeps(content, _size, ("min", "max", "slots"))
    title = "Cost of an operation over block size"
    return _curves(content, sweeps, "sizes", title, "block size (log scale)")


def _curves(
    content: Content, sweeps: list[_Sweep], name: str, title: str, across: str
) -> list[Plot]:
    made = []
    for at in range(0, len(sweeps), _MOST_PANELS):
        part = sweeps[at : at + _MOST_PANELS]
        charts = [_curve(content, sweep, across, sizes=name == "sizes") for sweep in part]
        said = ["Median time, log scale; smaller is better."]
        number = f"-{at // _MOST_PANELS + 1}" if len(sweeps) > _MOST_PANELS else ""
        made.append(plot(f"{name}{number}", title, _panels(charts, title, said), content.drawn))
    return made


def _curve(content: Content, sweep: _Sweep, across: str, *, sizes: bool) -> alt.LayerChart:
    drawn = content.drawn
    records: list[dict[str, Any]] = []
    for at, row in sweep.rows:
        for allocator in drawn:
            value = stats.median_of(content.indexed, row.name, allocator.name, sweep.measure)
            if value:
                records.append({"allocator": allocator.name, "at": at, "y": value})
    places = [at for at, _ in sweep.rows]
    ticks = _ticks(places, _PANEL[0])
    values = [record["y"] for record in records] or [1.0]
    costs = _cost_ticks(values)
    x = alt.X(
        "at:Q",
        scale=alt.Scale(type="log", base=2, domain=[min(places), max(places)], nice=False),
        axis=alt.Axis(
            title=across,
            values=ticks,
            labelExpr=labels({at: of_bytes(at) if sizes else f"{at:g}" for at in ticks}),
            grid=False,
        ),
    )
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(type="log", domain=[min(values) / 1.15, max(values) * 1.15], nice=False),
        axis=alt.Axis(
            title="time of an operation",
            minExtent=46,
            values=costs,
            labelExpr=labels({cost: _cost_text(cost, sweep.unit) for cost in costs}),
        ),
    )
    base = alt.Chart(inline(records)).encode(x=x, y=y, color=colour(drawn))
    own = alt.datum.allocator == (content.ours or "")
    points = base.mark_point(filled=True, opacity=1).encode(
        shape=shape(drawn), size=alt.condition(own, alt.value(75), alt.value(40))
    )
    width, height = _PANEL
    title = alt.Title(
        sweep.family, subtitle=wrapped([_finding(content, sweep)], _PANEL[0]), fontSize=13, offset=8
    )
    return alt.LayerChart(
        layer=[*_lines(base, content), points], width=width, height=height, title=title
    )
