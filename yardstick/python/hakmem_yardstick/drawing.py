"""What all plots share: how they are set, made into SVG, and where their labels find room."""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import vl_convert

from hakmem_yardstick.model import Allocator
from hakmem_yardstick.palette import FONT, GUIDE, INK, PAPER, QUIET, dark_rules, looks
from hakmem_yardstick.units import THIN

TIMES = "\N{MULTIPLICATION SIGN}"
Chart = alt.LayerChart | alt.Chart | alt.HConcatChart | alt.VConcatChart | alt.ConcatChart


@dataclass(frozen=True)
class Plot:
    """A picture, and what it says in a sentence."""

    name: str
    """Its file, without the ending."""
    title: str
    spec: Mapping[str, Any]
    allocators: tuple[Allocator, ...]

    def svg(self) -> str:
        """A file of its own: its style follows the reader's light or dark screen."""
        style = f"@media (prefers-color-scheme:dark){{{dark_rules(self.allocators)}}}"
        return self._svg().replace(">", f"><style>{style}</style>", 1) + "\n"

    def inline(self) -> str:
        """To stand within a page that has the dark rules itself."""
        # What is defined in one plot must not be taken for another's.
        text = re.sub(r'\bid="', f'id="{self.name}-', self._svg())
        return text.replace("url(#", f"url(#{self.name}-")

    def png(self, scale: float = 2.0) -> bytes:
        return vl_convert.vegalite_to_png(dict(self.spec), scale=scale)

    def _svg(self) -> str:
        text = vl_convert.vegalite_to_svg(dict(self.spec))
        label = html.escape(self.title, quote=True)
        text = text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
        return _without_noise(text)


def _without_noise(svg: str) -> str:
    """Names of Vega's own that no style here uses, and digits that no eye can see."""
    svg = re.sub(r' class="(?:mark|role|background|foreground)[^"]*"', "", svg)
    svg = re.sub(r' (?:stroke-miterlimit|pointer-events)="[^"]*"', "", svg)
    return re.sub(r"(\d\.\d{2})\d+", r"\1", svg)


_CONFIG = {
    "font": FONT,
    "background": PAPER,
    "aria": False,
    # Room at the sides for fonts that are wider than the one that the plot is laid out with.
    "padding": {"top": 12, "bottom": 12, "left": 26, "right": 20},
    "view": {"stroke": None},
    "axis": {
        "labelColor": QUIET,
        "titleColor": QUIET,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "gridColor": GUIDE,
        "domain": False,
        "ticks": False,
        "labelPadding": 6,
    },
    "title": {
        "anchor": "start",
        "frame": "bounds",
        "color": INK,
        "fontSize": 15,
        "subtitleColor": QUIET,
        "subtitleFontSize": 12,
        "subtitlePadding": 5,
        "offset": 12,
    },
    "legend": {
        "orient": "top",
        "title": None,
        "labelColor": INK,
        "labelFontSize": 12,
        "symbolSize": 75,
        "symbolOpacity": 1,
        "columnPadding": 16,
        "labelLimit": 320,
        "offset": 10,
    },
    "concat": {"spacing": 22},
}


def plot(name: str, title: str, chart: Chart, allocators: Iterable[Allocator]) -> Plot:
    # Not by the chart's own methods for it: each copies all of the chart's data.
    spec = {**chart.to_dict(), "config": _CONFIG}
    return Plot(name, title, spec, tuple(allocators))


def colour(
    allocators: Iterable[Allocator], *, legend: bool = True, symbol: str | None = None
) -> alt.Color:
    known = looks(allocators)
    return alt.Color(
        "allocator:N",
        scale=alt.Scale(domain=list(known), range=[look.colour for look in known.values()]),
        legend=_legend(known, symbol) if legend else None,
    )


def shape(allocators: Iterable[Allocator], *, legend: bool = True) -> alt.Shape:
    known = looks(allocators)
    return alt.Shape(
        "allocator:N",
        scale=alt.Scale(domain=list(known), range=[look.shape for look in known.values()]),
        legend=_legend(known) if legend else None,
    )


def dash(allocators: Iterable[Allocator], *, legend: bool = True) -> alt.StrokeDash:
    known = looks(allocators)
    return alt.StrokeDash(
        "allocator:N",
        scale=alt.Scale(domain=list(known), range=[list(look.dash) for look in known.values()]),
        legend=_legend(known) if legend else None,
    )


def wrapped(texts: Iterable[str], width: float) -> list[str]:
    """Lines below a title; a line that is longer than the plot is wide would be cut off."""
    letters = int(width / LETTER)
    return [line for text in texts for line in textwrap.wrap(text, letters)]


def _legend(names: Iterable[str], symbol: str | None = None) -> alt.Legend:
    more: dict[str, Any] = {} if symbol is None else {"symbolType": symbol, "symbolSize": 400}
    return alt.Legend(columns=_columns(names), **more)


def _columns(names: Iterable[str]) -> int:
    """As many as fit side by side in a plot's width."""
    widest = max((len(name) for name in names), default=1)
    return max(1, int(820 / (7 * widest + 34)))


# The roundest first: those that find no room are left out.
_ROUND = (1, 10, 0.1, 100, 2, 5, 0.5, 0.2, 20, 50, 0.05, 3, 0.7, 1.5, 4, 0.3, 1.2, 0.8, 0.9, 1.1)
_LABEL = 44
LETTER = 7.0
"""Pixels of a letter of 12 pixels, in the wider ones of the fonts that a reader may have."""


def ratio_ticks(low: float, high: float, length: float) -> list[float]:
    """For a logarithmic axis as long as that, in pixels."""
    pixels = length / math.log(high / low)
    chosen: list[float] = []
    for tick in _ROUND:
        if low <= tick <= high and all(
            abs(math.log(tick / other)) * pixels >= _LABEL for other in chosen
        ):
            chosen.append(tick)
    return sorted(chosen)


def inline(records: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    return alt.InlineData([dict(record) for record in records])


def ratio_axis(title: str, ticks: list[float]) -> alt.Axis:
    return alt.Axis(title=title, values=ticks, labelExpr=f"format(datum.value, '~g') + '{TIMES}'")


def memory_axis(unit: str, **more: Any) -> alt.Axis:
    """Of figures in that unit, which each tick says."""
    return alt.Axis(labelExpr=f"format(datum.value, ',~g') + '{THIN}{unit}'", **more)


Align = Literal["left", "center", "right"]
Box = tuple[float, float, float, float]
"""Left, top, right, bottom; in pixels from the upper left."""

# A label beside its point: right, left, above, below, then the corners; as (dx, dy, align).
_SIDES: tuple[tuple[int, int, Align], ...] = (
    (12, 0, "left"),
    (-12, 0, "right"),
    (0, -14, "center"),
    (0, 14, "center"),
    (9, -11, "left"),
    (-9, -11, "right"),
    (9, 11, "left"),
    (-9, 11, "right"),
    (0, -27, "center"),
    (0, 27, "center"),
)


@dataclass(frozen=True)
class Placed:
    dx: int
    dy: int
    align: Align


def place_labels(
    points: Mapping[str, tuple[float, float]],
    texts: Mapping[str, str],
    width: float,
    height: float,
    lines: Iterable[Box] = (),
    *,
    letter: float = 7.0,
    line: float = 14.0,
) -> dict[str, Placed]:
    """For points in pixels, where each one's text covers the least of the others and of lines."""
    taken = [*lines, *((x - 7, y - 7, x + 7, y + 7) for x, y in points.values())]
    placed: dict[str, Placed] = {}
    for name, (x, y) in points.items():
        wide = letter * len(texts[name])

        def box(
            side: tuple[int, int, Align], x: float = x, y: float = y, wide: float = wide
        ) -> tuple[float, float, float, float]:
            dx, dy, align = side
            left = x + dx - {"left": 0.0, "center": wide / 2, "right": wide}[align]
            return (left, y + dy - line / 2, left + wide, y + dy + line / 2)

        def cost(side: tuple[int, int, Align], of: Any = box) -> float:
            left, top, right, bottom = of(side)
            outside = max(0.0, -left) + max(0.0, right - width)
            outside += max(0.0, -top) + max(0.0, bottom - height)
            covered = sum(
                max(0.0, min(right, x1) - max(left, x0)) * max(0.0, min(bottom, y1) - max(top, y0))
                for x0, y0, x1, y1 in taken
            )
            return float(covered + 100.0 * outside)

        best = min(_SIDES, key=cost)
        taken.append(box(best))
        placed[name] = Placed(*best)
    return placed
