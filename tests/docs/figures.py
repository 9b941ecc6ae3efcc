#!/usr/bin/env python3
"""Compares each figure of README.md with the page that it comes from.

A claim is a sentence of the README with names in the place of its figures, and where each figure
stands: a pattern in a page. A figure of the README that no claim covers, and
that is no name (Debian 12, x86-64), is an error too. The tables of the benchmarks are made by
yardstick/tools/baseline.py, and yardstick/tests/test_baseline.py compares them.

Exit status: 0 all agree, 1 some do not; what the README should say is printed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = "docs/programs.md"
GROWING = "docs/guide/growing-service.md"
SERVERS = "docs/guide/servers.md"
MADE = re.compile(r"<!-- benchmarks: .*?<!-- end of the benchmarks -->")
# Numbers that are names, or counts of what stands beside them.
NAMES = re.compile(
    r"Debian 12|x86-64|AArch64|32-bit|mimalloc 2\b|1\.00|PHP before 8\.5|version 0\.1\.0"
    r"|100 MB on a bare Debian"  # which tools/setup says before it begins
)

Figures = Callable[[], dict[str, str]]


@cache
def text(page: str) -> str:
    return (ROOT / page).read_text()


def named(pattern: str, page: str) -> str:
    """The group of the pattern in a page, wherever its lines break."""
    found = re.search(pattern.replace(" ", r"\s+"), text(page), re.MULTILINE)
    if found is None:
        sys.exit(f"{page}: {pattern!r} is not there any more")
    return found[1]


def later_run() -> dict[str, str]:
    row = r"^\| c6b5fc6 \| Xeon, \d+ \| "
    return {
        "time": named(row + r"([\d.]+) \|", "docs/performance.md"),
        "peak": named(row + r"[\d.]+ \| ([\d.]+) \|", "docs/performance.md"),
    }


CLAIMS: dict[str, Figures] = {
    "had {time} of the best time and {peak} of the best peak memory over all workloads": later_run,
    "has {left} of {full} MiB left](docs/guide/growing-service.md#5-give-memory-back-now) "
    "({jemalloc} with jemalloc)": lambda: {
        "left": named(r"^a second after them +(\d+) MiB", GROWING),
        "full": named(r"^before the frees +(\d+) MiB", GROWING),
        "jemalloc": named(r"and jemalloc 5\.3 (\d+) MiB \(Debian 12", GROWING),
    },
    "redis [{left} of {all} MB]": lambda: {
        "left": named(r"of \d+ MB with [\d,]+ keys, (\d+) MB were left", SERVERS),
        "all": named(r"of (\d+) MB with [\d,]+ keys, \d+ MB were left", SERVERS),
    },
    "{programs} of {programs} [real programs]": lambda: {
        "programs": named(r"(\d+) of \1 programs", PROGRAMS)
    },
}


def main() -> int:
    readme = MADE.sub(" ", re.sub(r"\s+", " ", text("README.md")))
    wrong = []
    for template, figures in CLAIMS.items():
        sentence = template.format(**figures())
        if sentence in readme:
            readme = readme.replace(sentence, " ")
        else:
            wrong.append(sentence)
    for line in wrong:
        print(f"README.md should say: {line}")
    unknown = unclaimed(readme)
    for figure in unknown:
        print(f"no page is known for this figure of README.md: {figure}")
    print(f"{len(CLAIMS)} claims, {len(wrong)} wrong; {len(unknown)} figures without a page")
    return 1 if wrong or unknown else 0


def unclaimed(readme: str) -> list[str]:
    """Figures that are left, each with what stands around it."""
    prose = re.sub(r"```.*?```|<!--.*?-->|\]\([^)]*\)|`[^`]*`", " ", readme)
    prose = NAMES.sub(" ", prose)
    return [match[0] for match in re.finditer(r"[^.;|]{0,30}\d[\d,.]*[^.;|]{0,20}", prose)]


if __name__ == "__main__":
    sys.exit(main())
