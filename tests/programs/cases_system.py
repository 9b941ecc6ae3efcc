"""Programs made to strain the system's memory."""

from __future__ import annotations

import re

from tests.programs.harness import Case, Failure, Run, nothing

# The greatest block, and how many are held.
SMALL = ("--malloc-bytes", "4K", "--malloc-max", "20000")
LARGE = ("--malloc-bytes", "512K", "--malloc-max", "400", "--malloc-thresh", "64K")
# Not --brk: it reads below the break that it finds, where only a malloc that uses brk has pages.
STRESSORS = {
    "malloc": ("--malloc", "2", *SMALL, "--malloc-ops", "2000000"),
    "threads": ("--malloc", "1", "--malloc-pthreads", "3", *LARGE, "--malloc-ops", "60000"),
    "touch": ("--malloc", "1", "--malloc-touch", *LARGE, "--malloc-ops", "10000"),
    "bigheap": ("--bigheap", "1", "--bigheap-growth", "1M", "--bigheap-ops", "50"),
    "vm": ("--vm", "2", "--vm-bytes", "64M", "--vm-ops", "20000"),
    "stream": ("--stream", "1", "--stream-ops", "1"),
    "trees": ("--tree", "1", "--tree-ops", "2", "--tree-size", "50000"),
    "sort": ("--qsort", "1", "--qsort-ops", "8", "--mergesort", "1", "--mergesort-ops", "8"),
    "search": ("--hsearch", "1", "--hsearch-ops", "6", "--tsearch", "1", "--tsearch-ops", "6"),
    "lists": ("--list", "1", "--list-ops", "30", "--skiplist", "1", "--skiplist-ops", "20"),
    "fork": ("--fork", "1", "--fork-ops", "400"),
}  # fmt: skip


def stress_ng(run: Run) -> None:
    """Each stressor checks its own memory; a failed check or a lost worker is an exit status."""
    place = ("--temp-path", str(run.scratch), "--oomable", "--no-rand-seed", "--verify", "-v")
    for name, words in STRESSORS.items():
        text = run.step(name, "stress-ng", *place, *words, compared=False)
        text += (max(run.logs.glob(f"*-{name}.stderr"))).read_text()
        if not re.search(r"passed: [1-9]", text) and "successful run completed" not in text:
            raise Failure(f"run '{run.name}', {name}: no stressor said that it passed\n{text}")
        if re.search(r"(failed|skipped|SIGSEGV restarts|SIGBUS restarts): [1-9]", text):
            raise Failure(f"run '{run.name}', {name}: a stressor failed or did not run\n{text}")


CASES = (
    Case(
        "stress-ng", ("stress-ng",), nothing, stress_ng, ("stress-ng", "--version"), group="tools",
        what=f"{len(STRESSORS)} kinds of strain on memory, each with a fixed number of operations",
        note="each stressor's own check of its memory",
    ),
)  # fmt: skip
