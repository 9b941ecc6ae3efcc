"""Tables for a terminal, for Markdown and for a page; and pages of such tables and of plots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:  # takes a second to load
    from hakmem_yardstick.plots import Plot

BETTER, WORSE, BEST, FAILED, CODE = "better", "worse", "best", "failed", "code"
_RICH = {BETTER: "bold green", WORSE: "bold red", BEST: "underline", FAILED: "yellow"}
_MARKDOWN = {BETTER: ("**", "**"), WORSE: ("*", "*"), BEST: ("<u>", "</u>"), CODE: ("`", "`")}


@dataclass(frozen=True)
class Cell:
    text: str
    style: str = ""
    small: str = ""
    """A narrow terminal leaves it out."""
    title: str = ""
    """A page shows it at the pointer."""


@dataclass(frozen=True)
class Sheet:
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    title: str = ""
    caption: str = ""
    left: Sequence[int] = (0,)
    """Columns of text; figures are set to the right."""
    fixed: int = 0
    """A narrow terminal leaves out columns after so many first ones, from the last on; 0: none."""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Part:
    """Of a page."""

    title: str = ""
    text: Sequence[str] = ()
    sheet: Sheet | None = None
    plots: Sequence[Plot] = ()
    level: int = 2


def _cell(cell: Cell | str) -> Cell:
    return cell if isinstance(cell, Cell) else Cell(cell)


# ---- in a terminal ----


def show(sheet: Sheet, console: Console) -> None:
    """With as much as there is room for."""
    wide = console.options.update_width(10_000)
    tries = [(len(sheet.heads), True, 2), (len(sheet.heads), True, 1)]
    tries += [(shown, False, 1) for shown in range(len(sheet.heads), sheet.fixed - 1, -1)]
    for shown, small, space in tries:
        made = _table(sheet, shown, small=small, space=space)
        if not sheet.fixed or Measurement.get(console, wide, made).maximum <= console.width:
            break
    console.print(made)
    for number, note in enumerate(sheet.notes, 1):
        console.print(Text(f"  {number} {note}"))


def _table(sheet: Sheet, shown: int, *, small: bool, space: int) -> Table:
    hidden = ", ".join(sheet.heads[shown:])
    more = f"{sheet.caption} No room for: {hidden}." if hidden else sheet.caption
    made = Table(
        title=Text(sheet.title, "bold") if sheet.title else None,
        title_justify="left",
        caption=Text(more.strip(), "dim") if more.strip() else None,
        caption_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, space, 0, 0),
    )
    for at, head in enumerate(sheet.heads[:shown]):
        justify = "left" if at in sheet.left else "right"
        made.add_column(Text(head), justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for row in sheet.rows:
        texts = []
        for cell in map(_cell, row[:shown]):
            text = Text(cell.text, _RICH.get(cell.style, ""))
            if small and cell.small:
                text.append(f" {cell.small}", style="not bold not underline dim")
            texts.append(text)
        made.add_row(*texts)
    return made


# ---- in Markdown ----


def escaped(text: str) -> str:
    for sign in "\\|*_<>`[]":
        text = text.replace(sign, "\\" + sign)
    return re.sub(r"[ \t\r\n]+", " ", text).strip(" ")


def markdown(sheet: Sheet) -> str:
    def text(cell: Cell) -> str:
        before, after = _MARKDOWN.get(cell.style, ("", ""))
        said = cell.text if cell.style == CODE else escaped(cell.text)
        return f"{before}{said}{after} {escaped(cell.small)}".rstrip()

    marks = ["---" if at in sheet.left else "--:" for at in range(len(sheet.heads))]
    rows = [[text(_cell(cell)) for cell in row] for row in sheet.rows]
    lines = [list(map(escaped, sheet.heads)), marks, *rows]
    grid = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    notes = "\n".join(f"{number}. {escaped(note)}" for number, note in enumerate(sheet.notes, 1))
    return "\n\n".join(part for part in (escaped(sheet.caption), grid, notes) if part)


def document(title: str, parts: Iterable[Part], plots: str) -> str:
    """`plots`: the folder that has them."""
    found = [f"# {title}"]
    for part in parts:
        found += [f"{'#' * part.level} {part.title}"] if part.title else []
        found += map(escaped, part.text)
        found += [markdown(part.sheet)] if part.sheet is not None else []
        found += [f"![{escaped(plot.title)}]({plots}/{plot.name}.svg)" for plot in part.plots]
    return "\n\n".join(found) + "\n"


# ---- as a page ----


def page(title: str, parts: Iterable[Part]) -> str:
    """Of HTML; nothing is loaded from elsewhere."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    source = files("hakmem_yardstick").joinpath("page.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(source).render(title=title, parts=list(parts), cell=_cell)
