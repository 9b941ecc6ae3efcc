"""What a session is made of: the kinds of rows, the allocators, the report."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from hakmem.bench import allocators, tables
from hakmem.bench.counts import Counts
from hakmem.bench.model import OURS, Allocator, Kind, Missing, Results
from hakmem.bench.programs import Programs
from hakmem.bench.runner import Runner
from hakmem.bench.suite import Suite

GROUPS = ("seed", "micro", "threads", "stress", "memory", "programs", "counts")


def runners(suite: Path) -> list[Runner]:
    """`suite` is the folder of the built suite."""
    return [Suite(suite), Programs(), Counts(suite / "suite")]


def choose(
    library: Path, suite: Path, libs: list[str], vs: list[str], mode: str
) -> tuple[list[Allocator], list[Missing]]:
    """Ours is `library`, unless `libs` name another one."""
    if not any("=" not in lib or lib.startswith(f"{OURS}=") for lib in libs):
        libs = [*libs, f"{OURS}={library}"]
    found, missing = allocators.choose(suite.parent, libs, vs)
    if mode != "full" and not vs:
        found = [a for a in found if a.kind is not Kind.FLOOR]
    return found, [Missing(name, "not installed") for name in missing]


def show(results: Results, folder: Path, console: Console) -> list[Path]:
    """Prints the tables; the files of the report that it wrote."""
    # Plots take a second to load, which --list and a wrong option shall not wait for.
    from hakmem.bench import report

    tables.print_tables(results, console)
    return report.write(results, folder)
