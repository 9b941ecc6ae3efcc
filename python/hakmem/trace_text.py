"""What a process did with its memory, as text and as tables of a page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hakmem import profile_text
from hakmem.events import Process
from hakmem.profile_html import Section
from hakmem.profile_text import printable, size
from hakmem.symbols import Named, Stack
from hakmem.traced import Traced, lifetimes_of

MARKS = 100
FLOWS = 10
_NUMBERED = re.compile(r"[-_.:#/ ]*[0-9]+$")  # the end of a thread's name
PROCESSES = 30
COMMAND = 60  # letters


def head(traced: Traced) -> Iterator[str]:
    """Some lines on the whole."""
    calls, held, time = traced.calls, traced.blocks, traced.seconds
    if traced.begin is not None:
        begin, end = bounds([traced])
        time = end - begin
        yield from _begins([traced])
    rate = f" ({calls / time / 1e6:.1f} M/s)" if time else ""
    threads = f"{traced.threads} thread{'s' if traced.threads != 1 else ''}"
    total = float(traced.size)
    yield f"{calls:,} calls in {time:.2f} s{rate} by {threads}"
    yield f"allocated {size(total)} in {held:,} blocks, {size(total / max(held, 1))} each"
    yield (
        f"peak {size(traced.peak)} in {traced.peak_blocks:,} blocks, after {traced.peak_at:.2f} s;"
        f" in use at the end {size(traced.left)} in {traced.left_blocks:,} blocks"
    )
    crossed = sum(flow.blocks for flow in traced.flows)
    brief = f"temporary {_part(traced.temporary, held)} of the blocks"
    yield (
        f"{brief} (the thread's next call freed them);"
        f" freed by another thread {_part(crossed, held)}"
    )
    yield from _unknown([traced])


def heads(every: Sequence[Traced]) -> Iterator[str]:
    """Likewise of some processes."""
    if len(every) == 1:
        yield from head(every[0])
        return
    held = sum(one.blocks for one in every)
    total = float(sum(one.size for one in every))
    seconds = max(one.ended for one in every)
    each = "each process"
    if every[0].begin is not None:
        begin, end = bounds(every)
        seconds = end - begin
        each += " or of the part"
        yield from _begins(every)
    threads = sum(one.threads for one in every)
    yield (
        f"{len(every):,} processes in {seconds:.2f} s: {sum(one.calls for one in every):,} calls by"
        f" {threads:,} threads"
    )
    yield f"allocated {size(total)} in {held:,} blocks, {size(total / max(held, 1))} each"
    yield (
        f"in use at the end of {each} {size(sum(one.left for one in every))} in"
        f" {sum(one.left_blocks for one in every):,} blocks; the sum of their peaks"
        f" {size(sum(one.peak for one in every))}"
    )
    crossed = sum(flow.blocks for one in every for flow in one.flows)
    brief = f"temporary {_part(sum(one.temporary for one in every), held)} of the blocks"
    yield (
        f"{brief} (the thread's next call freed them);"
        f" freed by another thread {_part(crossed, held)}"
    )
    yield from _unknown(every)


def bounds(every: Sequence[Traced]) -> tuple[float, float]:
    """Of a part of a recording: seconds since that began."""
    return min(one.curve[0][0] for one in every), max(one.curve[-1][0] for one in every)


def _begins(every: Sequence[Traced]) -> Iterator[str]:
    begin, end = bounds(every)
    begins = [one.begin for one in every if one.begin is not None]
    held, blocks = sum(one.size for one in begins), sum(one.blocks for one in begins)
    yield (
        f"the part from {begin:.3f} s to {end:.3f} s of the recording; in use at its begin"
        f" {size(held)} in {blocks:,} blocks"
    )


def _unknown(every: Sequence[Traced]) -> Iterator[str]:
    unknown = sum(one.unknown_frees for one in every)
    if unknown:
        parents = " or of a parent process" if len(every) > 1 else ""
        yield f"{unknown:,} frees of blocks from before the recording{parents}"


def processes(every: Sequence[Traced]) -> Section:
    """A row for each of the largest, and the sum of all."""
    order = sorted(every, key=lambda one: -one.size)
    shown = sorted(order[:PROCESSES], key=lambda one: one.process.since)
    rows = [
        (str(one.process.facts["pid"]), f"{one.process.since:.2f}", f"{one.ended:.2f}",
         *_figures([one]), _command(one))
        for one in shown
    ]  # fmt: skip
    if len(order) > PROCESSES:
        rest = order[PROCESSES:]
        rows.append(("", "", "", *_figures(rest), f"({len(rest):,} smaller processes)"))
    rows.append(("", "", "", *_figures(every), "(all)"))
    columns = ("PID", "from s", "to s", "calls", "allocated", "blocks", "peak", "in use", "blocks")
    end = "the process" if every[0].begin is None else "the process or of the part"
    note = f"'in use' is what was in use at the end of {end}; peaks are at different times."
    return Section("Processes", note, (*columns, "command"), tuple(rows))


def _figures(every: Sequence[Traced]) -> tuple[str, ...]:
    calls, blocks, left_blocks = (
        f"{sum(figures):,}"
        for figures in zip(
            *((one.calls, one.blocks, one.left_blocks) for one in every), strict=True
        )
    )
    allocated, peak, left = (
        size(sum(figures))
        for figures in zip(*((one.size, one.peak, one.left) for one in every), strict=True)
    )
    return calls, allocated, blocks, peak, left, left_blocks


def _command(one: Traced) -> str:
    words = [one.process.name, *one.process.facts["command"][1:]]
    command = " ".join(words)
    return command if len(command) <= COMMAND else command[: COMMAND - 1] + "…"


def notes(traced: Traced) -> Iterator[str]:
    """What the user should know before the figures are believed."""
    done = traced.process.done
    if done is None:
        yield "the recording was cut off: what came later is missing"
    elif done.get("gave_up"):
        yield "the process gave up, as 'hakmem record' did not answer: what came later is missing"
    elif done["lost"]:
        yield f"{done['lost']} calls are missing: they could not be written in time"
    yield from traced.process.notes
    if traced.unclear:
        yield (f"of {traced.unclear} blocks the free is missing, or its order can't be told")


def lifetimes(every: Sequence[Traced]) -> Section:
    rows = []
    least = 0
    for one in lifetimes_of(every):
        bound = f"{size(least)} and more" if one.most > 2**40 else f"up to {size(one.most)}"
        least = one.most
        rows.append(
            (
                bound,
                f"{one.blocks:,}",
                size(one.size),
                *map(_time, (one.median, one.p90, one.longest)),
            )
        )
    columns = ("size", "blocks", "bytes", "median", "90%", "longest")
    return Section("Lifetimes", "Of blocks that were freed.", columns, tuple(rows))


def marks(every: Sequence[Traced]) -> Section:
    found = sorted(
        ((*mark, one.process) for one in every for mark in one.marks), key=lambda one: one[:3]
    )
    rows = tuple(
        (f"{when:.3f} s", size(bytes_), f"{of.facts['pid']}", name)
        for when, bytes_, name, of in found[:MARKS]
    )
    note = "What was in use when the program, or 'hakmem mark', said so."
    if len(found) > len(rows):
        note += f" {len(found) - len(rows)} more are not shown."
    return Section("Marks", note, ("when", "in use", "process", "mark"), rows)


def flows(every: Sequence[Traced], each: bool = False) -> Section:
    """Threads of one name are one row, unless each is to have its own."""
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for one in every:
        for flow in one.flows:
            giver, taker = (_thread(one.process, who, each) for who in (flow.giver, flow.taker))
            blocks, bytes_ = sums.get((giver, taker), (0, 0))
            sums[giver, taker] = blocks + flow.blocks, bytes_ + flow.size
    found = sorted(sums.items(), key=lambda one: -one[1][1])
    rows = tuple(
        (giver, taker, f"{blocks:,}", size(bytes_))
        for (giver, taker), (blocks, bytes_) in found[:FLOWS]
    )
    left = len(found) - len(rows)
    note = "Blocks that one thread allocated and another freed."
    if not each and any(one.process.names for one in every):
        note += " Threads whose names differ in a number at the end are one (--threads: each)."
    if left > 0:
        note += f" {left} smaller flows are not shown."
    return Section("Flows between threads", note, ("allocated", "freed", "blocks", "bytes"), rows)


def _thread(process: Process, number: int, each: bool) -> str:
    name = process.names.get(str(number), "")
    if each or not name:
        return f"{name} {number}".strip()
    return _NUMBERED.sub("", name) or name


def sites(title: str, note: str, named: Named, at: int, most: int) -> Section:
    """A row for each of the largest, without the sum of small ones; `at` is the place of the blocks
    in the figures."""
    total = named.sums[at + 1] or 1  # bytes of blocks of none are none
    paths = [one for one in named.stacks if not one.frames or one.frames[0].address]
    stacks = sorted(paths, key=lambda one: -one.figures[at + 1])[:most]
    rows = tuple(
        (
            size(one.figures[at + 1]),
            f"{100 * one.figures[at + 1] / total:.1f}",
            f"{one.figures[at]:,.0f}",
            _where(one),
        )
        for one in stacks
        if one.figures[at]
    )
    return Section(title, note, ("bytes", "%", "blocks", "call path, innermost first"), rows)


def plain(section: Section) -> Iterator[str]:
    """As a table of a terminal."""
    yield section.title.lower() + (f": {section.note}" if section.note else "")
    if not section.rows:
        return
    table = (section.head, *section.rows)
    widths = [max(len(row[i]) for row in table) for i in range(len(section.head) - 1)]
    for row in table:
        cells = [f"{cell:>{width}}" for cell, width in zip(row[:-1], widths, strict=True)]
        yield printable("  ".join(["", *cells, row[-1]]))


def _where(stack: Stack) -> str:
    lines = profile_text.innermost(stack.row())
    return " < ".join(lines) if lines else "(no stack)"


def _part(some: int, of: int) -> str:
    return f"{100 * some / of:.1f}%" if of else "0%"


def _time(ns: float) -> str:
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= unit:
            return f"{ns / unit:.1f} {name}"
    return f"{ns:.0f} ns"
