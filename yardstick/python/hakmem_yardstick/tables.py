"""The tables in a terminal, one a group and measure."""

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from hakmem_yardstick import in_short
from hakmem_yardstick.content import Against, Cell, Content, Line, Standing, Table
from hakmem_yardstick.goals import Verdict
from hakmem_yardstick.head import warnings
from hakmem_yardstick.model import Kind
from hakmem_yardstick.words import (
    against_text,
    counts_text,
    decimals,
    goal_rows_text,
    goal_text,
    mean_text,
    not_run_text,
    percent,
    ratio_text,
    reached_text,
    rows_text,
    standings_text,
)

_STYLES = {
    Standing.BETTER: "bold green",
    Standing.WORSE: "bold red",
    Standing.LEVEL: "",
    Standing.UNKNOWN: "dim",
}


def print_tables(content: Content, console: Console) -> None:
    for table in content.tables:
        console.print(_fitting(content, table, console))
        for number, note in enumerate(table.notes, 1):
            console.print(f"  [dim]{number}[/dim] {escape(note)}")
        console.print()
    peers = [a.name for a in content.allocators if a.kind is Kind.PEER]
    means = _means(content, peers)
    while peers and _width(means, console) > console.width:
        peers.pop()
        means = _means(content, peers)
    for warning in warnings(content):
        console.print(f"[yellow]{escape(warning)}[/yellow]")
    for what, said in in_short.lines(content):
        console.print(f"{escape(what)}: [bold]{escape(said)}[/bold]")
    console.print()
    console.print(means)
    if content.goals:
        console.print()
        console.print(_goals(content.goals, content.goals_not_run))


def _new(title: str, caption: str = "") -> RichTable:
    return RichTable(
        title=title,
        title_justify="left",
        title_style="bold",
        caption=caption or None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
    )


def _fitting(content: Content, table: Table, console: Console) -> RichTable:
    """With as much as there is room for: spreads go first, then floors, then peers from the last
    on; the best peer is named beside hakmem's ratio."""
    shown = len(table.allocators)
    made = _table(content, table, shown, spreads=True)
    while shown > 1 and _width(made, console) > console.width:
        made = _table(content, table, shown, spreads=False)
        shown -= 1
    return made


def _width(made: RichTable, console: Console) -> int:
    """With nothing cut short."""
    return Measurement.get(console, console.options.update_width(10_000), made).maximum


def _table(content: Content, table: Table, shown: int, *, spreads: bool) -> RichTable:
    left_out = len(table.allocators) - shown
    standings = [line.to_best.standing for line in table.lines if line.to_best is not None]
    caption = standings_text(content.ours, standings)
    if left_out:
        caption += f" {left_out} more allocators in the report."
    made = _new(f"{table.title}  ({table.measure.help or table.measure.unit})", caption.strip())
    made.add_column("row", no_wrap=True)
    made.add_column("", no_wrap=True)
    for allocator in table.allocators[:shown]:
        ours = allocator.name == content.ours
        style = "bold" if ours else "dim" if allocator.kind is Kind.FLOOR else ""
        made.add_column(allocator.name, justify="right", no_wrap=True, header_style=style)
    if content.ours:
        made.add_column("to best peer", no_wrap=True)
        made.add_column("to glibc", no_wrap=True)
    for line in table.lines:
        made.add_row(*_row(content, line, line.cells[:shown], spreads))
    return made


def _row(content: Content, line: Line, cells: tuple[Cell, ...], spreads: bool) -> list[Text]:
    texts = [Text(line.row.name), Text(line.scale.unit, style="dim")]
    texts += [_cell(cell, spreads) for cell in cells]
    if content.ours:
        texts += [_against(line.to_best, named=True), _against(line.to_system, named=False)]
    return texts


def _cell(cell: Cell, spreads: bool) -> Text:
    text = Text(cell.text, style="underline" if cell.is_best_peer else "")
    if cell.value is None:
        text.stylize("yellow")
    if spreads and cell.spread is not None and cell.spread >= 0.005:
        text.append(f" {percent(cell.spread)}", style="dim")
    if cell.note is not None:
        text.append(f" [{cell.note}]", style="dim")
    return text


def _against(against: Against | None, *, named: bool) -> Text:
    if against is None:
        return Text("-", style="dim")
    text = Text(against_text(against) if named else _short(against), _STYLES[against.standing])
    if named:
        text.append(f" {against.other}", style="not bold default")
    return text


def _short(against: Against) -> str:
    return decimals(against.ratio.value)


def _means(content: Content, peers: list[str]) -> RichTable:
    made = _new(
        "Geometric means, to the best peer of each row",
        "Smaller is better; in brackets the 95% interval. A star: not over all rows."
        + _hidden(
            [a.name for a in content.allocators if a.kind is Kind.PEER and a.name not in peers]
        ),
    )
    made.add_column("rows", no_wrap=True)
    made.add_column("", justify="right")
    for head in (content.ours or "", "to glibc", "better / level / worse") if content.ours else ():
        made.add_column(head, no_wrap=True)
    for name in peers:
        made.add_column(name, justify="right", no_wrap=True)
    for means in content.means:
        cells = [f"{means.scope}, {means.title}", rows_text(means, content.ours)]
        if content.ours:
            own = means.to_best.get(content.ours)
            cells += [
                ratio_text(own.ratio) if own else "-",
                ratio_text(means.to_system.ratio) if means.to_system else "-",
                counts_text(means),
            ]
        found = (means.to_best.get(name) for name in peers)
        cells += [mean_text(mean) for mean in found]
        made.add_row(*cells)
    return made


def _hidden(names: list[str]) -> str:
    """What a wider terminal would show, and the report does."""
    return f" No room for {', '.join(names)}." if names else ""


def _goals(verdicts: list[Verdict], not_run: int) -> RichTable:
    caption = (
        "Reached: the upper end of the 95% interval is at or below the goal. In these rows: only a"
        " part of the goal's rows was run."
    )
    made = _new("Goals", f"{caption} {not_run_text(not_run)}".strip())
    for head in ("goal", "rows", "at most", "is", ""):
        made.add_column(head, overflow="fold")
    for verdict in verdicts:
        made.add_row(
            f"{verdict.goal.name} ({verdict.goal.measure})",
            goal_rows_text(verdict),
            goal_text(verdict.goal),
            ratio_text(verdict.ratio) if verdict.ratio else "-",
            reached_text(verdict),
        )
    return made
