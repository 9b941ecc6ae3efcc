"""Plots with a line an allocator: memory while a row runs, cost over threads, cost over sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import altair as alt

from hakmem.bench import stats
from hakmem.bench.content import Content, measure_title
from hakmem.bench.drawing import Plot, colour, dash, plot, shape
from hakmem.bench.model import Allocator, Kind, Row, Run
from hakmem.bench.palette import looks
from hakmem.bench.units import of_bytes, parameters_text

_FEWEST_POINTS = 3
"""A line of two says no more than the table."""
_MOST_SAMPLES = 120
_PANEL = (370, 210)
_MOST_PANELS = 12


def _values(records: Iterable[Mapping[str, Any]]) -> alt.Data:
    return alt.Data(values=list(records))


def _drawn(content: Content) -> list[Allocator]:
    return [a for a in content.allocators if a.kind is not Kind.FLOOR]


def _panels(charts: list[alt.LayerChart], title: str, subtitle: list[str]) -> alt.ConcatChart:
    columns = 2 if len(charts) > 1 else 1
    return (
        alt.concat(*charts, columns=columns)
        .resolve_scale(x="independent", y="independent")
        .properties(title=alt.Title(title, subtitle=subtitle))
    )


def _widths(content: Content) -> alt.Size:
    names = [a.name for a in _drawn(content)]
    return alt.Size(
        "allocator:N",
        scale=alt.Scale(domain=names, range=[3.0 if n == content.ours else 1.6 for n in names]),
        legend=None,
    )


# ---- resident memory while a row runs ----


def memory_over_time(content: Content) -> list[Plot]:
    """A plot a group of which rows were sampled."""
    made = []
    for group, rows in content.groups.items():
        charts = [chart for row in rows if (chart := _over_time(content, row)) is not None]
        for at in range(0, len(charts), _MOST_PANELS):
            part = charts[at : at + _MOST_PANELS]
            title = f"{content.title_of(group)}: resident memory while a row runs"
            said = [
                "Proportional set size of the whole process tree, in MiB by seconds; of each "
                "allocator the run of median length.",
                "Smaller is better.",
            ]
            number = f"-{at // _MOST_PANELS + 1}" if len(charts) > _MOST_PANELS else ""
            name = f"memory-over-time-{group}{number}"
            made.append(plot(name, title, _panels(part, title, said), _drawn(content)))
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
    drawn = _drawn(content)
    records: list[dict[str, Any]] = []
    for allocator in drawn:
        run = _typical(content.indexed.of(row.name, allocator.name).values())
        for at, kib in _thinned(run.series) if run else ():
            records.append({"allocator": allocator.name, "at": at, "mib": round(kib / 1024, 3)})
    if not records:
        return None
    base = alt.Chart(_values(records)).encode(
        x=alt.X("at:Q", axis=alt.Axis(title="seconds", grid=False, tickCount=6)),
        y=alt.Y("mib:Q", axis=alt.Axis(title="MiB", tickCount=5)),
        color=colour(drawn),
        strokeDash=dash(drawn),
        size=_widths(content),
    )
    width, height = _PANEL
    return alt.layer(base.mark_line(strokeJoin="round")).properties(
        width=width, height=height, title=alt.Title(row.name, fontSize=13, offset=6)
    )


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
        made.append(plot(f"{name}{number}", title, _panels(charts, title, said), _drawn(content)))
    return made


def _curve(content: Content, sweep: _Sweep, across: str, *, sizes: bool) -> alt.LayerChart:
    drawn = _drawn(content)
    records: list[dict[str, Any]] = []
    for at, row in sweep.rows:
        for allocator in drawn:
            value = stats.median_of(content.indexed, row.name, allocator.name, sweep.measure)
            if value:
                records.append({"allocator": allocator.name, "at": at, "y": value})
    places = [at for at, _ in sweep.rows]
    ticks = [at for at in places if sizes is False or _is_round(at, places)]
    labels = {at: of_bytes(at) if sizes else f"{at:g}" for at in ticks}
    cases = "".join(f"datum.value=={at!r}?'{text}':" for at, text in labels.items())
    x = alt.X(
        "at:Q",
        scale=alt.Scale(type="log", base=2, domain=[min(places), max(places)], nice=False),
        axis=alt.Axis(title=across, values=ticks, labelExpr=cases + "''", grid=False),
    )
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(type="log", nice=True),
        axis=alt.Axis(title=f"{sweep.unit} an operation", tickCount=5, format="~s"),
    )
    base = alt.Chart(_values(records)).encode(x=x, y=y, color=colour(drawn))
    wide = 1 if len(sweep.rows) < 9 else 2
    width, height = _PANEL
    return alt.layer(
        base.mark_line(opacity=0.9).encode(size=_widths(content)),
        base.mark_point(filled=True, opacity=1).encode(
            shape=shape(drawn),
            size=alt.condition(
                alt.datum.allocator == (content.ours or ""), alt.value(70), alt.value(38)
            ),
        ),
    ).properties(
        width=width * wide + (wide - 1) * 80,
        height=height,
        title=alt.Title(
            sweep.family, subtitle=_finding(content, sweep), fontSize=13, offset=6
        ),
    )
