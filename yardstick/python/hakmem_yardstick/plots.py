"""A report's pictures: each row's ratios, time against memory, and a summary for a README."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import altair as alt

from hakmem_yardstick import stats
from hakmem_yardstick.content import Content, Line, Standing, Table, group_title, measure_title
from hakmem_yardstick.curves import memory_over_time, over_sizes, over_threads
from hakmem_yardstick.drawing import (
    LETTER,
    Box,
    Plot,
    colour,
    inline,
    place_labels,
    plot,
    ratio_axis,
    ratio_ticks,
    shape,
    wrapped,
)
from hakmem_yardstick.model import Allocator, Kind
from hakmem_yardstick.palette import INK, PAPER, QUIET, TINT, looks
from hakmem_yardstick.stats import Ratio
from hakmem_yardstick.words import counted, sign, standings_text

# What lies beyond is drawn at the edge with an arrow: else the few would squeeze the many.
_LEAST, _MOST = 0.2, 8.0
_STEP, _WIDTH = 19, 600
_PADDING = 20  # has room for an arrow between a line and its name


def every_plot(content: Content) -> list[Plot]:
    """All that these results have runs for; the first is the summary."""
    made = [_summary(content), frontier(content)]
    for group in content.groups:
        made += [*_of_group(content, group), *memory_over_time(content, group)]
    made += [*over_threads(content), *over_sizes(content)]
    return [found for found in made if found is not None]


# ---- ratios: one line a row ----


@dataclass(frozen=True)
class _Dot:
    line: str
    allocator: str
    ratio: Ratio


@dataclass(frozen=True)
class _Lines:
    """Dots on lines, one of ours and some of peers on each, and what is written beside them."""

    names: list[str]
    dots: list[_Dot]
    beside: dict[str, str]
    ours: str | None

    def limits(self) -> tuple[float, float]:
        values = [dot.ratio.value for dot in self.dots]
        for dot in self.dots:
            if dot.allocator == self.ours and dot.ratio.is_known:
                # An interval may leave the picture, but not a usual one.
                values += [max(dot.ratio.low, dot.ratio.value / 1.4)]
                values += [min(dot.ratio.high, dot.ratio.value * 1.4)]
        low, high = max(_LEAST, min([*values, 0.85])), min(_MOST, max([*values, 1.25]))
        return low / 1.07, high * 1.07


def _dots(
    lines: _Lines,
    allocators: list[Allocator],
    *,
    width: int,
    title: str,
    heading: str = "",
    labelled: bool = True,
    step: int = _STEP,
) -> alt.LayerChart:
    low, high = lines.limits()
    known = looks(allocators)
    x = alt.X(
        "x:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=ratio_axis(title, ratio_ticks(low, high, width)),
    )
    y = alt.Y(
        "line:N",
        sort=lines.names,
        scale=alt.Scale(domain=lines.names),
        axis=alt.Axis(
            title=None,
            grid=True,
            labelColor=INK,
            labelLimit=0,
            labelPadding=_PADDING,
            labels=labelled,
            minExtent=_PADDING + LETTER * max(map(len, lines.names)) if labelled else 0,
        ),
    )

    def record(dot: _Dot) -> dict[str, Any]:
        inside = min(max(dot.ratio.value, low), high)
        return {"line": dot.line, "allocator": dot.allocator, "x": inside}

    peers = [record(dot) for dot in lines.dots if dot.allocator != lines.ours]
    own = [dot for dot in lines.dots if dot.allocator == lines.ours]
    spans = [
        record(dot) | {"x": max(dot.ratio.low, low), "x2": min(dot.ratio.high, high)}
        for dot in own
        if dot.ratio.is_known and dot.ratio.low < high and dot.ratio.high > low
    ]
    right, left = (
        "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}",
        "\N{BLACK LEFT-POINTING SMALL TRIANGLE}",
    )
    over = [record(dot) | {"arrow": right} for dot in lines.dots if dot.ratio.value > high]
    under = [record(dot) | {"arrow": left} for dot in lines.dots if dot.ratio.value < low]
    better = alt.Chart(inline([{"from": low, "to": min(1.0, high)}])).mark_rect(color=TINT)
    one = alt.Chart(inline([{"x": 1.0}])).mark_rule(color=INK, strokeWidth=1.2)
    layers: list[alt.Chart] = [
        better.encode(x=alt.X("from:Q"), x2="to:Q"),
        one.encode(x="x:Q"),
        alt.Chart(inline(peers))
        .mark_point(filled=True, size=48, opacity=0.8)
        .encode(x=x, y=y, color=colour(allocators), shape=shape(allocators)),
        *(
            alt.Chart(inline(beyond))
            .mark_text(dx=shift, fontSize=17, baseline="middle")
            .encode(x=x, y=y, text="arrow:N", color=colour(allocators))
            for beyond, shift in ((over, 11), (under, -11))
        ),
    ]
    if lines.ours is not None and lines.ours in known:
        crimson = known[lines.ours].colour
        layers += [
            alt.Chart(inline(spans))
            .mark_rule(color=crimson, strokeWidth=2.4, strokeCap="round")
            .encode(x=x, x2="x2:Q", y=y),
            alt.Chart(inline(map(record, own)))
            .mark_point(filled=True, size=105, opacity=1, stroke=PAPER, strokeWidth=1.2)
            .encode(x=x, y=y, color=colour(allocators), shape=shape(allocators)),
            alt.Chart(inline({"line": n, "text": t} for n, t in lines.beside.items()))
            .mark_text(align="left", color=crimson, fontSize=12, fontWeight="bold")
            .encode(x=alt.value(width + 20), y=y, text="text:N"),
        ]
    above = alt.Title(heading, fontSize=13, offset=8)
    return alt.LayerChart(
        layer=layers,
        width=width,
        height=step * len(lines.names),
        title=above if heading else alt.Undefined,
    )


def _beside(content: Content, line: Line) -> str:
    if line.to_best is not None:
        return f"{sign(line.to_best.standing)} {line.to_best.ratio.value:.2f}".strip()
    cell = next((c for c in line.cells if c.allocator == content.ours), None)
    return cell.text if cell is not None and cell.value is None else ""


# Tables with fewer rows share a plot: many small ones would show less.
_FEW_ROWS = 6


def _of_group(content: Content, group: str) -> list[Plot | None]:
    tables = [table for table in content.tables if table.group == group]
    small = [table for table in tables if len(table.lines) < _FEW_ROWS]
    if len(small) < 2:
        small = []
    made = [
        _ratios(content, table.title, table.key, [table]) for table in tables if table not in small
    ]
    if small:
        title = f"{group_title(group)}: {'other figures' if made else 'all figures'}"
        made.append(_ratios(content, title, f"{group}-figures", small))
    return made


def _ratios(content: Content, of: str, key: str, tables: list[Table]) -> Plot | None:
    """Of one table, or of several that are small."""
    dots: list[_Dot] = []
    beside: dict[str, str] = {}
    standings: list[Standing] = []
    for table in tables:
        measure = table.measure.name
        for line in table.lines:
            what = f", {measure_title(table.measure)}" if len(tables) > 1 else ""
            name = f"{line.row.name}{what}"
            beside[name] = _beside(content, line)
            standings += [line.to_best.standing] if line.to_best is not None else []
            best = next((cell.allocator for cell in line.cells if cell.is_best_peer), None)
            for allocator in content.drawn if best is not None else ():
                ratio = stats.ratio(
                    content.indexed, line.row.name, allocator.name, best or "", measure
                )
                if ratio is not None:
                    dots.append(_Dot(name, allocator.name, ratio))
    if len({dot.allocator for dot in dots}) < 2:
        return None
    lines = _Lines(list(beside), dots, beside, content.ours)
    allocators = [a for a in content.drawn if any(dot.allocator == a.name for dot in dots)]
    title = f"{of}, as a ratio to the best peer of each row"
    what = measure_title(tables[0].measure) if len(tables) == 1 else "each figure"
    chart = _dots(
        lines, allocators, width=_WIDTH, title=f"ratio of {what} (log scale, smaller is better)"
    )
    said = [standings_text(content.ours, standings), *_marks(lines)] if content.ours else []
    return plot(
        f"ratio-{key}",
        title,
        chart.properties(title=alt.Title(title, subtitle=wrapped([" ".join(said)], _WIDTH + 120))),
        allocators,
    )


def _marks(lines: _Lines) -> Iterator[str]:
    """What is drawn besides dots."""
    if any(dot.ratio.is_known for dot in lines.dots if dot.allocator == lines.ours):
        yield "Bars: its 95% intervals."
    low, high = lines.limits()
    if not all(low <= dot.ratio.value <= high for dot in lines.dots):
        yield "Dots with an arrow lie beyond the picture."


# ---- time against memory ----


def _plane(
    content: Content,
    points: list[stats.Point],
    allocators: list[Allocator],
    size: tuple[int, int],
    *,
    legend: bool = False,
) -> alt.LayerChart:
    width, height = size
    places = {p.name: (p.memory.ratio, p.time.ratio) for p in points}
    known = looks(allocators)

    def domain(side: int) -> tuple[float, float]:
        values = [pair[side].value for pair in places.values()]
        return min([*values, 0.95]) / 1.1, max([*values, 1.3]) * 1.12

    across, up = domain(0), domain(1)

    def pixel(value: float, limits: tuple[float, float], length: int) -> float:
        return length * math.log(value / limits[0]) / math.log(limits[1] / limits[0])

    pixels = {
        name: (pixel(m.value, across, width), height - pixel(t.value, up, height))
        for name, (m, t) in places.items()
    }
    front = sorted((p for p in points if p.is_best_trade), key=lambda p: p.memory.ratio.value)
    line = [{"x": p.memory.ratio.value, "y": p.time.ratio.value} for p in front]
    texts = {name: name for name in places}
    x1, y1 = pixel(1.0, across, width), height - pixel(1.0, up, height)
    lines = [(x1 - 1, 0.0, x1 + 1, float(height)), (0.0, y1 - 1, float(width), y1 + 1)]
    lines += _steps([pixels[p.name] for p in front])
    if content.ours in places and all(ratio.is_known for ratio in places[content.ours]):
        m, t = places[content.ours]
        own_x, own_y = pixels[content.ours]
        ends = [pixel(end, across, width) for end in (m.low, m.high)]
        lines.append((ends[0], own_y - 1, ends[1], own_y + 1))
        ends = [height - pixel(end, up, height) for end in (t.high, t.low)]
        lines.append((own_x - 1, ends[0], own_x + 1, ends[1]))
    placed = place_labels(pixels, texts, width, height, lines)
    x = alt.X(
        "x:Q",
        scale=alt.Scale(type="log", domain=list(across), nice=False),
        axis=ratio_axis(
            "peak memory, to the leanest peer of each row", ratio_ticks(*across, width)
        ),
    )
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(type="log", domain=list(up), nice=False),
        axis=ratio_axis("time, to the fastest peer of each row", ratio_ticks(*up, height * 1.5)),
    )
    dots = [{"allocator": name, "x": m.value, "y": t.value} for name, (m, t) in places.items()]
    layers: list[alt.Chart] = [
        alt.Chart(inline([{"x": 1.0}])).mark_rule(color=INK, strokeWidth=1).encode(x="x:Q"),
        alt.Chart(inline([{"y": 1.0}])).mark_rule(color=INK, strokeWidth=1).encode(y="y:Q"),
        alt.Chart(inline(line))
        .mark_line(color=QUIET, strokeDash=[3, 4], strokeWidth=1.3, interpolate="step-after")
        .encode(x=x, y=y, order="x:Q"),
    ]
    if content.ours in places:
        m, t = places[content.ours]
        crimson = known[content.ours].colour
        bars = (
            [
                {"x": m.low, "x2": m.high, "y": t.value, "y2": t.value},
                {"x": m.value, "x2": m.value, "y": t.low, "y2": t.high},
            ]
            if m.is_known and t.is_known
            else []
        )
        layers.append(
            alt.Chart(inline(bars))
            .mark_rule(color=crimson, strokeWidth=2, clip=True)
            .encode(x=x, x2="x2:Q", y=y, y2="y2:Q")
        )
    layers.append(
        alt.Chart(inline(dots))
        .mark_point(filled=True, opacity=1)
        .encode(
            x=x,
            y=y,
            color=colour(allocators, legend=legend),
            shape=shape(allocators, legend=legend),
            size=alt.condition(
                alt.datum.allocator == (content.ours or ""), alt.value(190), alt.value(95)
            ),
        )
    )
    for name, place in placed.items():
        own = name == content.ours
        where = {"x": places[name][0].value, "y": places[name][1].value, "text": texts[name]}
        layers.append(
            alt.Chart(inline([where]))
            .mark_text(
                dx=place.dx,
                dy=place.dy,
                align=place.align,
                baseline="middle",
                fontSize=13,
                fontWeight="bold" if own else "normal",
                color=known[name].colour if own else INK,
            )
            .encode(x=x, y=y, text="text:N")
        )
    return alt.LayerChart(layer=layers, width=width, height=height)


def _steps(corners: list[tuple[float, float]]) -> list[Box]:
    """Where the line through the front runs: across from each point, then down to the next."""
    thick = 2.0
    boxes: list[Box] = []
    for (x0, y0), (x1, y1) in pairwise(corners):
        boxes += [(x0, y0 - thick, x1, y0 + thick), (x1 - thick, y0, x1 + thick, y1)]
    return boxes


def _placed(content: Content, points: list[stats.Point]) -> list[Allocator]:
    names = {point.name for point in points}
    return [a for a in content.drawn if a.name in names]


def _finding(ours: str | None, time: Ratio | None, memory: Ratio | None) -> str:
    if ours is None or time is None or memory is None:
        return "Time and memory, to the best peer of each row"
    return (
        f"{ours}: {time.value:.2f} of the time and {memory.value:.2f} of the memory "
        "of the best peer of each row"
    )


def _front_text(points: list[stats.Point]) -> str:
    front = [point.name for point in points if point.is_best_trade]
    if len(front) == 1:
        return f"None of the others is faster or leaner than {front[0]}."
    return f"Dashed: {', '.join(front)}, than which none is better in both."


def _crossed(content: Content, points: list[stats.Point]) -> str:
    own = next((point for point in points if point.name == content.ours), None)
    known = own is not None and own.time.ratio.is_known and own.memory.ratio.is_known
    return f" Cross: {content.ours}'s 95% intervals." if known else ""


def frontier(content: Content) -> Plot | None:
    points = content.frontier
    if len(points) < 2:
        return None
    allocators = _placed(content, points)
    said = [
        f"Geometric means over the rows in which all have figures: {len(points[0].time.rows)} "
        f"(time) and {len(points[0].memory.rows)} (peak memory). Lower left is better.",
        f"{_front_text(points)}{_crossed(content, points)}",
    ]
    chart = _plane(content, points, allocators, (640, 400))
    own = next((point for point in points if point.name == content.ours), None)
    ratios = (own.time.ratio, own.memory.ratio) if own is not None else (None, None)
    finding = _finding(content.ours, *ratios)
    titled = chart.properties(title=alt.Title(finding, subtitle=wrapped(said, 640)))
    return plot("frontier", f"Time against memory. {finding}", titled, allocators)


# ---- the summary ----

_ON_THE_PLANE = {"time": "Time", "peak": "Peak memory"}


def _summary(content: Content) -> Plot | None:
    points = content.frontier
    if len(points) < 2:
        return None
    allocators = _placed(content, points)
    names = list(dict.fromkeys(m.scope for m in content.means if m.measure.name in _ON_THE_PLANE))
    step = max(_STEP + 3, round(300 / len(names)))
    left = _plane(content, points, allocators, (310, step * len(names)), legend=True)
    panels: list[alt.LayerChart] = []
    for measure, heading in _ON_THE_PLANE.items():
        lines = _of_scopes(content, names, allocators, measure)
        panels.append(
            _dots(
                lines,
                allocators,
                width=190,
                title="to the best peer of each row",
                heading=heading,
                labelled=measure == "time",
                step=step,
            )
        )
    both = alt.hconcat(left, *panels, spacing=26)
    peers = sum(a.kind is Kind.PEER for a in allocators)
    said = [
        f"Geometric means of ratios to the best of {counted(peers, 'peer')} in each of "
        f"{counted(len(content.rows), 'row')}; smaller is better. Bars: 95% intervals.",
        _over_fewer_rows(content),
    ]
    ratios = [_own_mean(content, measure) for measure in _ON_THE_PLANE]
    finding = _finding(content.ours, *ratios)
    return plot(
        "summary",
        finding,
        both.properties(title=alt.Title(finding, subtitle=wrapped(said, 860))),
        allocators,
    )


def _over_fewer_rows(content: Content) -> str:
    """Whose dots are means of the rows that they survived."""
    names = [
        a.name
        for a in content.drawn
        if any(
            means.to_best[a.name].without
            for means in content.means
            if means.measure.name in _ON_THE_PLANE and a.name in means.to_best
        )
    ]
    return f"Over fewer rows, as some have no figures: {', '.join(names)}." if names else ""


def _own_mean(content: Content, measure: str) -> Ratio | None:
    """Over all rows, which come first."""
    over_all = next((means for means in content.means if means.measure.name == measure), None)
    own = over_all.to_best.get(content.ours or "") if over_all is not None else None
    return own.ratio if own is not None else None


def _of_scopes(
    content: Content, names: list[str], allocators: list[Allocator], measure: str
) -> _Lines:
    dots: list[_Dot] = []
    beside: dict[str, str] = {}
    for scope in content.means:
        if scope.measure.name != measure:
            continue
        for allocator in allocators:
            if allocator.name in scope.to_best:
                dots.append(_Dot(scope.scope, allocator.name, scope.to_best[allocator.name].ratio))
        if content.ours in scope.to_best:
            beside[scope.scope] = f"{scope.to_best[content.ours].ratio.value:.2f}"
    return _Lines(names, dots, beside, content.ours)
