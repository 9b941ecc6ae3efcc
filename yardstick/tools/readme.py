"""The part of README.md that is made from the published run; baseline.py writes it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

from hakmem_yardstick.content import Content, Means
from hakmem_yardstick.model import Allocator
from hakmem_yardstick.words import decimals, mean_text, ratio_text

README = Path(__file__).resolve().parents[2] / "README.md"
BEGIN = "<!-- benchmarks: made by yardstick/tools/baseline.py -->"
END = "<!-- end of the benchmarks -->"

# The summary's lines that are shown, in this order, and what they are called here.
LINES = {
    ("Real programs", "time"): "real programs: time",
    ("Real programs", "peak"): "real programs: peak memory",
    ("Real programs", "flushed"): "redis: memory one second after `FLUSHALL`",
    ("Seed set", "time"): "small loops of `malloc` and `free`: time",
    ("Seed set", "peak"): "small loops of `malloc` and `free`: peak memory",
    ("Micro", "time"): "single functions: time",
    ("Across threads", "time"): "blocks passed between threads: time",
    ("Stress", "time"): "bursts, streams, threads that end: time",
    ("Memory", "time"): "large heaps: time",
    ("Memory", "free"): "large heaps: freeing 90% at random, time",
    ("all rows", "time"): "all workloads: time",
    ("all rows", "peak"): "all workloads: peak memory",
}
NAMES = {
    "jemalloc-new": "jemalloc",
    "mimalloc2": "mimalloc",
    "mimalloc3": "mimalloc",
    "tcmalloc": "gperftools' tcmalloc",
    "tcmalloc-google": "Google's tcmalloc",
}
# The worst workloads: of each of these one, if hakmem needs at least WORST times the best.
WORST = 9.0
WHAT = {
    "free": "freeing 90% of a large heap",
    "first-malloc": "the first `malloc` of a new thread",
    "thread-0s": "memory of sleeping threads",
    "thread-2s": "memory of sleeping threads after 2 s",
    "resident-end": "memory when the last block was freed",
    "time": "time",
    "flushed": "redis' memory one second after `FLUSHALL`",
    "peak": "peak memory",
    "start": "memory of a minimal program",
    "fork-faults": "page faults of `fork`",
    "counts": "instructions",
}


def readme(content: Content, picture: str) -> str:
    """All of README.md, with its part made anew."""
    before, rest = README.read_text().split(BEGIN)
    after = rest.split(END)[1]
    made = "\n\n".join((facts(content), means(content), worst(content), picture))
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


def facts(content: Content) -> str:
    settings, machine = content.results.settings, content.results.machine
    return (
        f"Run of {settings['began'][:10]}, commit {settings['commit'][:12]}: "
        f"{len(content.rows)} workloads, up to {content.rounds} rounds, "
        f"{machine['processors']} processors ({machine['processor']}, {machine['c_library']}).\n"
        "In parentheses: 95% confidence interval."
    )


def grid(heads: list[str], lines: Iterable[list[str]], right: int) -> str:
    """The columns after the first `right` are figures."""
    under = ["---"] * right + ["---:"] * (len(heads) - right)
    return "\n".join("| " + " | ".join(line) + " |" for line in (heads, under, *lines))


def means(content: Content) -> str:
    shown = [a for a in content.allocators if a.name in content.means[0].to_best]
    found = {(m.scope, m.measure.name): m for m in content.means}
    heads = ["", "workloads", *(title(a) for a in shown)]
    lines = (_means(text, found[key], shown) for key, text in LINES.items() if key in found)
    table = grid(heads, lines, 1)
    starred = (
        "\n\n\\* without the workloads that failed with this allocator." if "\\*" in table else ""
    )
    return table + starred


def _means(text: str, means: Means, shown: list[Allocator]) -> list[str]:
    values = {a.name: means.to_best[a.name].ratio.value for a in shown if a.name in means.to_best}
    least = min(decimals(value) for value in values.values())

    def cell(name: str) -> str:
        figure = mean_text(means.to_best.get(name))
        if name == "hakmem":
            figure = ratio_text(means.to_best[name].ratio)
        figure = figure.replace("*", "\\*")
        return f"**{figure}**" if name in values and decimals(values[name]) == least else figure

    return [text, str(len(means.rows)), *(cell(a.name) for a in shown)]


def worst(content: Content) -> str:
    """Of each measure where hakmem is furthest from the best other allocator, the worst first."""
    found: dict[str, str] = {}
    for apart in content.losses:
        row, best = apart.line.row, apart.line.to_best
        if best is None or apart.ratio < WORST:
            continue
        what = WHAT["counts" if row.group == "counts" else apart.measure.name]
        if what not in found:
            name = f"[`{row.name}`](yardstick/docs/{row.group}.md)"
            found[what] = f"{what}, {name}: {decimals(best.ratio.value)}"
    lines = textwrap.wrap("; ".join(found.values()) + ".", 120, break_on_hyphens=False)
    return "\n".join(("Where hakmem is worst, to the best other allocator:", *lines))


def title(allocator: Allocator) -> str:
    """Its name with its version."""
    if allocator.name == "hakmem":
        return "hakmem"
    name = NAMES.get(allocator.name, allocator.name)
    return f"{name} {re.sub('[+].*', '', allocator.version)}"
