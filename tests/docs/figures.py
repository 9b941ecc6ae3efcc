#!/usr/bin/env python3
"""Compares each figure of README.md with the page that it comes from.

A claim is a sentence of the README with names in the place of its figures, and where each figure
stands: a table of a page, its row and its column. A figure of the README that no claim covers, and
that is no name (Debian 12, x86-64), is an error too.

Exit status: 0 all agree, 1 some do not; what the README should say is printed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASELINE = "docs/performance.md"
MISUSE = "docs/misuse.md"
DESIGN = "docs/design.md"
PROGRAMS = "docs/programs.md"
HARDENED = "docs/programs-hardened.md"
TIME, PEAK = "all rows, time", "all rows, peak memory"
PEERS = {
    "glibc 2.36": "glibc",
    "mimalloc 2": "mimalloc2",
    "mimalloc 3": "mimalloc3",
    "jemalloc 5.3.1": "jemalloc-new",
    "tcmalloc (gperftools)": "tcmalloc",
    "Google's tcmalloc": "tcmalloc-google",
    "snmalloc": "snmalloc",
    "rpmalloc": "rpmalloc",
    "**hakmem**": "hakmem",
}
# Numbers that are names, or counts of what stands beside them.
NAMES = re.compile(
    r"Debian 12|x86-64|AArch64|glibc 2\.36|jemalloc 5\.3\.1|mimalloc [23]\b|1\.00"
    r"|PHP before 8\.5"
)

Row = dict[str, str]
Figures = Callable[[], dict[str, str]]


@cache
def text(page: str) -> str:
    return (ROOT / page).read_text()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


@cache
def rows(page: str) -> dict[str, Row]:
    """Of all tables of a page, each row by its first cell."""
    found: dict[str, Row] = {}
    head: list[str] = []
    for line in text(page).splitlines():
        if not line.startswith("| "):
            head = head if line.startswith("|") else []
        elif not head:
            head = cells(line)
        else:
            found.setdefault(cells(line)[0], dict(zip(head, cells(line), strict=False)))
    return found


def number(cell: str) -> str:
    """Without emphasis, marks, interval and note."""
    return re.sub(r"[*_\\▼▲≈]", "", cell).split("(")[0].strip()


def baseline(row: str, column: str) -> str:
    return number(rows(BASELINE)[row][column])


def named(pattern: str, page: str = BASELINE) -> str:
    """The group of the pattern in a page, wherever its lines break."""
    found = re.search(pattern.replace(" ", r"\s+"), text(page), re.MULTILINE)
    if found is None:
        sys.exit(f"{page}: {pattern!r} is not there any more")
    return found[1]


def means(row: str) -> str:
    return " | ".join(
        f"**{baseline(row, column)}**" if column == "hakmem" else baseline(row, column)
        for column in PEERS.values()
    )


def table() -> list[str]:
    return [
        f"| time, {baseline(TIME, 'rows')} workloads | {means(TIME)} |",
        f"| peak memory, {baseline(PEAK, 'rows')} workloads | {means(PEAK)} |",
    ]


def best_of(row: str) -> tuple[str, str]:
    """The mean of the best single allocator but hakmem, and its name."""
    peers = {name: baseline(row, column) for name, column in PEERS.items() if column != "hakmem"}
    name = min(peers, key=lambda peer: float(peers[peer]))
    return peers[name], name


def only_glibc_is_leaner() -> dict[str, str]:
    for row, better in ((TIME, set()), (PEAK, {"glibc 2.36"})):
        ours = float(baseline(row, "hakmem"))
        ahead = {name for name, column in PEERS.items() if float(baseline(row, column)) < ours}
        if ahead != better:
            sys.exit(f"README.md names other leaders than {BASELINE}: {row}: {sorted(ahead)}")
    return {"times": f"{float(baseline(TIME, 'glibc')) / float(baseline(TIME, 'hakmem')):.1f}"}


def real_programs() -> dict[str, str]:
    time, peak = "Real programs, time", "Real programs, peak memory"
    lean, leanest = best_of(peak)
    return {
        "time": baseline(time, "hakmem"),
        "peak": baseline(peak, "hakmem"),
        "lean": lean,
        "leanest": leanest,
        "to_glibc": baseline(time, "to glibc"),
        "peak_to_glibc": baseline(peak, "to glibc"),
    }


def survivors() -> dict[str, str]:
    goal = "{}, 90% of 128 MiB freed at random: resident over live at once (left-0s)"
    return {
        "medium": baseline(goal.format("1 to 8 KiB"), "now"),
        "small": baseline(goal.format("16 B to 1 KiB"), "now"),
    }


def kept_beside() -> dict[str, str]:
    limit = r"at most 1/{} more than was ever in use at once, or {} MiB more"
    part = named(limit.format(r"(\d+)", r"\d+"), DESIGN)
    return {
        "percent": f"{100 / int(part):.0f}",
        "least": named(limit.format(r"\d+", r"(\d+)"), DESIGN),
        "learned": named(r"a quarter of the most that was in use, or (\d+) MiB", DESIGN),
    }


CLAIMS: dict[str, Figures] = {
    "Over all workloads no other allocator is faster than hakmem; only glibc uses less memory, "
    "and takes {times} times as long": only_glibc_is_leaner,
    "hakmem takes {time} times as long as the fastest other allocator and uses {peak} times the "
    "memory of the leanest ({leanest}: {lean} times). Compared with glibc it takes "
    "{to_glibc} times as long and uses {peak_to_glibc} times the memory": real_programs,
    "threads that pass blocks to other threads: {time} times the time of the fastest other "
    "allocator and {peak} times the memory of the leanest": lambda: {
        "time": baseline("Across threads, time", "hakmem"),
        "peak": baseline("Across threads, peak memory", "hakmem"),
    },
    "{rounds} rounds of each workload on two cores": lambda: {
        "rounds": named(r"`hakmem bench --full --rounds (\d+)` of commit")
    },
    "When 90% of 128 MiB are freed at random, resident memory falls to {medium} times what is live "
    "for blocks of 1 to 8 KiB, and to {small} times for 16 to 1,024 bytes": survivors,
    "a thread that sleeps keeps its cached blocks ({cached} KiB each in the benchmark of 256 "
    "threads, {glibc} with glibc); with the option `extra_calls` it keeps {least} KiB": lambda: {
        "cached": named(r"`sleepers-256` (\d+) KiB a thread, \d+ with glibc"),
        "glibc": named(r"`sleepers-256` \d+ KiB a thread, (\d+) with glibc"),
        "least": named(r"with `extra_calls` (\d+)\)"),
    },
    "A double free of a block of up to {sealed} KiB is found later": lambda: {
        "sealed": named(r"into the second 8 bytes of each block of up to (\d+) KiB", MISUSE)
    },
    "together at most {percent}% more than the most that was ever in use, or in a small heap "
    "{least} MiB more; and up to a quarter or {learned} MiB more": kept_beside,
    "{programs} real programs": lambda: {"programs": named(r"(\d+) of \1 programs", PROGRAMS)},
    "and {same} of {all} in a hardened heap": lambda: {
        "same": named(r"\*\*(\d+) of \d+ programs gave the same results", HARDENED),
        "all": named(r"\*\*\d+ of (\d+) programs gave the same results", HARDENED),
    },
    "{all} workloads, from single calls": lambda: {
        "all": named(r"(\d+) rows, \d+ allocators, [\d,]+ runs")
    },
}


def main() -> int:
    readme = re.sub(r"\s+", " ", text("README.md"))
    wrong = [line for line in table() if line not in readme]
    for template, figures in CLAIMS.items():
        sentence = template.format(**figures())
        if sentence in readme:
            readme = readme.replace(sentence, " ")
        else:
            wrong.append(sentence)
    for line in wrong:
        print(f"README.md should say: {line}")
    for line in table():
        readme = readme.replace(line, " ")
    unknown = unclaimed(readme)
    for figure in unknown:
        print(f"no page is known for this figure of README.md: {figure}")
    claims = len(CLAIMS) + len(table())
    print(f"{claims} claims, {len(wrong)} wrong; {len(unknown)} figures without a page")
    return 1 if wrong or unknown else 0


def unclaimed(readme: str) -> list[str]:
    """Figures that are left, each with what stands around it."""
    prose = re.sub(r"```.*?```|<!--.*?-->|\]\([^)]*\)|`[^`]*`", " ", readme)
    prose = NAMES.sub(" ", prose)
    return [match[0] for match in re.finditer(r"[^.;|]{0,30}\d[\d,.]*[^.;|]{0,20}", prose)]


if __name__ == "__main__":
    sys.exit(main())
