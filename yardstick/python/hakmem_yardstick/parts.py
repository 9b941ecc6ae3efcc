"""What a session is made of: the kinds of rows, the allocators, the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from hakmem_yardstick import allocators, report
from hakmem_yardstick.content import Content
from hakmem_yardstick.counts import Counts
from hakmem_yardstick.estimate import Preparation
from hakmem_yardstick.model import OURS, Allocator, Missing, Results
from hakmem_yardstick.programs import Programs
from hakmem_yardstick.runner import Runner
from hakmem_yardstick.suite import Suite
from hakmem_yardstick.suite import preparation as suite_preparation


def runners(suite: Path) -> list[Runner]:
    """`suite` is the folder of the built suite."""
    return [Suite(suite), Programs(), Counts(suite / "suite")]


def preparations(library: Path, libs: list[str], vs: list[str], mode: str) -> list[Preparation]:
    """What must be built and fetched before the first run."""
    suite = suite_preparation(library)
    others = allocators.preparations(library.parent, libs, vs, mode)
    return [suite, *others] if suite is not None else others


def choose(
    library: Path,
    suite: Path,
    libs: list[str],
    vs: list[str],
    mode: str,
    say: Callable[[str], None],
) -> tuple[list[Allocator], list[Missing]]:
    """Ours is `library`, unless `libs` name another one."""
    named = any("=" not in lib or lib.startswith(f"{OURS}=") for lib in libs)
    if not named and library.parent != suite.parent:  # installed: it does not lie beside the suite
        libs = [*libs, f"{OURS}={library}"]
    return allocators.choose(suite.parent, libs, vs, mode, say=say)


def show(results: Results, folder: Path, console: Console) -> list[Path]:
    """Prints the tables; the files of the report that it wrote."""
    content = Content(results)  # whose figures take a while
    report.show(content, console)
    return report.write(content, folder)
