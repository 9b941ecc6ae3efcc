#!/usr/bin/env python3
"""Which wrong frees are caught, and when: by glibc, by hakmem, and by hakmem with check_frees.

Usage: table.py --caught PROGRAM --lib LIBRARY [--check [all]] [--only TEXT] [--jobs N]

Runs tests/misuse/caught.c for every case and size, and prints a Markdown table. Below it come the
cases and sizes in which glibc ends the program and hakmem by default does not:

  - those that glibc ends in the wrong call itself. --check fails if there are any;
  - those that glibc ends later, by what it finds of its own overwritten data. --check all fails if
    there are any of either.

--check also fails where hakmem ends a program without a report, or a program hangs.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

SIZES = [
    *(16, 24, 64, 100, 200, 512, 1000, 1032, 2000, 4096, 8000, 12000, 20000, 32000, 40000),
    *(100000, 250000, 300000, 1 << 20, 3 << 20),
]
SMALL, LARGE = [64], [300000]

FREED_TWICE = {
    "twice": "freed twice in a row",
    "twice_after_1": "freed twice, 1 free between",
    "twice_after_20": "freed twice, 20 frees between",
    "twice_after_1000": "freed twice, 1,000 frees between",
    "twice_after_20_of_other_sizes": "freed twice, 20 frees of other sizes between",
    "twice_after_writing": "freed, written to and freed again",
    "twice_after_writing_and_1": "freed, written to and freed again, 1 free between",
    "twice_thread_then_main": "freed by a thread that is idle now, then by another",
    "twice_main_then_thread": "freed by one thread, then by one that was idle",
    "twice_ended_thread_then_main": "freed by a thread that has ended, then by another",
    "twice_after_realloc": "freed after realloc moved it",
    "twice_after_reuse": "freed again when the address was another block's",
    "realloc_of_freed": "realloc right after free",
    "realloc_of_freed_after_20": "realloc after free, 20 frees between",
}
INSIDE = {
    "realloc_inside_16": "realloc of an address 16 bytes into a block",
    "inside_1": "free 1 byte into a block",
    "inside_8": "free 8 bytes into a block",
    "inside_16": "free 16 bytes into a block",
    "inside_half": "free in the middle of a block",
    "inside_last": "free of the last multiple of 16 in a block",
    "inside_65536": "free 64 KiB into a block",
}
NEVER = {
    "never_handed_out_next": "free where the next block would be",
    "never_handed_out_50th": "free where the 50th next block would be",
}
FOREIGN = {
    "foreign_static": "free of static memory",
    "foreign_static_8": "free of static memory, not a multiple of 16",
    "foreign_stack": "free of a variable on the stack",
    "foreign_stack_8": "free of a variable on the stack, not a multiple of 16",
    "foreign_mapped": "free of what mmap returned",
    "foreign_mapped_page": "free of the second page of what mmap returned",
    "foreign_mapped_16": "free inside what mmap returned",
    "foreign_number": "free of a number that is no address",
}
SMALL_PROGRAMS = {
    "small_twice": "a small program: free(p) twice",
    "small_a_b_a": "a small program: free(a), free(b), free(a)",
    "small_inside": "a small program: free(p + 16)",
    "small_unaligned": "a small program: free(p + 8)",
    "small_stack": "a small program: free of an array on the stack",
    "small_static": "a small program: free of a static array",
    "small_twice_large": "a small program: a large block freed twice",
    "small_realloc_of_freed": "a small program: realloc after free",
    "small_twice_across_realloc": "a small program: free of what realloc has moved",
    "small_never_handed_out": "a small program: free where the next block would be",
    "small_a_b_a_large": "a small program: free(a), free(b), free(a), large blocks",
}
TITLES = FREED_TWICE | INSIDE | NEVER | FOREIGN | SMALL_PROGRAMS
# What is tried with blocks of these functions as well.
KINDS = {"calloc": "calloc", "aligned": "aligned_alloc(64)", "page": "aligned_alloc(4096)",
         "new": "operator new"}  # fmt: skip
OF_EVERY_KIND = ["twice", "twice_after_1", "twice_after_20", "inside_8", "inside_16", "inside_half"]

GLIBC, HAKMEM, CHECKED = "glibc", "hakmem", "hakmem, check_frees"
AT_ONCE, LATER, NO, CRASH, HANG, NOT_HERE = "at once", "later", "no", "CRASH", "HANG", "-"
EARLIER = "earlier"  # by what the program did before, such as writing to memory that is gone
ENDS = {AT_ONCE, LATER, EARLIER}
NOT_HERE_STATUS = 77
TIMEOUT = 120  # seconds; a run takes milliseconds, and only one that hangs comes near


@dataclass(frozen=True)
class Trial:
    case: str
    size: int
    kind: str = "malloc"

    @property
    def row(self) -> tuple[str, str]:
        return self.case, self.kind

    def __str__(self) -> str:
        return f"{self.case} {self.size}" + (f" {self.kind}" if self.kind != "malloc" else "")


def trials() -> list[Trial]:
    found = []
    for case in TITLES:
        sizes = SIZES
        if case in FOREIGN or case in SMALL_PROGRAMS:
            sizes = LARGE if case.endswith("_large") else SMALL
        found += [Trial(case, size) for size in sizes]
    found += [Trial(case, size, k) for k in KINDS for case in OF_EVERY_KIND for size in SIZES]
    return found


def environment(allocator: str, library: Path) -> dict[str, str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HAKMEM_", "MALLOC_", "GLIBC_TUNABLES", "LD_"))
    }
    if allocator != GLIBC:
        clean["LD_PRELOAD"] = str(library)
    if allocator == CHECKED:
        clean["HAKMEM_CHECK_FREES"] = "on"
    return clean


def outcome(allocator: str, status: int, out: str, error: str) -> str:
    """A crash is an end too, and glibc's way to meet some addresses; hakmem owes a report."""
    if status == NOT_HERE_STATUS:
        return NOT_HERE
    if status == 0 and out.endswith("went on\n"):
        return NO
    if status >= 0:
        raise SystemExit(f"expected the end of main or a signal, found {status}: {out}{error}")
    reported = "hakmem: what to do: " in error and status == -signal.SIGABRT
    if allocator != GLIBC and not reported:
        return CRASH
    if "before\n" not in out:
        return EARLIER
    return LATER if "after\n" in out else AT_ONCE


def run(program: Path, library: Path, trial: Trial, allocator: str) -> str:
    command = [str(program), trial.case, str(trial.size), trial.kind]
    try:
        done = subprocess.run(
            command,
            env=environment(allocator, library),
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return HANG
    return outcome(allocator, done.returncode, done.stdout, done.stderr)


Outcomes = dict[tuple[Trial, str], str]


def run_all(program: Path, library: Path, chosen: list[Trial], jobs: int) -> Outcomes:
    wanted = [(trial, allocator) for trial in chosen for allocator in (GLIBC, HAKMEM, CHECKED)]
    with ThreadPoolExecutor(jobs) as pool:
        found = pool.map(lambda pair: run(program, library, *pair), wanted)
        return dict(zip(wanted, found, strict=True))


# ---- what is printed ----


def size_words(size: int) -> str:
    return f"{size >> 20} MiB" if size % (1 << 20) == 0 else f"{size:,}"


def ranges(sizes: Iterable[int], tried: list[int]) -> str:
    """Sizes that follow each other among those that were tried are one range."""
    at = [tried.index(size) for size in sizes]
    runs: list[list[int]] = []
    for index in at:
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ", ".join(
        size_words(tried[a]) if a == b else f"{size_words(tried[a])} to {size_words(tried[b])}"
        for a, b in runs
    )


def cell(by_size: dict[int, str]) -> str:
    here = {size: found for size, found in by_size.items() if found != NOT_HERE}
    kinds = list(dict.fromkeys(here.values()))
    if len(kinds) <= 1:
        return kinds[0] if kinds else NOT_HERE
    return "; ".join(
        f"{kind}: {ranges([size for size, k in here.items() if k == kind], list(here))}"
        for kind in kinds
    )


def title(case: str, kind: str) -> str:
    return TITLES[case] + (f" (a block of {KINDS[kind]})" if kind in KINDS else "")


def table(outcomes: Outcomes) -> str:
    rows: dict[tuple[str, str], dict[str, dict[int, str]]] = {}
    for (trial, allocator), found in outcomes.items():
        rows.setdefault(trial.row, {}).setdefault(allocator, {})[trial.size] = found
    lines = [f"| wrong call | {GLIBC} | {HAKMEM} | {CHECKED} |", "|---|---|---|---|"]
    for (case, kind), row in rows.items():
        cells = [cell(row[allocator]) for allocator in (GLIBC, HAKMEM, CHECKED)]
        lines.append(f"| {title(case, kind)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def missed(outcomes: Outcomes, by_glibc: str) -> list[Trial]:
    """What glibc ends so, and hakmem by default does not end."""
    return [
        trial
        for (trial, allocator), found in outcomes.items()
        if allocator == GLIBC
        and found == by_glibc
        and outcomes[trial, HAKMEM] not in {*ENDS, NOT_HERE}
    ]


def broken(outcomes: Outcomes) -> list[str]:
    return [
        f"{trial}, {allocator}: {found}"
        for (trial, allocator), found in outcomes.items()
        if (allocator != GLIBC and found == CRASH) or found == HANG
    ]


def print_list(words: str, items: list[object]) -> None:
    print(f"\n{words}: {len(items)}")
    for item in items:
        print(f"  {item}")


def expect_same_cases(program: Path) -> None:
    done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    if done.stdout.split() != list(TITLES):
        differ = set(done.stdout.split()) ^ set(TITLES)
        raise SystemExit(f"caught.c and table.py have different cases, or another order: {differ}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--caught", type=Path, required=True, help="the built caught.c")
    parser.add_argument("--lib", type=Path, required=True, help="the built libhakmem.so")
    parser.add_argument(
        "--check", nargs="?", const="call", choices=["call", "all"], help="fail where hakmem misses"
    )
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    expect_same_cases(arguments.caught)
    chosen = [trial for trial in trials() if arguments.only in trial.case]
    outcomes = run_all(arguments.caught.resolve(), arguments.lib.resolve(), chosen, arguments.jobs)
    print(table(outcomes))
    in_the_call, later = (missed(outcomes, by_glibc) for by_glibc in (AT_ONCE, LATER))
    wrong = broken(outcomes)
    print_list("glibc ends it in the wrong call, hakmem does not end it", [*in_the_call])
    print_list("glibc ends it later, hakmem does not end it", [*later])
    print_list("ended without a report, or never", [*wrong])
    failed = in_the_call or wrong or (later if arguments.check == "all" else [])
    return 1 if arguments.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())
