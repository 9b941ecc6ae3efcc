"""Programs made to strain the system's memory."""

from __future__ import annotations

import re
from pathlib import Path

from tests.programs.harness import Case, Failure, Run

STRESSORS = {
    "malloc": ("--malloc", "2", "--malloc-bytes", "256M", "--malloc-ops", "400000"),
    "threads": (
        "--malloc", "1", "--malloc-pthreads", "3", "--malloc-bytes", "128M", "--malloc-thresh",
        "64K", "--malloc-ops", "300000",
    ),
    "touch": ("--malloc", "1", "--malloc-touch", "--malloc-bytes", "256M", "--malloc-ops", "60000"),
    "bigheap": ("--bigheap", "1", "--bigheap-growth", "1M", "--bigheap-ops", "2000"),
    "brk": ("--brk", "1", "--brk-ops", "300000"),
    "vm": ("--vm", "2", "--vm-bytes", "64M", "--vm-ops", "20000"),
    "stream": ("--stream", "1", "--stream-ops", "20"),
    "trees": ("--tree", "1", "--tree-ops", "4", "--tree-size", "50000"),
    "sort": ("--qsort", "1", "--qsort-ops", "4", "--mergesort", "1", "--mergesort-ops", "4"),
    "search": ("--hsearch", "1", "--hsearch-ops", "40", "--tsearch", "1", "--tsearch-ops", "40"),
    "lists": ("--list", "1", "--list-ops", "60", "--skiplist", "1", "--skiplist-ops", "20"),
    "fork": ("--fork", "1", "--fork-ops", "1500", "--vforkmany", "1", "--vforkmany-ops", "500"),
}  # fmt: skip


def nothing(folder: Path) -> None:
    """For programs that need no input."""


def stress_ng(run: Run) -> None:
    """Each stressor checks its own memory; a failed check or a lost worker is an exit status."""
    place = ("--temp-path", str(run.scratch), "--oomable", "--no-rand-seed", "--verify")
    for name, words in STRESSORS.items():
        text = run.step(name, "stress-ng", *place, *words, compared=False)
        text += (max(run.logs.glob(f"*-{name}.stderr"))).read_text()
        if not re.search(r"passed: [1-9]", text) and "successful run completed" not in text:
            raise Failure(f"run '{run.name}', {name}: no stressor said that it passed\n{text}")
        if re.search(r"(failed|skipped): [1-9]", text):
            raise Failure(f"run '{run.name}', {name}: a stressor failed or did not run\n{text}")


CASES = (
    Case(
        "stress-ng", ("stress-ng",), nothing, stress_ng, ("stress-ng", "--version"), ("stress-ng",),
        packages=("stress-ng",), group="tools",
        what=f"{len(STRESSORS)} kinds of strain on memory, each with a fixed number of operations",
        note="each stressor's own check of its memory",
    ),
)  # fmt: skip
