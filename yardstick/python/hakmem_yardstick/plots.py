"""Plots, drawn by altair with one theme. Text has the colour of the page it stands in; an allocator
has one colour and shape, which can be seen on light and on dark paper."""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert

from hakmem_yardstick import stats
from hakmem_yardstick.content import Content, Table, group_title, measure_title
from hakmem_yardstick.model import OURS, Allocator, Kind, Row, Run
from hakmem_yardstick.units import axis_of_kib

Record = Mapping[str, Any]
Points = Iterable[tuple[float, float]]

# ---- the theme ----

_INK = "currentColor"
_OURS, _GREY = "#d81e52", "#7a838c"
_COLOURS = {
    "glibc": _GREY,
    "mimalloc": "#2b7bd6",
    "mimalloc2": "#2b7bd6",
    "mimalloc3": "#0b9fb3",
    "jemalloc": "#c77400",
    "jemalloc-new": "#b5530c",
    "tcmalloc": "#188a5b",
    "tcmalloc-google": "#5b70cc",
    "snmalloc": "#8557e0",
    "rpmalloc": "#94633b",
}
_MORE = ("#d2559c", "#74831a", "#b0484b", "#438240", "#8d6c97")
_VARIANTS = ("#e0708f", "#a83a5c", "#e08fa5")  # ours with settings, beside ours as it comes
_SHAPES = ("square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")
_SMALL = {"labelFontSize": 12, "titleFontSize": 12}
_FILE = (
    "<style>:root{color:#1f2328;background:#fff}"
    "@media(prefers-color-scheme:dark){:root{color:#e6edf3;background:#0d1117}}</style>"
)


_AXIS = {"labelColor": _INK, "titleColor": _INK, "gridColor": _INK, "titleFontWeight": "normal"}
_CONFIG: Any = {
    "background": None,
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "padding": {"left": 8, "right": 24, "top": 8, "bottom": 8},
    "view": {"stroke": None},
    "axis": {**_AXIS, **_SMALL, "gridOpacity": 0.15, "domain": False, "ticks": False},
    "header": {"labelColor": _INK, "labelFontSize": 13, "title": None},
    "title": {"anchor": "start", "color": _INK, "fontSize": 14, "subtitleColor": _INK},
    "legend": {"orient": "top", "title": None, "labelColor": _INK, "labelFontSize": 12},
}


@alt.theme.register("hakmem", enable=True)
def _theme() -> alt.theme.ThemeConfig:
    return {"config": _CONFIG}


def colours(allocators: Iterable[Allocator]) -> dict[str, str]:
    """By name; those without a colour of their own get the next."""
    found: dict[str, str] = {}
    more, variants = iter(_MORE * 9), iter(_VARIANTS * 9)
    for allocator in allocators:
        name = allocator.name
        if allocator.kind is Kind.OURS:
            found[name] = _OURS if name == OURS else next(variants)
        else:
            found[name] = _COLOURS.get(name) or next(more)
    return found


@dataclass(frozen=True)
class Plot:
    name: str
    """Its file, without the ending."""
    title: str
    """What it says, in a sentence."""
    chart: Any

    def svg(self) -> str:
        """A file of its own."""
        return self.inline().replace(">", f">{_FILE}", 1) + "\n"

    def inline(self) -> str:
        """To stand within a page, whose other plots define the same names."""
        text = vl_convert.vegalite_to_svg(self.chart.to_dict())
        label = html.escape(self.title, quote=True)
        text = text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
        text = re.sub(r"(\d\.\d{2})\d+", r"\1", text)
        return re.sub(r'(\bid="|url\(#)', rf"\g<1>{self.name}-", text)


def _data(records: Iterable[Record]) -> alt.InlineData:
    return alt.InlineData([dict(record) for record in records])


def _legend(names: Iterable[str], width: int, **more: Any) -> alt.Legend:
    widest = max(map(len, names), default=1)
    return alt.Legend(columns=max(1, width // (8 * widest + 36)), **more)


def _colour(known: Mapping[str, str], width: int, **more: Any) -> alt.Color:
    scale = alt.Scale(domain=list(known), range=list(known.values()))
    return alt.Color("allocator:N", scale=scale, legend=_legend(known, width, **more))


def _shape(known: Mapping[str, str], width: int) -> alt.Shape:
    shapes = ["circle" if colour == _OURS else _SHAPES[at % 6] for at, colour in
              enumerate(known.values())]  # fmt: skip
    scale = alt.Scale(domain=list(known), range=shapes)
    return alt.Shape("allocator:N", scale=scale, legend=_legend(known, width))


def _title(title: str, said: Iterable[str], width: int) -> alt.Title:
    """In lines that the plot has room for."""
    lines = [line for text in said for line in textwrap.wrap(text, width // 6)]
    return alt.Title(textwrap.wrap(title, width // 8), subtitle=lines)


# ---- memory over time ----


@dataclass(frozen=True)
class Curve:
    """Memory of one run."""

    allocator: str
    run: str
    kib: Points
    panel: str = ""


def over_time(
    name: str,
    title: str,
    curves: Sequence[Curve],
    known: Mapping[str, str],
    *said: str,
    seconds: str = "seconds",
    width: int = 330,
) -> Plot | None:
    """A line a run; a panel for each name of one."""
    points = [(curve, at, kib) for curve in curves for at, kib in curve.kib]
    if not points:
        return None
    unit, divisor = axis_of_kib(max(kib for _, _, kib in points))
    records = [
        {"allocator": c.allocator, "run": c.run, "panel": c.panel, "at": at, "y": kib / divisor}
        for c, at, kib in points
    ]
    chart = (
        alt.Chart(_data(records), width=width, height=220)
        .mark_line(strokeWidth=1.6, opacity=0.9)
        .encode(
            alt.X("at:Q", title=seconds, axis=alt.Axis(grid=False, tickCount=5)),
            alt.Y("y:Q", title=unit, axis=alt.Axis(tickCount=5)),
            _colour(known, width, symbolType="stroke", symbolStrokeWidth=3),
            detail="run:N",
        )
    )
    made: Any = chart
    if any(curve.panel for curve in curves):
        made = chart.facet("panel:N", columns=2).resolve_scale(x="independent", y="independent")
        width *= 2
    return Plot(name, title, made.properties(title=_title(title, said, width)))


# ---- ratios ----

_LEAST, _MOST = 0.2, 8.0
"""What lies beyond is drawn at the edge: else the few would squeeze the many."""


def ratios(
    name: str,
    title: str,
    axis: str,
    dots: Sequence[Record],
    bars: Sequence[Record],
    known: Mapping[str, str],
    *said: str,
    side_by_side: bool,
    width: int,
) -> Plot:
    """Dots of line, allocator and ratio; bars of these with low and high, an interval. On each line
    the allocators lie one below the other, or all in one place."""
    values = [float(dot["ratio"]) for dot in [*dots, *bars]]
    domain = [max(_LEAST, min([*values, 0.9])) / 1.05, min(_MOST, max([*values, 1.1])) * 1.05]
    scale = alt.Scale(type="log", domain=domain, clamp=True, nice=False)
    x = alt.X("ratio:Q", title=axis, scale=scale, axis=alt.Axis(tickCount=5, format="~g"))
    lines = list(dict.fromkeys(str(dot["line"]) for dot in [*bars, *dots]))
    room = 7 * max(map(len, lines)) + 12
    y_axis = alt.Axis(grid=True, labelLimit=0, minExtent=room)
    y = alt.Y("line:N", title=None, sort=lines, axis=y_axis)
    where: dict[str, Any] = {"x": x, "y": y, "color": _colour(known, width)}
    if side_by_side:
        where["yOffset"] = alt.YOffset("allocator:N", sort=list(known))
    else:
        where["shape"] = _shape(known, width)
    one = alt.Chart(_data([{"ratio": 1.0}])).mark_rule(color=_INK, strokeDash=[4, 3])
    own = alt.Chart(_data(bars))
    layers = [
        one.encode(x=x),
        alt.Chart(_data(dots)).mark_point(
            filled=True, size=24 if side_by_side else 55, opacity=0.45 if side_by_side else 0.85
        ).encode(**where),
        own.mark_rule(strokeWidth=3).encode(
            **{k: v for k, v in where.items() if k != "shape"}
            | {"x": alt.X("low:Q", scale=scale)}, x2="high:Q"
        ),
        own.mark_point(filled=True, size=90, opacity=1).encode(**where),
    ]  # fmt: skip
    step = 26 * len({dot["allocator"] for dot in dots}) if side_by_side else 19
    chart = alt.layer(*layers, width=width, height=step * len(lines))
    return Plot(name, title, chart.properties(title=_title(title, said, width + room)))


def _of_table(content: Content, table: Table, known: Mapping[str, str]) -> Plot | None:
    measure = table.measure.name
    dots: list[Record] = []
    bars: list[Record] = []
    for line in table.lines:
        best = next((cell.allocator for cell in line.cells if cell.is_best_peer), None)
        for name in known if best else ():
            ratio = stats.ratio(content.results, line.row.name, name, best or "", measure)
            if ratio is None:
                continue
            dot = {"line": line.row.name, "allocator": name, "ratio": ratio.value}
            own = name == content.ours and ratio.is_known
            (bars if own else dots).append(dot | {"low": ratio.low, "high": ratio.high})
    if len({dot["allocator"] for dot in dots + bars}) < 2:
        return None
    title = f"{table.title}, as a ratio to the best peer of each row"
    said = "Bars: hakmem's 95% intervals. Dots at the edges lie beyond them."
    axis = f"ratio of {measure_title(table.measure)}, log scale; smaller is better"
    return ratios(f"ratio-{table.key}", title, axis, dots, bars, known, said, side_by_side=False,
                  width=430)  # fmt: skip


# ---- a report's ----


def every_plot(content: Content) -> list[Plot]:
    """All that these results have runs for."""
    known = colours(content.allocators)
    made = [frontier(content)]
    for group in content.groups:
        made += [_of_table(content, t, known) for t in content.tables if t.group == group]
        made.append(_memory(content, group, known))
    made += [_sweeps(content, known, "threads", ("threads",), "threads"),
             _sweeps(content, known, "sizes", ("min", "max", "slots"), "block size")]  # fmt: skip
    return [plot for plot in made if plot is not None]


def _memory(content: Content, group: str, known: Mapping[str, str]) -> Plot | None:
    """Of rows that were sampled; of each allocator the run of median length."""
    curves = []
    for row in content.groups[group]:
        for name in known:
            runs = [run for run in content.results.of(row.name, name).values() if run.series]
            if runs:
                middle = sorted(runs, key=lambda run: run.seconds)[(len(runs) - 1) // 2]
                curves.append(Curve(name, name, _thinned(middle), row.name))
    title = f"{group_title(group)}: resident memory while a row runs"
    said = "PSS of all its processes; of each allocator the run of median length."
    return over_time(f"memory-over-time-{group}", title, curves, known, said)


def _thinned(run: Run, most: int = 120) -> list[tuple[float, float]]:
    """Of each stretch the largest sample: peaks must stay."""
    stretch = -(-len(run.series) // most)
    parts = (run.series[at : at + stretch] for at in range(0, len(run.series), stretch))
    return [max(part, key=lambda sample: sample[1]) for part in parts]


# Turns are set so that each row takes about as long; none of these changes what a row does.
_FREE = ("iterations", "seed")
_BYTES = (
    "datum.value >= 1048576 ? datum.value / 1048576 + ' MiB' : datum.value >= 1024 ?"
    " datum.value / 1024 + ' KiB' : datum.value"
)


def _sweeps(
    content: Content, known: Mapping[str, str], name: str, moving: tuple[str, ...], across: str
) -> Plot | None:
    """Medians of three or more rows of one family that differ in nothing but `moving`."""
    found: dict[tuple[str, ...], dict[float, Row]] = {}
    for row in content.rows:
        p = {"threads": row.threads} | dict(row.parameters)
        place = p.get(moving[0])
        if name == "threads" or (place and p.get("min") == p.get("max")):
            same = (f"{k}={v}" for k, v in p.items() if k not in (*moving, *_FREE))
            found.setdefault((row.group, row.family, *same), {}).setdefault(float(place or 1), row)
    records = []
    for (_, family, *_rest), rows in found.items():
        for at, row in rows.items() if len(rows) > 2 else ():
            for allocator in known:
                value = stats.median_of(content.results, row.name, allocator, "time")
                if value:
                    records.append({"panel": family, "allocator": allocator, "at": at, "y": value})
    if not records:
        return None
    title = f"Time of an operation by {across}"
    labels = _BYTES if name == "sizes" else "datum.value"
    axis = alt.Axis(grid=False, tickCount=4, labelExpr=labels)
    log: Any = {"type": "log", "nice": False}
    chart = alt.Chart(_data(records), width=330, height=210).encode(
        alt.X("at:Q", title=across, scale=alt.Scale(base=2, **log), axis=axis),
        alt.Y("y:Q", title="ns", scale=alt.Scale(**log), axis=alt.Axis(tickCount=4, format="~s")),
        _colour(known, 700),
    )
    lines = chart.mark_line() + chart.mark_point(filled=True, size=45).encode(
        shape=_shape(known, 700)
    )
    facets = lines.facet("panel:N", columns=2).resolve_scale(x="independent", y="independent")
    said = "Medians, log scales; smaller is better."
    return Plot(name, title, facets.properties(title=_title(title, [said], 700)))


def frontier(content: Content) -> Plot | None:
    """Time against memory."""
    points = content.frontier
    if len(points) < 2:
        return None
    names = {point.name for point in points}
    known = colours(a for a in content.allocators if a.name in names)
    own = next((point for point in points if point.name == content.ours), None)
    title = "Time and memory, to the best peer of each row"
    if own is not None:
        title = (
            f"{own.name}: {own.time.ratio.value:.2f} of the time and"
            f" {own.memory.ratio.value:.2f} of the memory of the best peer of each row"
        )
    records: list[dict[str, Any]] = [
        {"allocator": p.name, "x": p.memory.ratio.value, "y": p.time.ratio.value,
         "x1": p.memory.ratio.low, "x2": p.memory.ratio.high,
         "y1": p.time.ratio.low, "y2": p.time.ratio.high}
        for p in points
    ]  # fmt: skip
    scales = {}
    for side in "xy":
        values = [record[side] for record in records]
        domain = [min([*values, 0.95]) / 1.1, max([*values, 1.2]) * 1.1]
        scales[side] = alt.Scale(type="log", domain=domain, clamp=True, nice=False)
    axis = alt.Axis(tickCount=5, format="~g")
    x = alt.X("x:Q", title="peak memory, to the leanest of each row", scale=scales["x"], axis=axis)
    y = alt.Y("y:Q", title="time, to the fastest of each row", scale=scales["y"], axis=axis)
    dots = alt.Chart(_data(records)).encode(x=x, y=y, color=_colour(known, 560))
    best = sorted((p for p in points if p.is_best_trade), key=lambda p: p.memory.ratio.value)
    front = [{"x": p.memory.ratio.value, "y": p.time.ratio.value} for p in best]
    cross = dots.transform_filter(alt.datum.allocator == (content.ours or ""))
    layers = [
        alt.Chart(_data(front))
        .mark_line(color=_GREY, strokeDash=[3, 4], interpolate="step-after")
        .encode(x=x, y=y),
        dots.mark_point(filled=True, size=110, opacity=1).encode(shape=_shape(known, 560)),
    ]
    if own is not None and own.time.ratio.is_known and own.memory.ratio.is_known:
        layers += [cross.mark_rule().encode(x="x1:Q", x2="x2:Q"),
                   cross.mark_rule().encode(y="y1:Q", y2="y2:Q")]  # fmt: skip
    front_names = ", ".join(p.name for p in best)
    said = (
        f"Geometric means of {len(points[0].time.rows)} rows (time) and"
        f" {len(points[0].memory.rows)} (peak memory). Lower left is better.",
        f"Dashed: {front_names}; no other is better than these in both.",
    )
    chart = alt.layer(*layers, width=560, height=360)
    return Plot("frontier", title, chart.properties(title=_title(title, said, 560)))


def rounds(
    title: str,
    base: str,
    logs: Mapping[tuple[str, str], Sequence[float]],
    known: Mapping[str, str],
) -> Plot | None:
    """Of `hakmem compare`: by measure and allocator, the logarithms of the ratios of all rounds."""
    dots, bars = [], []
    for (line, allocator), values in logs.items():
        place = {"line": line, "allocator": allocator}
        dots += [place | {"ratio": math.exp(value)} for value in values]
        ratio = stats.ratio_of(values)
        if ratio is not None and ratio.is_known:
            bars.append(place | {"ratio": ratio.value, "low": ratio.low, "high": ratio.high})
    if not dots:
        return None
    axis = f"ratio to {base}, smaller is better"
    said = "Small dots: rounds. Large dot and bar: the ratio and its 95% interval."
    return ratios("ratios", title, axis, dots, bars, known, said, side_by_side=True, width=250)
