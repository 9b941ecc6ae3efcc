"""Compares what whole works execute with the committed table, or writes the table anew.

The works are rows of the suite, counted as `hakmem bench` counts them: an operation on a warm heap,
slow paths with their share.

Usage: python -m yardstick.tools.golden_counts {check,update} [--lib FILE] [--suite FILE]
[--table FILE]
"""

import argparse
import os
import re
import shutil
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "yardstick/python"))

from hakmem_yardstick.counts import WORKS, Counts, Work
from hakmem_yardstick.model import OURS, Allocator, Kind
from tools.golden.walk import Library

SKIPPED = 77
# One of them may share both processors with the rest of the tests.
SECONDS = 300

GUARDED = (
    "pair-64", "mixed-400", "mixed-8192", "replace-8192", "mixed-8k", "random-1000-64",
    "batch-random", "large-64k", "large-mixed", "pair-1m", "calloc-64", "realloc-step-16-of-8",
    "aligned-64-200",
)  # fmt: skip


@dataclass(frozen=True)
class Tolerance:
    """How far a figure may grow: a share of it, and an amount that rounding needs."""

    share: float
    amount: float

    def allows(self, before: float, now: float) -> bool:
        return now <= before * (1 + self.share) + self.amount


# Where a superslab lies is random, and which blocks share a set of the cache with it; what is
# executed depends on that in no way but the order of free runs of pages.
TOLERANCES = {
    "instructions": Tolerance(0.002, 0.001),
    "branches": Tolerance(0.002, 0.001),
    "mispredicts": Tolerance(0.25, 0.2),
    "data-refs": Tolerance(0.002, 0.001),
    "d1-misses": Tolerance(0.02, 0.02),
    "ll-misses": Tolerance(0.1, 0.002),
}
# First bytes of large blocks share few sets of a cache: their misses are a matter of luck. Those of
# the last level were 0.050 in 44 runs of large-mixed and 0.064 in one, by the same instructions.
MISSES_OF_PAGES = {"d1-misses": Tolerance(1.0, 0.02), "ll-misses": Tolerance(0.5, 0.002)}
OF_PAGES = {"large-64k", "large-mixed"}


def tolerance(row: str, measure: str) -> Tolerance:
    chance = MISSES_OF_PAGES if row in OF_PAGES else {}
    return chance.get(measure, TOLERANCES[measure])


HEAD = """\
# Golden counts of works

What one operation of a row of the suite executes on a warm heap, slow paths with their share, in
hakmem's own code (the row's loop and the C library left out); misses are those of the row's
accesses too, in the caches of one machine that callgrind plays: 32 KiB and 8 ways, then 8 MiB and
16 ways. The clock stands still meanwhile, so that what hakmem does by the time of day is not more
on a slow machine. What a row does: `build/release/bench/suite --list`.

Instructions, branches and data accesses repeat to the last digit as long as free pages lie in the
same order; 0.2% is allowed for where they don't. Mispredictions may grow by a quarter and 0.2,
since it is chance which branches share a place in callgrind's predictor; a new branch in malloc or
free that goes wrong half the time is more. Misses of the first cache may grow by 2% and 0.02, those
of the last level by a tenth, since a heap begins at a random place. In rows of large blocks, whose
first bytes share few sets of a cache, the first may double and the others grow by a half. An
instruction more in malloc or in free is 3% of a pair's. `make test` fails when a number grows by
more; after a change that is worth it, `make golden-update` writes this page anew.

Compiler: {compiler}, x86-64

"""

Rows = dict[str, dict[str, float]]


def collect(suite: Path, library: Path, works: list[Work]) -> Rows:
    counts = Counts(suite)
    ours = Allocator(OURS, Kind.OURS, library.resolve())

    def figures(work: Work) -> dict[str, float]:
        counted = counts.count(work, ours, timeout=SECONDS)
        # The C library's copying and clearing is chosen by the processor.
        return counted.values(leave_out=[suite.name, counts.clock.name, "libc.so.6"])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip((work.row for work in works), pool.map(figures, works), strict=True))


def table_of(compiler: str, rows: Mapping[str, Mapping[str, float]]) -> str:
    lines = [
        "| row | " + " | ".join(TOLERANCES) + " |\n",
        "|---|" + "---:|" * len(TOLERANCES) + "\n",
    ]
    for name, figures in rows.items():
        numbers = " | ".join(f"{figures[measure]:.3f}" for measure in TOLERANCES)
        lines.append(f"| `{name}` | {numbers} |\n")
    return HEAD.format(compiler=compiler) + "".join(lines)


def table_read(text: str) -> tuple[str, Rows]:
    """The compiler and the rows; nothing where there is no table yet."""
    compiler = re.search(r"^Compiler: (.*), x86-64$", text, re.MULTILINE)
    found = re.findall(r"^\| `(.+)` \| ([\d. |]+) \|$", text, re.MULTILINE)
    rows = {
        name: dict(zip(TOLERANCES, map(float, numbers.split(" | ")), strict=True))
        for name, numbers in found
    }
    return compiler[1] if compiler else "", rows


def changes(golden: Rows, rows: Rows) -> tuple[list[str], list[str]]:
    """What grew by more than it may, and what shrank by as much."""
    grown, shrunk = [], []
    for name, before in golden.items():
        if name not in rows:
            grown.append(f"{name}: not counted any more")
            continue
        for measure in TOLERANCES:
            allowed = tolerance(name, measure)
            old, new = before[measure], rows[name][measure]
            share = f" ({new / old - 1:+.1%})" if old else ""
            line = f"{name}: {measure} {old:.3f} -> {new:.3f}{share}"
            if not allowed.allows(old, new):
                grown.append(line)
            elif not allowed.allows(new, old):
                shrunk.append(line)
    grown += [f"{name}: not in the table yet" for name in rows if name not in golden]
    return grown, shrunk


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m yardstick.tools.golden_counts", description=__doc__
    )
    parser.add_argument("action", choices=["check", "update"])
    parser.add_argument("--lib", type=Path, default=Path("build/release/libhakmem.so"))
    parser.add_argument("--suite", type=Path, default=Path("build/release/bench/suite"))
    parser.add_argument("--table", type=Path, default=Path("yardstick/tests/golden/counts.md"))
    arguments = parser.parse_args()

    compiler, golden = table_read(arguments.table.read_text() if arguments.table.exists() else "")
    ours = Library(arguments.lib).compiler
    checks = arguments.action == "check"
    if shutil.which("valgrind") is None:
        print("valgrind is not installed")
        return SKIPPED if checks else 1
    if checks and golden and compiler != ours:
        print(f"the table is for {compiler}, this is {ours}")
        return SKIPPED

    rows = collect(arguments.suite, arguments.lib, [w for w in WORKS if w.row in GUARDED])
    grown, shrunk = changes(golden, rows)
    for line in [*grown, *shrunk]:
        print(line)
    print(f"{len(rows)} rows counted")
    if not checks:
        arguments.table.write_text(table_of(ours, rows))
        print(f"written: {arguments.table}")
        return 0
    if grown:
        print("FAIL: if the change is worth it: make golden-update, and commit", file=sys.stderr)
        return 1
    if shrunk:
        print("better than the table: keep it with make golden-update")
    return 0


if __name__ == "__main__":
    sys.exit(main())
