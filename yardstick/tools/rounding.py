#!/usr/bin/env python3
"""Measures how much of the memory in blocks is rounding, on the programs of the suite: bytes that
blocks have beyond those asked for, when most was in use, and over all blocks there ever were.

Usage: yardstick/tools/rounding.py [--rows GLOB] [--write]; a few minutes. With --write the table
goes into docs/design.md.
"""

from __future__ import annotations

import argparse
import struct
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "yardstick/python"))

from hakmem_yardstick.model import OURS, Allocator, Kind
from hakmem_yardstick.programs import Programs
from hakmem_yardstick.runner import Unavailable

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build/release/yardstick/tests/librounding.so"
PAGE = ROOT / "docs/design.md"
BEGIN, END = "<!-- rounding -->", "<!-- end of rounding -->"
MIB = 1024 * 1024
RECORD = struct.Struct("6Q32s")  # struct figures of yardstick/tools/rounding.c


@dataclass(frozen=True)
class Figures:
    """Bytes, of one process or of many."""

    peak_asked: int = 0
    peak_usable: int = 0
    all_asked: int = 0
    all_usable: int = 0

    def __add__(self, other: Figures) -> Figures:
        return Figures(*(a + b for a, b in zip(self.values(), other.values(), strict=True)))

    def values(self) -> tuple[int, int, int, int]:
        return self.peak_asked, self.peak_usable, self.all_asked, self.all_usable

    @property
    def at_peak(self) -> float:
        return self.peak_usable / self.peak_asked - 1

    @property
    def of_all(self) -> float:
        return self.all_usable / self.all_asked - 1


def environment(folder: Path) -> dict[str, str]:
    folder.chmod(0o777)  # a server may run as another user
    return {"ROUNDING_FOLDER": str(folder)}


def read(folder: Path) -> dict[str, Figures]:
    """By the programs' names, all processes of one together."""
    found: dict[str, Figures] = {}
    for file in folder.iterdir():
        _, _, peak_asked, peak_usable, all_asked, all_usable, name = RECORD.unpack(
            file.read_bytes()
        )
        program = name.rstrip(b"\0").decode(errors="replace")
        figures = Figures(peak_asked, peak_usable, all_asked, all_usable)
        found[program] = found.get(program, Figures()) + figures
    return found


def measure(programs: Programs, name: str) -> Figures | str:
    """Or why not."""
    row = next(row for row in programs.rows() if row.name == name)
    try:
        programs.prepare(row)
    except Unavailable as why:
        return str(why)
    with tempfile.TemporaryDirectory(prefix="hakmem-rounding-") as folder:
        recorded = Allocator(OURS, Kind.OURS, LIBRARY, environment=environment(Path(folder)))
        outcome = programs.run(row, recorded, scale=1.0, timeout=900)
        if outcome.outcome != "ok":
            return f"{outcome.outcome}: {outcome.detail}"
        return sum(read(Path(folder)).values(), Figures())


def table(measured: Iterable[tuple[str, Figures]]) -> str:
    rows = list(measured)
    rows.append(("together", sum((figures for _, figures in rows), Figures())))
    lines = [
        "| program | MiB asked for at the peak | rounding at the peak | of all blocks |",
        "|---|---:|---:|---:|",
    ]
    lines += [
        f"| {name} | {figures.peak_asked / MIB:,.1f} | {figures.at_peak:.1%} |"
        f" {figures.of_all:.1%} |"
        for name, figures in rows
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="*")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    programs = Programs()
    measured = []
    for row in programs.rows():
        if row.tier == "full" or not fnmatch(row.name, arguments.rows):
            continue  # the same programs with more of the same
        figures = measure(programs, row.name)
        if isinstance(figures, str):
            print(f"{row.name}: {figures}", file=sys.stderr)
        else:
            print(f"{row.name}: {figures.at_peak:.1%}", file=sys.stderr)
            measured.append((row.name, figures))
    if not measured:
        return 1
    print(table(measured))
    if arguments.write:
        before, rest = PAGE.read_text().split(BEGIN)
        after = rest.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{table(measured)}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
