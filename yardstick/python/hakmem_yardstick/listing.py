"""Which rows there are, and which of them a command line asks for. `hakmem bench --list` shall need
nothing, so the rows stand in rows.tsv, which yardstick/tools/rows.py makes; each with its half: the
rows that may tune the allocator, and those that only judge it (yardstick/docs/judge.md)."""

from __future__ import annotations

import argparse
import csv
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hakmem.arguments import WrongUse
from hakmem_yardstick.model import Row, by_group, included

TABLE = Path(__file__).resolve().with_name("rows.tsv")
COLUMNS = ("row", "group", "tier", "threads", "judged by", "why")
TUNING, JUDGING = HALVES = ("tuning", "judging")


def _lines() -> list[dict[str, str]]:
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file, dialect="excel-tab"))


def rows() -> list[Row]:
    """As far as a list tells of them."""
    return [
        Row(
            line["row"], line["group"], "", line["why"], (), tuple(line["judged by"].split(", ")),
            line["tier"], int(line["threads"]),
        )
        for line in _lines()
    ]  # fmt: skip


def halves() -> dict[str, str]:
    """The half of each row."""
    return {line["row"]: line["half"] for line in _lines()}


def _cells(row: Row) -> tuple[str, ...]:
    return row.name, row.group, row.tier, str(row.threads), ", ".join(row.judged), row.why


def table(rows: Iterable[Row], half: Mapping[str, str]) -> str:
    """rows.tsv."""
    lines = [("half", *COLUMNS), *((half[row.name], *_cells(row)) for row in rows)]
    return "".join("\t".join(cells) + "\n" for cells in lines)


def text(rows: Sequence[Row]) -> str:
    """For a terminal: by group, in columns."""
    lines = [COLUMNS, *map(_cells, rows)]
    widths = [max(len(cells[at]) for cells in lines) for at in range(len(COLUMNS))]

    def line(cells: Sequence[str]) -> str:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        del padded[1]  # it is the title
        return "  ".join(padded).rstrip() + "\n"

    parts = [
        f"{group} ({len(members)})\n{line(COLUMNS)}" + "".join(line(_cells(r)) for r in members)
        for group, members in by_group(rows).items()
    ]
    return "\n".join(parts)


# ---- what a command line asks for ----


def mode_of(arguments: argparse.Namespace) -> str:
    if arguments.quick and arguments.full:
        raise WrongUse("--quick and --full exclude each other")
    return "quick" if arguments.quick else "full" if arguments.full else "standard"


def split(texts: list[str] | None) -> list[str]:
    return [word for text in texts or [] for word in text.split(",") if word]


def chosen(rows: Sequence[Row], arguments: argparse.Namespace) -> list[Row]:
    """Rows named by a pattern are run whatever their tier."""
    mode, only, globs = mode_of(arguments), arguments.only or [], split(arguments.rows)
    if arguments.half is not None:
        half = halves()
        rows = [row for row in rows if half.get(row.name) == arguments.half]
    groups = by_group(rows)
    for group in only:
        if group not in groups:
            known = ", ".join(groups)
            raise WrongUse(f"--only {group}: there is no such group; the groups are {known}")
    for glob in globs:
        if not fnmatch.filter([row.name for row in rows], glob):
            raise WrongUse(
                f"--rows {glob}: no row is called so; 'hakmem bench --full --list' names them"
            )
    found = [
        row
        for row in rows
        if (not only or row.group in only)
        and (any(fnmatch.fnmatchcase(row.name, glob) for glob in globs) or not globs)
        and (globs or included(row, mode))
    ]
    if not found:
        raise WrongUse("no row is left; --full has those that a quick or standard run leaves out")
    return found
