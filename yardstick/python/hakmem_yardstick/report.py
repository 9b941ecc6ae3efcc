"""A session's report: its parts are made once, for the terminal, Markdown and the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from hakmem_yardstick import sheet as sheets
from hakmem_yardstick.content import Against, Apart, Content, Line, Means, Table, group_title
from hakmem_yardstick.head import facts, warnings
from hakmem_yardstick.model import Kind
from hakmem_yardstick.sheet import BEST, CODE, FAILED, Cell, Part, Sheet
from hakmem_yardstick.stats import Mean
from hakmem_yardstick.units import parameters_text
from hakmem_yardstick.words import (
    against_text,
    counted,
    counts_text,
    decimals,
    mean_text,
    no_wins_text,
    percent,
    ratio_text,
    rows_text,
    standings_text,
)

if TYPE_CHECKING:  # takes a second to load
    from hakmem_yardstick.plots import Plot

READING = (
    "Less is better for every figure, so a ratio below 1 is better. In parentheses: the 95%"
    " confidence interval of the ratio, paired by round. ▼ significantly better: the whole interval"
    " is below 1. ▲ significantly worse. ≈ no significant difference. After a median, ± is half the"
    " distance between the quartiles."
)
LOSSES = (
    "Rows in which hakmem is significantly slower than glibc, takes more than 5% longer than the"
    " best peer, or is more than 10% worse than the best peer in another measure."
)
WINS = "Rows in which hakmem is significantly better than the best peer, by as much."
_NAMED = 3  # of losses and wins, in short
_NONE = Cell("-")


def write(content: Content, folder: Path) -> list[Path]:
    """The files written, the page first."""
    from hakmem_yardstick.plots import every_plot

    drawn = {plot.name: plot for plot in every_plot(content)}
    pictures = folder / "plots"
    pictures.mkdir(parents=True, exist_ok=True)
    files = []
    for name, plot in drawn.items():
        files.append(pictures / f"{name}.svg")
        files[-1].write_text(plot.svg(), encoding="utf-8")
    page, text = folder / "report.html", folder / "report.md"
    made = parts(content, drawn)
    page.write_text(sheets.page("hakmem bench", made), encoding="utf-8")
    text.write_text(sheets.document("hakmem bench", made, "plots"), encoding="utf-8")
    return [page, text, *files]


def show(content: Content, console: Console) -> None:
    """In a terminal: all tables, and the summary below them, where it is seen."""
    for table in content.tables:
        sheets.show(_table(content, table), console)
        console.print()
    for warning in warnings(content):
        console.print(Text(warning, "yellow"))
    for what, said in in_short(content):
        console.print(Text(f"{what}: ").append(said, "bold"))
    console.print()
    sheets.show(means(content), console)


def parts(content: Content, plots: Mapping[str, Plot]) -> list[Part]:
    def drawn(*names: str) -> list[Plot]:
        return [plots[name] for name in names if name in plots]

    found = [*head(content), Part("Summary", sheet=means(content), plots=drawn("frontier"))]
    found += [losses(content), wins(content)] if content.ours else []
    if sweeps := drawn("threads", "sizes"):
        found.append(Part("Scaling", plots=sweeps))
    for group in content.groups:
        found.append(Part(group_title(group), plots=drawn(f"memory-over-time-{group}")))
        for table in content.tables:
            if table.group == group:
                made = _table(content, table)
                found.append(
                    Part(made.title, sheet=made, plots=drawn(f"ratio-{table.key}"), level=3)
                )
    return [*found, _rows(content), _allocators(content)]


def head(content: Content) -> list[Part]:
    """What speaks against the figures, what they say in short, and where they are from."""
    return [
        Part(text=warnings(content)),
        Part(sheet=Sheet(("in short", ""), in_short(content), left=(0, 1))),
        Part(sheet=Sheet(("run", ""), facts(content), left=(0, 1))),
        Part(text=[READING]),
    ]


# ---- in short ----

_MEASURES = {"time": ("time", "fastest"), "peak": ("peak memory", "leanest")}


def in_short(content: Content) -> list[tuple[str, str]]:
    """In nine lines at most."""
    over_all: dict[str, Means] = {}
    for means in content.means:  # those of all rows come first
        if means.measure.name in _MEASURES:
            over_all.setdefault(means.measure.name, means)
    found = [line for means in over_all.values() for line in _in_short(content, means)]
    best = [_best(content, means) for means in over_all.values()]
    if any(best):
        found.append(("best other allocator", ", ".join(filter(None, best))))
    if content.ours:
        found.append(("largest losses", _names(content.losses) or "none"))
        found.append(("largest wins", _names(content.wins) or no_wins_text(content)))
    failed = f"{content.failures} failed" if content.failures else "none failed"
    runs = f"{len(content.results.runs)} in up to {counted(content.rounds, 'round')}, {failed}"
    return [*found, ("runs", runs)]


def _in_short(content: Content, means: Means) -> Iterator[tuple[str, str]]:
    what, best = _MEASURES[means.measure.name]
    own = means.to_best.get(content.ours or "")
    if own is not None:
        text = f"{ratio_text(own.ratio)} of the {best} other allocator of each row"
        if means.to_system is not None:
            text += f"; {decimals(means.to_system.ratio.value)} of glibc's"
        yield what, f"{text}; {counted(len(means.rows), 'row')}"
        yield f"rows better / level / worse, {what}", counts_text(means)


def _best(content: Content, means: Means) -> str:
    """The best single other allocator, by the same figure."""
    others = {name: mean for name, mean in means.to_best.items() if name != content.ours}
    if not others:
        return ""
    best = min(others, key=lambda other: others[other].ratio.value)
    return f"{best} in {_MEASURES[means.measure.name][0]} ({mean_text(others[best])})"


def _names(rows: Iterable[Apart]) -> str:
    found = list(rows)
    named = ", ".join(f"{a.line.row.name} ({a.title} {decimals(a.ratio)})" for a in found[:_NAMED])
    more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"{named}{more}"


# ---- the summary ----


def means(content: Content) -> Sheet:
    peers = [a.name for a in content.allocators if a.kind is Kind.PEER]
    heads = ["rows", "number"]
    heads += [content.ours, "to glibc", "better / level / worse"] if content.ours else []
    rows = []
    for each in content.means:
        cells: list[Cell | str] = [
            f"{each.scope}, {each.title}", rows_text(each, content.ours)
        ]  # fmt: skip
        if content.ours:
            own = each.to_best.get(content.ours)
            cells += [_mean(own), _mean(each.to_system), counts_text(each)]
        rows.append([*cells, *(mean_text(each.to_best.get(name)) for name in peers)])
    return Sheet(
        [*heads, *peers],
        rows,
        "Geometric means, to the best peer of each row",
        "Geometric means of the ratios to the best peer of each row; smaller is better. A star: not"
        " over all rows, as some have no figures.",
        left=(0, 2, 3, 4) if content.ours else (0,),
        fixed=len(heads),
    )


def _mean(mean: Mean | None) -> Cell:
    if mean is None:
        return _NONE
    style = "better" if mean.ratio.shown_better else "worse" if mean.ratio.shown_worse else ""
    return Cell(ratio_text(mean.ratio), style)


def losses(content: Content) -> Part:
    return _apart("Losses", LOSSES, content.losses, "none")


def wins(content: Content) -> Part:
    return _apart("Wins", WINS, content.wins, no_wins_text(content))


def _apart(title: str, text: str, rows: list[Apart], instead: str) -> Part:
    if not rows:
        return Part(title, [text, f"{instead.capitalize()}."], level=3)
    cells = [
        (Cell(a.line.row.name, CODE), a.title, _against(a.line.to_best), _against(a.line.to_system))
        for a in rows
    ]
    heads = ("row", "measure", "to the best peer", "to glibc")
    return Part(title, [text], Sheet(heads, cells, left=(0, 1, 2, 3)), level=3)


# ---- tables ----


def _against(against: Against | None, *, short: bool = False) -> Cell:
    if against is None:
        return _NONE
    name = "" if against.other == "glibc" else f" {against.other}"
    text = f"{against_text(against)}{name}"
    first, _, rest = text.partition(" (")
    if short and rest:
        return Cell(first, against.standing.value, f"({rest}")
    return Cell(text, against.standing.value)


def _table(content: Content, table: Table) -> Sheet:
    standings = [line.to_best.standing for line in table.lines if line.to_best is not None]
    about = f"{table.measure.help[:1].upper()}{table.measure.help[1:]}"
    said = [f"{about}." if about else "", standings_text(content.ours, standings)]
    own = ["to the best peer", "to glibc"] if content.ours else []
    return Sheet(
        ["row", "unit", *own, *(a.name for a in table.allocators)],
        [_row(line, bool(own)) for line in table.lines],
        table.title,
        " ".join(text for text in said if text),
        left=(0, 1, 2, 3) if own else (0, 1),
        fixed=3 + len(own),
        notes=table.notes,
    )


def _row(line: Line, own: bool) -> list[Cell | str]:
    why = f"{line.row.why}; {parameters_text(line.row)}"
    cells: list[Cell | str] = [Cell(line.row.name, CODE, title=why), line.scale.unit]
    cells += [_against(line.to_best), _against(line.to_system, short=True)] if own else []
    for cell in line.cells:
        note = f" [{cell.note}]" if cell.note else ""
        by_round = " ".join(f"{n}:{value / line.scale.divisor:.5g}" for n, value in cell.by_round)
        style = BEST if cell.is_best_peer else FAILED if cell.value is None else ""
        spread = "" if cell.spread is None else percent(cell.spread)
        cells.append(Cell(f"{cell.text}{note}", style, spread, f"by round: {by_round}"))
    return cells


def _rows(content: Content) -> Part:
    rows = [(Cell(r.name, CODE), r.group, parameters_text(r), r.why) for r in content.rows]
    return Part("Rows", sheet=Sheet(("row", "group", "parameters", "why"), rows, left=(0, 1, 2, 3)))


def _allocators(content: Content) -> Part:
    rows = [(a.name, a.kind.value, a.version, a.origin, a.note) for a in content.allocators]
    rows += [(m.name, "missing", "", "", m.why) for m in content.results.missing]
    heads = ("allocator", "kind", "version", "from", "note")
    return Part("Allocators", sheet=Sheet(heads, rows, left=range(5)))
