"""Processes on hakmem, one row of figures each, as `hakmem top` shows them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakmem import look
from hakmem.look import CannotLook, Sheet

OVERHEAD = ("live", "rounding", "metadata", "unexplained")


@dataclass(frozen=True)
class Row:
    """Sizes in bytes; rates in bytes a second since the last look, None at the first."""

    pid: int
    program: str
    resident: int
    live: int  # in blocks in use
    free: int  # in the heap's free memory that is resident
    returnable: int  # of that, what could go back at once
    freed: float | None
    grown: float | None  # resident memory

    def json(self) -> dict[str, Any]:
        return {
            "pid": self.pid,
            "program": self.program,
            "resident": self.resident,
            "live": self.live,
            "free": self.free,
            "returnable": self.returnable,
            "freed_per_second": self.freed,
            "grown_per_second": self.grown,
        }


def returnable(sheet: Sheet) -> int:
    """Bytes that could go back at once."""
    return sum(
        line.resident - (line.could_be or 0) for line in sheet.heap if line.how == look.PURGE
    )


def _row(sheet: Sheet, before: Sheet | None, seconds: float) -> Row:
    def rate(now: int, then: int) -> float | None:
        return (now - then) / seconds if before is not None and seconds > 0 else None

    free = sum(line.resident for line in sheet.heap if line.name not in OVERHEAD)
    earlier = before or sheet
    return Row(
        sheet.pid,
        sheet.program,
        sheet.resident,
        sheet.live,
        free,
        returnable(sheet),
        rate(sheet.seen["freed"], earlier.seen["freed"]),
        rate(sheet.resident, earlier.resident),
    )


def on_hakmem() -> Iterator[int]:
    """The PIDs of processes that have its library, as far as they may be read."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            text = maps.read_text(errors="replace")
            if not text:  # its first thread has ended, and others have not
                threads = (maps.parent / "task").glob("*/maps")
                text = "".join(one.read_text(errors="replace") for one in threads)
            if "/libhakmem" in text:
                yield int(maps.parent.name)


class Looks:
    """Looks at processes again and again, and knows what it saw last."""

    def __init__(self, library: Path) -> None:
        self.library = library
        self.sheets: dict[int, Sheet] = {}
        self._at: dict[int, float] = {}

    def again(self, pids: Iterable[int]) -> tuple[list[Row], list[CannotLook]]:
        """Rows, the largest first, and what is to be said of processes that can't be read."""
        rows: list[Row] = []
        said: list[CannotLook] = []
        sheets: dict[int, Sheet] = {}
        at: dict[int, float] = {}
        for pid in pids:
            try:
                sheet = look.sheet(pid, self.library)
            except CannotLook as why:
                said.append(why)
                continue
            now = time.monotonic()
            rows.append(_row(sheet, self.sheets.get(pid), now - self._at.get(pid, now)))
            sheets[pid], at[pid] = sheet, now
        self.sheets, self._at = sheets, at
        return sorted(rows, key=lambda row: -row.resident), said


# ---- as text ----

COLUMNS = ("PID", "PROGRAM", "RSS", "IN USE", "FREE", "RETURN", "FREED/s", "GROWTH/s")


def size(value: float | None, signed: bool = False) -> str:
    """In MiB, six characters or so."""
    if value is None:
        return "-"
    tenths = look.rounded(value)
    return ("+" if signed and tenths >= 0 else "") + look.in_tenths(tenths)


def header(width: int) -> str:
    return _line(COLUMNS, width)


def text(row: Row, width: int) -> str:
    cells = (
        str(row.pid),
        row.program,
        size(row.resident),
        size(row.live),
        size(row.free),
        size(row.returnable),
        size(row.freed),
        size(row.grown, signed=True),
    )
    return _line(cells, width)


def _line(cells: tuple[str, ...], width: int) -> str:
    name = max(min(width - 1 - 8 - 6 * 9, 40), 10)
    first, second, *others = cells
    return f"{first:>7} {second[:name]:<{name}}" + "".join(f"{cell:>9}" for cell in others)
