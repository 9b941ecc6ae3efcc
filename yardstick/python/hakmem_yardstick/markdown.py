"""The report in Markdown, for READMEs, issues and the documentation."""

from collections.abc import Iterable

from hakmem_yardstick import in_short
from hakmem_yardstick.content import (
    Against,
    Apart,
    Cell,
    Content,
    Line,
    Means,
    Standing,
    Table,
    standing,
)
from hakmem_yardstick.head import facts, warnings
from hakmem_yardstick.model import Kind, Results
from hakmem_yardstick.stats import Mean
from hakmem_yardstick.units import parameters_text
from hakmem_yardstick.words import (
    against_text,
    counted,
    counts_text,
    emphasis,
    goal_rows_text,
    goal_text,
    mean_text,
    no_wins_text,
    not_run_text,
    percent,
    ratio_text,
    reached_text,
    rows_text,
    standings_text,
)

READING = (
    "Every figure is one of which less is better, so a ratio below 1 is better: ▼ shown better, "
    "▲ shown worse, ≈ no difference shown; in brackets the 95% interval of the ratio paired by "
    "round. After a median, ± is half the distance between the quartiles. The best peer of a row "
    "is underlined."
)


def text_of(content: Content, pictures: Iterable[tuple[str, str]] = ()) -> str:
    """`pictures`: files beside the report, with what they show."""
    parts = ["# hakmem bench", _warnings(content), _in_short(content), _facts(content), READING]
    parts += _summary(content)
    parts += [f"![{_escaped(title)}]({file})" for file, title in pictures]
    parts += ["## Tables"]
    for table in content.tables:
        parts += [f"### {table.title}", _table(content, table), _notes(table)]
    parts += ["## Rows", *_rows(content), "## Allocators", *_allocators(content.results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _escaped(text: str) -> str:
    for sign in "\\|*_<>`[]":
        text = text.replace(sign, "\\" + sign)
    return " ".join(text.split())


def _grid(heads: list[str], rows: Iterable[list[str]], right: Iterable[int] = ()) -> str:
    """A table; the columns in `right` are set to the right."""
    marks = ["--:" if at in set(right) else "---" for at in range(len(heads))]
    lines = [heads, marks, *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _warnings(content: Content) -> str:
    return "\n".join(f"- **{_escaped(warning)}**" for warning in warnings(content))


def _in_short(content: Content) -> str:
    return _grid(
        ["in short", ""], ([what, _escaped(said)] for what, said in in_short.lines(content))
    )


def _facts(content: Content) -> str:
    return "\n".join(f"- {label}: {_escaped(value)}" for label, value in facts(content))


# ---- the summary ----


def _summary(content: Content) -> list[str]:
    parts = ["## Summary", _means(content), STAR]
    if content.goals:
        rows = [
            [
                f"{_escaped(v.goal.name)} ({v.goal.measure})",
                goal_rows_text(v),
                goal_text(v.goal),
                ratio_text(v.ratio),
                _emphasised(reached_text(v), emphasis(v)),
            ]
            for v in content.goals
        ]
        parts += ["### Goals", _grid(["goal", "rows", "at most", "is", ""], rows, [1])]
        parts += [not_run_text(content.goals_not_run)]
    if content.ours:
        parts += ["### Losses", LOSSES, _apart(content.losses) or "None.", "### Wins", WINS]
        parts += [_apart(content.wins) or f"{no_wins_text(content).capitalize()}."]
    return parts


LOSSES = (
    "Rows in which hakmem is shown slower than glibc, takes more than 5% longer than the best "
    "peer, or is more than 10% worse than the best peer in another measure."
)
WINS = "Rows in which hakmem is shown to be ahead of the best peer, by as much."
STAR = "A star after a mean: not over all rows, for some have no figures."


def _emphasised(text: str, standing: Standing) -> str:
    """Bold for better, italic for worse."""
    if standing is Standing.BETTER:
        return f"**{text}**"
    return f"*{text}*" if standing is Standing.WORSE else text


def _means(content: Content) -> str:
    peers = [a.name for a in content.allocators if a.kind is Kind.PEER]
    own = [_escaped(content.ours), "to glibc", "better / level / worse"] if content.ours else []
    heads = ["geometric mean to the best peer of each row", "rows", *own, *map(_escaped, peers)]
    rows = [_mean_row(content, means, peers) for means in content.means]
    return _grid(heads, rows, [1, *range(2 + len(own), len(heads))])


def _mean_row(content: Content, means: Means, peers: list[str]) -> list[str]:
    cells = [f"{means.scope}, {means.title}", rows_text(means, content.ours)]
    if content.ours:
        own = means.to_best.get(content.ours)
        cells += [_mean(own), _mean(means.to_system), counts_text(means)]
    found = (means.to_best.get(name) for name in peers)
    return cells + [_escaped(mean_text(mean)) for mean in found]


def _mean(mean: Mean | None) -> str:
    return _emphasised(ratio_text(mean.ratio), standing(mean.ratio)) if mean else "-"


def _apart(rows: list[Apart]) -> str:
    if not rows:
        return ""
    heads = ["row", "measure", "to the best peer", "", "to glibc"]
    return _grid(
        heads,
        (
            [
                f"`{apart.line.row.name}`",
                apart.title,
                _against(apart.line.to_best),
                _escaped(apart.line.to_best.other) if apart.line.to_best else "",
                _against(apart.line.to_system),
            ]
            for apart in rows
        ),
    )


# ---- tables ----


def _against(against: Against | None) -> str:
    if against is None:
        return "-"
    return _emphasised(against_text(against), against.standing)


def _cell(table: Table, cell: Cell) -> str:
    text = _escaped(cell.text)
    if cell.is_best_peer:
        text = f"<u>{text}</u>"
    if cell.spread is not None:
        text += f" {percent(cell.spread)}"
    return text if cell.note is None else f"{text} [{cell.note}](#{anchor(table)})"


def anchor(table: Table) -> str:
    return f"notes-{table.key}"


def _table(content: Content, table: Table) -> str:
    names = [_escaped(a.name) for a in table.allocators]
    own = ["to the best peer", "", "to glibc"] if content.ours else []
    heads = ["row", "unit", *own, *names]

    def row(line: Line) -> list[str]:
        best, cells = line.to_best, [_cell(table, cell) for cell in line.cells]
        ratios = [_against(best), _escaped(best.other) if best else "", _against(line.to_system)]
        return [f"`{line.row.name}`", line.scale.unit, *(ratios if own else []), *cells]

    standings = [line.to_best.standing for line in table.lines if line.to_best is not None]
    said = standings_text(content.ours, standings)
    grid = _grid(heads, map(row, table.lines), range(2 + len(own), len(heads)))
    return f"{said}\n\n{grid}".strip()


def _notes(table: Table) -> str:
    if not table.notes:
        return ""
    lines = [f"{number}. {_escaped(note)}" for number, note in enumerate(table.notes, 1)]
    return f'<a id="{anchor(table)}"></a>\n\n' + "\n".join(lines)


def _rows(content: Content) -> list[str]:
    rows = [
        [f"`{row.name}`", row.group, _escaped(parameters_text(row)), _escaped(row.why)]
        for row in content.rows
    ]
    return [
        f"{counted(len(rows), 'row')}, with all their parameters.",
        _grid(["row", "group", "parameters", "why"], rows),
    ]


def _allocators(results: Results) -> list[str]:
    rows = [
        [_escaped(a.name), a.kind.value, *map(_escaped, (a.version, a.origin, a.note))]
        for a in results.allocators
    ]
    rows += [[_escaped(m.name), "missing", "", "", _escaped(m.why)] for m in results.missing]
    return [_grid(["allocator", "", "version", "from", "to be known"], rows)]
