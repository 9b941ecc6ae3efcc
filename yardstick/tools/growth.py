#!/usr/bin/env python3
"""Measures how cost grows with the work: with the live heap, with threads, with the size of blocks
and with age; and draws docs/img/growth.svg from it.

Usage: yardstick/tools/growth.py [--rounds N] [--most-heap-mib N] [--most-age N] [FILE]; an hour in
full. FILE, yardstick/docs/growth.json by default, holds each run; where it is there already, only
the picture and the table of docs/performance.md are made from it. Runs are interleaved; medians are
shown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "yardstick/python"))

import altair as alt

from hakmem_yardstick.allocators import environment, pick
from hakmem_yardstick.curves import labels
from hakmem_yardstick.drawing import colour, dash, inline, plot
from hakmem_yardstick.measure import measure
from hakmem_yardstick.model import OURS, Allocator, Kind
from hakmem_yardstick.units import of_bytes

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
FILE = ROOT / "yardstick/docs/growth.json"
PICTURE = ROOT / "docs/img/growth.svg"
PAGE = ROOT / "docs/performance.md"
ALT = "Cost over heap, threads, size and age"
BEGIN, END = "<!-- growth -->", "<!-- end of growth -->"

PEERS = ["glibc", "mimalloc3", "jemalloc", "tcmalloc", "rpmalloc"]
MEAN_BLOCK = 520  # of 16 to 1024 bytes
SIZES = {
    "8": 8, "64": 64, "512": 512, "4k": 4 << 10, "16k": 16 << 10, "32k": 32 << 10,
    "64k": 64 << 10, "256k": 256 << 10, "1m": 1 << 20, "2m": 2 << 20, "8m": 8 << 20,
    "32m": 32 << 20, "64m": 64 << 20,
}  # fmt: skip
THREADS = (1, 2, 4, 8, 16, 32, 64)
CALLS_OF_A_TURN = 20  # of age-mix

Figure = Callable[[dict[str, Any]], float]


def time(record: dict[str, Any]) -> float:
    return float(record["ns_per_op"])


@dataclass(frozen=True)
class Panel:
    """A line for each allocator."""

    title: str
    x: str
    y: str
    runs: str  # the sweep that it shows
    figure: Figure
    from_zero: bool = True


@dataclass(frozen=True)
class Sweep:
    name: str
    points: Sequence[tuple[float, list[str]]]
    """Where on the axis, and the suite's arguments."""


def sweeps(most_heap: int, most_age: int) -> list[Sweep]:
    heaps = [mib for mib in (1, 8, 64, 512, 2048, 8192) if mib <= most_heap]
    ages = [n for n in (10**7, 10**8, 10**9) if n <= most_age]
    return [
        Sweep(
            "heap",
            [
                (mib, ["replace-8192", "--iterations", "5000000", "--slots", _slots(mib)])
                for mib in heaps
            ],
        ),
        Sweep("local", [(n, [f"local-{n}t"]) for n in THREADS]),
        Sweep("remote", [(n, [f"remote-{n}t"]) for n in THREADS]),
        Sweep("size", [(size, [f"pair-{name}", "--scale", "0.2"]) for name, size in SIZES.items()]),
        Sweep("age", [(n, ["age-mix", "--iterations", str(n // CALLS_OF_A_TURN)]) for n in ages]),
    ]


def _slots(mib: float) -> str:
    return str(round(mib * 1024 * 1024 / MEAN_BLOCK))


def held(record: dict[str, Any]) -> float:
    """Resident memory over what is live."""
    live = record["parameters"]["slots"] * MEAN_BLOCK
    return float((record["peak_rss_kib"] - record["rss_start_kib"]) * 1024 / live)


PANELS = (
    Panel("A larger heap: time", "MiB live", "ns a call", "heap", time),
    Panel("A larger heap: memory", "MiB live", "resident to live", "heap", held),
    Panel("More threads, own blocks", "threads", "ns a call", "local", time),
    Panel("More threads, their neighbours' blocks", "threads", "ns a call", "remote", time),
    Panel("Larger blocks", "bytes", "ns a call", "size", time, from_zero=False),
    Panel("Age: time", "calls", "ns a call", "age", time),
    Panel(
        "Age: memory", "calls", "resident to live", "age",
        lambda record: float(record["figures"]["old-ratio"]["value"]),
    ),
    Panel(
        "More threads: memory", "threads", "MiB at the peak", "remote",
        lambda record: float(record["peak_rss_kib"]) / 1024,
    ),
)  # fmt: skip


AXES: dict[str, tuple[str, Callable[[float], str]]] = {
    "MiB live": ("live heap", lambda mib: of_bytes(mib * (1 << 20))),
    "threads": ("threads", lambda count: f"{count:g}"),
    "bytes": ("block size", of_bytes),
    "calls": (
        "calls",
        lambda count: f"{count / 1e6:g} million" if count < 1e9 else f"{count / 1e9:g} billion",
    ),
}


def run(allocators: list[Allocator], wanted: list[Sweep], rounds: int) -> Iterator[dict[str, Any]]:
    """Each run with its allocator, sweep and place; what failed has no record."""
    for number in range(rounds):
        for sweep in wanted:
            for x, arguments in sweep.points:
                for allocator in (*allocators[number:], *allocators[:number]):
                    command = [str(BUILD / "bench/suite"), *arguments]
                    done = measure(command, environment(allocator), timeout=600)
                    record = json.loads(done.stdout) if done.outcome == "ok" else None
                    if record is not None:
                        del record["allocator"]  # where it lay is nobody's business
                    print(sweep.name, x, allocator.name, done.outcome, round(done.seconds, 1))
                    yield {
                        "round": number,
                        "allocator": allocator.name,
                        "sweep": sweep.name,
                        "x": x,
                        "outcome": done.outcome,
                        "record": record,
                    }


def points(runs: list[dict[str, Any]], panel: Panel) -> list[dict[str, Any]]:
    found: dict[tuple[str, float], list[float]] = {}
    for each in runs:
        if each["sweep"] == panel.runs and each["record"] is not None:
            key = (each["allocator"], each["x"])
            found.setdefault(key, []).append(panel.figure(each["record"]))
    return [
        {"allocator": name, "x": x, "y": round(statistics.median(values), 3)}
        for (name, x), values in found.items()
    ]


def chart(runs: list[dict[str, Any]], panel: Panel, allocators: list[Allocator]) -> alt.LayerChart:
    y = alt.Scale() if panel.from_zero else alt.Scale(type="log")
    base = alt.Chart(inline(points(runs, panel))).encode(
        x=alt.X("x:Q", scale=alt.Scale(type="log"), axis=_axis(runs, panel)),
        y=alt.Y("y:Q", scale=y, axis=alt.Axis(title=panel.y, tickCount=5, minExtent=36)),
        color=colour(allocators, symbol="stroke"),
        strokeDash=dash(allocators),
    )
    own = alt.datum.allocator == OURS
    lines = [
        base.transform_filter(which).mark_line(strokeWidth=wide, opacity=0.95)
        for wide, which in ((1.7, ~own), (3.2, own))
    ]
    title = alt.Title(panel.title, fontSize=13, offset=8)
    return alt.LayerChart(layer=lines, width=370, height=190, title=title)


def _axis(runs: list[dict[str, Any]], panel: Panel) -> alt.Axis:
    values = sorted({each["x"] for each in runs if each["sweep"] == panel.runs})
    title, text = AXES[panel.x]
    texts = labels({value: text(value) for value in values})
    return alt.Axis(title=title, grid=False, values=values, labelOverlap=True, labelExpr=texts)


def draw(runs: list[dict[str, Any]], names: list[str]) -> None:
    allocators = [Allocator(name, Kind.OURS if name == OURS else Kind.PEER) for name in names]
    charts = [chart(runs, panel, allocators) for panel in PANELS]
    title = alt.Title(
        "Cost as the work grows", subtitle=["Medians of interleaved runs; smaller is better."]
    )
    joined = alt.concat(*charts, columns=2, title=title).resolve_scale(
        x="independent", y="independent"
    )
    PICTURE.write_text(plot("growth", "Cost as the work grows", joined, allocators).svg())


def table(runs: list[dict[str, Any]]) -> str:
    """hakmem's own figures, from the least to the most of each."""
    lines = []
    for panel in PANELS:
        own = sorted((p["x"], p["y"]) for p in points(runs, panel) if p["allocator"] == OURS)
        if own:
            figures = ", ".join(f"{x:,.0f}: {y:.3g}" for x, y in own)
            lines.append(f"| {panel.title} | {panel.x} | {panel.y} | {figures} |")
    return "\n".join(["| what grows | at | figure | hakmem |", "|---|---|---|---|", *lines])


def publish(runs: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(each["allocator"] for each in runs))
    draw(runs, names)
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(
        f"{before}{BEGIN}\n{table(runs)}\n\n![{ALT}](img/growth.svg)\n{END}{rest.split(END)[1]}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=FILE)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most-heap-mib", type=int, default=8192)
    parser.add_argument("--most-age", type=int, default=10**9)
    arguments = parser.parse_args()
    if not arguments.file.exists():
        allocators, missing = pick(BUILD, [], [OURS, *PEERS])
        for one in missing:
            print(f"left out: {one}")
        wanted = sweeps(arguments.most_heap_mib, arguments.most_age)
        with arguments.file.open("w") as file:  # what is done is kept, should it be interrupted
            for each in run(allocators, wanted, arguments.rounds):
                file.write(f"{json.dumps(each)}\n")
                file.flush()
    publish([json.loads(line) for line in arguments.file.read_text().splitlines()])


if __name__ == "__main__":
    main()
