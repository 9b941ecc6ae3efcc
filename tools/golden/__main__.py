"""Compares the fast paths of a built library with the committed table, or writes the table anew.

Usage: python -m tools.golden {check,update} [--lib FILE] [--driver FILE] [--table FILE]
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

from tools.golden import table
from tools.golden.measure import measured
from tools.golden.walk import Counts, Library, NoFastPath, fast_path

# As linkers name them, and as the table does.
ENTRIES = {
    "malloc": "malloc",
    "free": "free",
    "calloc": "calloc",
    "realloc": "realloc, same class",
    "malloc_usable_size": "malloc_usable_size",
    "_Znwm": "operator new",
    "_ZnwmRKSt9nothrow_t": "operator new, nothrow",
    "_ZdlPv": "operator delete",
    "_ZdlPvm": "operator delete, sized",
}
# The promise of the design, whatever a table says.
MOST_INSTRUCTIONS_OF_A_PAIR = 43
MOST_BRANCHES = 4


def counts(library: Library, driver: Path, name: str) -> Counts:
    """What the machine code and callgrind say alike."""
    path = fast_path(library, name)
    run = measured(driver, library, name)
    if run != replace(path.counts, loads=path.counts.loads - path.updates):
        raise NoFastPath(
            f"{name}: a warm call does not take the straight path of the machine code: "
            f"read {path.counts} with {path.updates} updates in place, measured {run}"
        )
    return path.counts


def collect(library: Library, driver: Path) -> tuple[dict[str, Counts], dict[str, str]]:
    """Counts by the table's names, and for those without a fast path the reason."""
    rows: dict[str, Counts] = {}
    without: dict[str, str] = {}

    def look(name: str) -> Counts | NoFastPath:
        try:
            return counts(library, driver, name)
        except NoFastPath as reason:
            return reason

    names = [name for name in ENTRIES if name in library.exports]
    with ThreadPoolExecutor() as pool:
        for name, result in zip(names, pool.map(look, names), strict=True):
            if isinstance(result, Counts):
                rows[ENTRIES[name]] = result
            else:
                without[ENTRIES[name]] = str(result)
    return rows, without


def broken_limits(rows: dict[str, Counts], without: dict[str, str]) -> list[str]:
    absent = [name for name in ("malloc", "free") if name not in rows]
    if absent:
        return [without.get(name, f"{name} is not exported") for name in absent]
    broken = [
        f"{name}: {rows[name].branches} conditional branches; at most {MOST_BRANCHES} are allowed"
        for name in ("malloc", "free")
        if rows[name].branches > MOST_BRANCHES
    ]
    pair = rows["malloc"].instructions + rows["free"].instructions
    if pair > MOST_INSTRUCTIONS_OF_A_PAIR:
        broken.append(
            f"malloc and free: {pair} instructions together; "
            f"at most {MOST_INSTRUCTIONS_OF_A_PAIR} are allowed"
        )
    return broken


def increases(
    golden: dict[str, Counts], rows: dict[str, Counts], without: dict[str, str]
) -> list[str]:
    found = []
    for name, old in golden.items():
        if name not in rows:
            found.append(without.get(name, f"{name} is not exported any more"))
            continue
        now = asdict(rows[name])
        found += [
            f"{name}: {what} grew from {before} to {now[what]}"
            for what, before in asdict(old).items()
            if now[what] > before
        ]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.golden", description=__doc__)
    parser.add_argument("action", choices=["check", "update"])
    parser.add_argument("--lib", type=Path, default=Path("build/release/libhakmem.so"))
    parser.add_argument(
        "--driver", type=Path, default=Path("build/release/tests/golden/golden_driver")
    )
    parser.add_argument("--table", type=Path, default=Path("tests/golden/fast_path.md"))
    arguments = parser.parse_args()

    library = Library(arguments.lib)
    rows, without = collect(library, arguments.driver)
    for name, row in rows.items():
        print(f"{name}: " + ", ".join(f"{number} {what}" for what, number in asdict(row).items()))

    failures = broken_limits(rows, without)
    if arguments.action == "update":
        for reason in without.values():
            print(f"left out: {reason}")
        if not failures:
            table.write(arguments.table, library.compiler, rows)
            print(f"written: {arguments.table}")
    else:
        compiler, golden = table.read(arguments.table)
        if not golden:
            failures.append(f"{arguments.table} has no numbers yet: run make golden-update")
        elif compiler != library.compiler:
            print(f"limits only: the table is for {compiler}, this is {library.compiler}")
        elif grown := increases(golden, rows, without):
            failures += [*grown, "if the change is worth it: make golden-update, and commit"]
        elif golden != rows:
            print("better than the table: keep it with make golden-update")
    for line in failures:
        print(f"FAIL {line}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
