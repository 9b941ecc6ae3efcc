"""Results as two pictures: every row's speed and peak memory, and the geometric means.

SVG with its text as text, on white, so that a page shows them alike in light and in dark. The
same results give the same file, byte for byte.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from bench.seed.report import figures
from bench.seed.report.allocators import OURS, Kind
from bench.seed.report.figures import Ratio
from bench.seed.report.rounds import Results

_INK, _QUIET, _GUIDE, _TINT = "#1f2328", "#59636e", "#e8eaed", "#eef6ee"
_OURS_COLOUR = "#b3123b"
_PEER_COLOURS = {
    "glibc": "#8c959f",
    "mimalloc": "#3fa0e0",
    "jemalloc": "#e69f00",
    "tcmalloc": "#2ca58d",
}
_MORE_COLOURS = ("#a78bd4", "#c78b5e", "#d77fb5", "#9aa83a")
_STYLE: dict[Any, Any] = {
    # The first is what the picture is laid out with, the second its like on other systems.
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": 9.0,
    "svg.fonttype": "none",
    "svg.hashsalt": OURS,
    "text.color": _INK,
    "axes.edgecolor": _QUIET,
    "axes.labelcolor": _INK,
    "xtick.color": _QUIET,
    "ytick.color": _QUIET,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
}
_TIMES = "\N{MULTIPLICATION SIGN}"
_TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
# What lies beyond is drawn as an arrow at the edge: else the few would squeeze the many.
_SPEED_LEAST, _MEMORY_MOST = 0.1, 16.0

# Inches.
_WIDTH, _ROW, _HEAD, _FOOT = 9.3, 0.19, 0.74, 0.55
_LABELS, _SPEED_WIDTH, _VALUES, _MARGIN = 1.42, 4.5, 0.62, 0.2
# In rows: the first group's heading below the top, the others' below the place of one more row,
# and a group's first row below its heading.
_FIRST_HEADING, _NEXT_HEADING, _TO_ROW = 0.5, 0.75, 1.0


@dataclass(frozen=True)
class _Panel:
    title: str
    better: str
    higher_is_better: bool
    ours: Callable[[str], Ratio | None]
    peer: Callable[[str, str], Ratio | None]
    least: float = 0.0
    most: float = float("inf")


@contextmanager
def _drawing() -> Iterator[None]:
    # The fonts named for other systems need not be on this one.
    finder = logging.getLogger("matplotlib.font_manager")
    level = finder.level
    finder.setLevel(logging.ERROR)
    try:
        with mpl.rc_context(_STYLE):
            yield
    finally:
        finder.setLevel(level)


def _save(figure: Figure, file: Path, title: str) -> None:
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Title": title})


def _colours(results: Results) -> dict[str, str]:
    more = iter(_MORE_COLOURS * len(results.allocators))
    peers = results.names(Kind.PEER)
    return {name: _PEER_COLOURS.get(name) or next(more) for name in peers} | {OURS: _OURS_COLOUR}


def _times(value: float) -> str:
    return f"{value:g}{_TIMES}"


def _panels(results: Results) -> list[_Panel]:
    peers = results.names(Kind.PEER)

    def ours(best: tuple[str, Ratio] | None) -> Ratio | None:
        return best[1] if best else None

    def speed(row: str, name: str) -> Ratio | None:
        best = figures.fastest(results, row, peers)
        return figures.paired(results, row, name, best, figures.speed) if best else None

    def memory(row: str, name: str) -> Ratio | None:
        best = figures.leanest(results, row, peers)
        return figures.paired(results, row, name, best, figures.peak) if best else None

    return [
        _Panel(
            "Speed, to the best peer of the row",
            "faster →",
            True,
            lambda row: ours(figures.vs_fastest(results, row)),
            speed,
            least=_SPEED_LEAST,
        ),
        _Panel(
            "Peak memory, to leanest peer",
            "← leaner",
            False,
            lambda row: ours(figures.vs_leanest(results, row)),
            memory,
            most=_MEMORY_MOST,
        ),
    ]


def _limits(axes: Axes, panel: _Panel, values: list[float]) -> None:
    low = max(min([*values, 0.8]), panel.least)
    high = min(max([*values, 1.25]), panel.most)
    axes.set_xscale("log")
    axes.set_xlim(low / 1.12, high * 1.12)
    axes.xaxis.set_major_locator(FixedLocator(_TICKS))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _times(value)))


def _frame(axes: Axes, panel: _Panel) -> None:
    axes.set_title(panel.title, loc="left", fontsize=10, fontweight="bold", pad=8)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=4, labeltop=False)
    axes.grid(axis="x", color=_GUIDE, linewidth=0.8)
    axes.set_axisbelow(True)
    low, high = axes.get_xlim()
    better = (1.0, high) if panel.higher_is_better else (low, 1.0)
    axes.axvspan(*better, color=_TINT, linewidth=0, zorder=0)
    axes.axvline(1.0, color=_INK, linewidth=1.0, zorder=1.5)


def _draw_panel(
    axes: Axes, panel: _Panel, results: Results, heights: dict[str, float], colours: dict[str, str]
) -> None:
    points = {
        (row, name): ratio
        for row in heights
        for name in results.names(Kind.PEER)
        if (ratio := panel.peer(row, name)) is not None
    }
    own = {row: ratio for row in heights if (ratio := panel.ours(row)) is not None}
    # An interval may leave the panel, but not a usual one.
    ends = [min(r.high, r.value * 1.3) for r in own.values()]
    ends += [max(r.low, r.value / 1.3) for r in own.values()]
    _limits(axes, panel, [*(ratio.value for ratio in points.values()), *ends])
    _frame(axes, panel)
    for height in heights.values():
        axes.axhline(height, color=_GUIDE, linewidth=0.6, zorder=0.5)

    def dots(marker: str, name: str, shown: list[tuple[float, float]]) -> None:
        if shown:
            axes.plot(
                *zip(*shown, strict=True),
                marker,
                color=colours[name],
                markersize=5.4,
                markeredgewidth=0,
                alpha=0.75,
                clip_on=False,
                zorder=2,
            )

    low, high = panel.least, panel.most
    for name in results.names(Kind.PEER):
        here = [(r.value, heights[row]) for (row, n), r in points.items() if n == name]
        dots("o", name, [(x, y) for x, y in here if low <= x <= high])
        dots("<", name, [(low / 1.05, y) for x, y in here if x < low])
        dots(">", name, [(high * 1.05, y) for x, y in here if x > high])

    for row, ratio in own.items():
        if ratio.is_known:
            axes.plot(
                [ratio.low, ratio.high],
                [heights[row]] * 2,
                color=_OURS_COLOUR,
                linewidth=1.6,
                solid_capstyle="round",
                zorder=4.5,
            )
    axes.plot(
        [min(max(ratio.value, low), high) for ratio in own.values()],
        [heights[row] for row in own],
        "o",
        color=_OURS_COLOUR,
        markersize=6.8,
        markeredgecolor="white",
        markeredgewidth=0.8,
        zorder=4,
    )


def _heights(results: Results) -> tuple[dict[str, float], dict[str, float], float]:
    """Where the rows and the headings of groups lie, downwards; and the whole, in rows."""
    rows: dict[str, float] = {}
    headings: dict[str, float] = {}
    y = 0.0
    for title, members in figures.row_groups(results):
        headings[title] = y + (_NEXT_HEADING if headings else _FIRST_HEADING)
        y = headings[title] + _TO_ROW
        for row in members:
            rows[row] = y
            y += 1.0
    return rows, headings, y - 0.4


def _legend(figure: Figure, results: Results, colours: dict[str, str], arrows: bool) -> None:
    has_interval = results.rounds >= figures.FEWEST_ROUNDS
    label = f"{OURS}, with its 95% interval" if has_interval else OURS
    keys = [
        Line2D(
            [],
            [],
            color=_OURS_COLOUR,
            marker="o",
            markersize=6.8,
            linewidth=1.6 if has_interval else 0,
            label=label,
        )
    ]
    for name in results.names(Kind.PEER):
        colour = colours[name]
        keys.append(
            Line2D([], [], color=colour, marker="o", markersize=5.4, linewidth=0, label=name)
        )
    if arrows:
        label = f"slower than {_times(_SPEED_LEAST)}"
        keys.append(
            Line2D([], [], color=_QUIET, marker="<", markersize=5, linewidth=0, label=label)
        )
    figure.legend(
        handles=keys,
        loc="upper left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.5,
        ncols=len(keys),
        frameon=False,
        handlelength=1.4,
        handletextpad=0.4,
        columnspacing=1.4,
    )


def _write_beside(
    axes: Axes,
    panel: _Panel,
    results: Results,
    rows: dict[str, float],
    headings: dict[str, float],
) -> None:
    """What stands left and right of the first panel: names, and our ratios in figures."""
    across = axes.get_yaxis_transform()
    edge = (0.14 - _LABELS) / _SPEED_WIDTH
    for title, y in headings.items():
        axes.text(edge, y, title, transform=across, fontweight="bold", va="center")
    for row, y in rows.items():
        failure = results.failures.get((row, OURS))
        ratio = panel.ours(row)
        if failure is not None:
            value = failure.cell
        else:
            value = f"{ratio.value:.2f}{_TIMES}" if ratio else "-"
        for x, text, colour in (
            (-0.07, row, _INK),
            (_SPEED_WIDTH + 0.54, value, _OURS_COLOUR),
        ):
            axes.text(
                x / _SPEED_WIDTH,
                y,
                text,
                transform=across,
                ha="right",
                va="center",
                color=colour,
                fontsize=8.5,
            )


def _rows_picture(results: Results) -> Figure:
    rows, headings, total = _heights(results)
    height = _HEAD + total * _ROW + _FOOT
    figure = Figure(figsize=(_WIDTH, height))
    colours = _colours(results)
    panels = _panels(results)
    lefts = (_LABELS, _LABELS + _SPEED_WIDTH + _VALUES)
    widths = (_SPEED_WIDTH, _WIDTH - lefts[1] - _MARGIN)
    for panel, left, width in zip(panels, lefts, widths, strict=True):
        axes = figure.add_axes(
            (left / _WIDTH, _FOOT / height, width / _WIDTH, total * _ROW / height)
        )
        axes.set_ylim(total, 0)
        axes.set_yticks([])
        _draw_panel(axes, panel, results, rows, colours)
        axes.annotate(
            panel.better,
            (1.0 if panel.higher_is_better else 0.0, 0.0),
            xytext=(0, -26),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right" if panel.higher_is_better else "left",
            color=_QUIET,
        )
        if panel is panels[0]:
            _write_beside(axes, panel, results, rows, headings)
    speeds = (panels[0].peer(row, name) for row in rows for name in results.names(Kind.PEER))
    _legend(figure, results, colours, any(r and r.value < _SPEED_LEAST for r in speeds))
    return figure


def _place_labels(
    axes: Axes, figure: Figure, dots: dict[str, tuple[float, float]], labels: dict[str, str]
) -> None:
    """Each label beside its dot, on the first side where it covers nothing."""
    scale = figure.dpi / 72
    spots = {name: axes.transData.transform(dot) / scale for name, dot in dots.items()}
    frame = axes.get_window_extent()
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in spots.values()]
    for name, (x, y) in spots.items():
        width = 6.2 * len(labels[name])
        sides = {
            ("left", "center"): (9.0, 0.0, x + 9, y - 6),
            ("right", "center"): (-9.0, 0.0, x - 9 - width, y - 6),
            ("center", "bottom"): (0.0, 8.0, x - width / 2, y + 8),
            ("center", "top"): (0.0, -8.0, x - width / 2, y - 20),
        }

        def free(left: float, low: float, width: float = width) -> bool:
            if left < frame.x0 / scale or left + width > frame.x1 / scale:
                return False
            return not any(
                left < x1 and left + width > x0 and low < y1 and low + 12 > y0
                for x0, y0, x1, y1 in taken
            )

        chosen = next((s for s, (_, _, left, low) in sides.items() if free(left, low)), None)
        inwards = "left" if x * scale < (frame.x0 + frame.x1) / 2 else "right"
        across, up = chosen or (inwards, "center")
        dx, dy, left, low = sides[across, up]
        taken.append((left, low, left + width, low + 12))
        axes.annotate(
            labels[name],
            dots[name],
            xytext=(dx, dy),
            textcoords="offset points",
            ha=across,
            va=up,
            fontsize=10,
            fontweight="bold" if name == OURS else "normal",
            color=_OURS_COLOUR if name == OURS else _INK,
            zorder=5,
        )


def _frontier_picture(results: Results) -> Figure:
    rows = [row.row for row in results.rows]
    means: dict[str, tuple[Ratio, Ratio]] = {}
    labels: dict[str, str] = {}
    for name in results.names(Kind.PEER, Kind.OURS):
        memory = figures.geometric_mean(results, rows, name, figures.peak)
        time = figures.geometric_mean(results, rows, name, figures.speed)
        if memory and time:
            means[name] = (memory.ratio, time.ratio)
            some = f" ({time.rows} rows)" if time.rows < len(rows) else ""
            labels[name] = name + some
    figure = Figure(figsize=(6.4, 4.3))
    axes = figure.add_axes((0.105, 0.125, 0.87, 0.775))
    colours = _colours(results)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for side, limit in ((0, axes.set_xlim), (1, axes.set_ylim)):
        values = [mean[side].value for mean in means.values()]
        limit(min([*values, 0.9]) / 1.12, max([*values, 1.5]) * 1.15)
    ticks = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: _times(value)))
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=5)
    axes.grid(color=_GUIDE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.axvline(1.0, color=_INK, linewidth=0.9, zorder=1.5)
    axes.axhline(1.0, color=_INK, linewidth=0.9, zorder=1.5)
    axes.set_xlabel("peak memory, to the leanest peer of each row")
    axes.set_ylabel("time, to the best peer of each row")
    axes.set_title(
        f"Geometric means over {len(rows)} rows", loc="left", fontsize=10.5, fontweight="bold"
    )
    for name, (memory_mean, time_mean) in means.items():
        axes.plot(
            memory_mean.value,
            time_mean.value,
            "o",
            color=colours[name],
            markersize=11 if name == OURS else 9,
            markeredgecolor="white",
            markeredgewidth=1.0,
            zorder=4,
        )
    axes.annotate(
        "better",
        (0.8, 0.76),
        xytext=(0.91, 0.93),
        xycoords="axes fraction",
        textcoords="axes fraction",
        color=_QUIET,
        fontsize=10,
        ha="center",
        va="center",
        arrowprops={"arrowstyle": "->", "color": _QUIET, "linewidth": 1.2},
    )
    _place_labels(
        axes,
        figure,
        {name: (mean[0].value, mean[1].value) for name, mean in means.items()},
        labels,
    )
    return figure


def write(results: Results, file: Path) -> list[Path]:
    """Draws FILE and, beside it, FILE-frontier; gives back what was written."""
    frontier = file.with_name(f"{file.stem}-frontier{file.suffix}")
    with _drawing():
        title = f"{OURS} and its peers: speed and peak memory of every row"
        _save(_rows_picture(results), file, title)
        title = f"{OURS} and its peers: geometric means of time and peak memory"
        _save(_frontier_picture(results), frontier, title)
    return [file, frontier]
