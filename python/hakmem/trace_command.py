"""`hakmem trace`: what a recorded program did with its memory."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hakmem import (
    events,
    heaptrack,
    pprof,
    profile_text,
    symbols,
    trace_page,
    trace_text,
    traced,
)
from hakmem.arguments import WrongUse, number
from hakmem.events import Process, calls_of
from hakmem.heap_profile import Profile
from hakmem.modules import NoModule, need, needed
from hakmem.outputs import CannotWrite, Writer, WrongName, outputs, write
from hakmem.profile_html import Section
from hakmem.profile_text import KINDS, printable, size
from hakmem.recording import NoRecording
from hakmem.symbols import Located, Named
from hakmem.traced import Span, Traced
from hakmem.wrappers import Wrappers

HELP = "show what a recorded program did with its memory"
DESCRIPTION = HELP[0].upper() + HELP[1:] + "."
EPILOG = """\
FILE is what 'hakmem record' wrote. It has every call, so the figures are exact, except for the
lifetimes that half and 90% of the blocks stay below, which are within 0.4%. If several processes
were recorded, this shows the one with most calls, and lists the others; --process chooses another.

Printed are: the peak and the call paths that held it; temporary blocks, which the next call of
their thread freed; what grew in the second half of the time; how long blocks of each size lived;
and which threads freed the blocks of others.

--at shows what was in use at a moment, --between what was allocated from one moment to another, and
what of that was in use at the second one. All times, those on the page too, are in seconds since
the recording began: also those of a process that was started later. Both options may be repeated.

What is written with -o depends on how its name ends:
  .html             a page with the curve of memory in use; of any moment or range of it that you
                    choose by mouse a flame graph, and tables of functions and stacks
  .pb.gz            for pprof; needs the Python module protobuf
  .collapsed        collapsed stacks of what was allocated, for flamegraph.pl
  .speedscope.json  for speedscope
  .heaptrack.gz     every call, for heaptrack_print and heaptrack_gui

The file may have any length: only the blocks in use and sums by call path are kept in memory. It is
read more than once, so it can't be a pipe. The page has the 20,000 largest call paths and the sum
of the others; other outputs, except heaptrack's, have the 10,000 that are the largest at the peak,
in all, and at the end.

Rows begin with the first function that is no wrapper of malloc, such as xmalloc, g_malloc,
PyMem_Malloc or strdup (docs/profile.md lists them). --wrapper names further ones.

Functions and lines come from the program's files and their debug files, which have to be here. This
uses llvm-symbolizer or addr2line (Debian: llvm, binutils); without them there are only functions.

examples:
  hakmem record -o app.recording -- ./app
  hakmem trace app.recording
  hakmem trace -o app.html app.recording
  hakmem trace --process 4711 --top 3 app.recording
  hakmem trace --at 12.5 --between 12.5 20 app.recording

exit status:
  0  success
  1  FILE can't be read or is no recording
  2  wrong usage, or a Python module is missing
  5  the output can't be written
"""


@dataclass(frozen=True)
class Result:
    name: str
    shown: Named
    page: Callable[[], str]
    heaptrack: Callable[[], Iterator[bytes]]


def _collapsed(result: Result) -> bytes:
    return profile_text.collapsed(result.shown, KINDS["alloc"][1] + 1).encode()


def _html(result: Result) -> bytes:
    return result.page().encode()


WRITERS: dict[str, Writer[Result]] = {
    ".html": _html,
    ".pb.gz": lambda result: pprof.profile(result.shown),
    ".heaptrack.gz": lambda result: result.heaptrack(),
    ".collapsed": _collapsed,
    ".speedscope.json": lambda result: profile_text.speedscope(result.shown, result.name).encode(),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="NAME", action="append", default=[],
                        help="where to write; may be repeated")  # fmt: skip
    parser.add_argument(
        "--process",
        metavar="PID",
        type=number(int, 1),
        help="the process to show (default: that with most calls)",
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=number(int, 1),
        default=5,
        help="call paths in each table (default: 5)",
    )
    seconds = number(float, 0, 1e9)
    parser.add_argument("--at", metavar="S", type=seconds, action="append", default=[],
                        help="also what was in use after so many seconds")  # fmt: skip
    parser.add_argument(
        "--between",
        metavar=("S", "T"),
        type=seconds,
        nargs=2,
        action="append",
        default=[],
        help="also what was allocated from second S to second T, and was in use at T",
    )
    symbols.add_options(parser)
    parser.add_argument("file", metavar="FILE", type=Path, help="a recording")


def run(arguments: argparse.Namespace) -> int:
    try:
        return _run(arguments)
    except (NoRecording, NoModule, CannotWrite, WrongName, WrongUse) as why:
        print(f"hakmem trace: {printable(str(why))}", file=sys.stderr)
        return why.status
    except MemoryError:
        print("hakmem trace: not enough memory for a recording of this size", file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace) -> int:
    need(*needed("trace", arguments.output))
    files = outputs(arguments.output, WRITERS)
    found, whole = events.processes(arguments.file)
    process = events.chosen(found, arguments.process, arguments.file)
    told = traced.traced(process, _spans(arguments, process))
    debug_dirs = (*arguments.debug_dir, symbols.DEBUG_DIR)
    written = arguments.file.stat().st_mtime
    known = Wrappers(arguments.wrapper)

    def located(calls: set[int]) -> Located:
        return symbols.located(told.profile, calls, Path("/"), debug_dirs, written, known=known)

    spans = [span.profile for span in told.spans]
    profiles = (told.profile, told.temporaries, told.growth, *spans)
    names = located(set().union(*(one.calls for one in profiles)))

    def named(profile: Profile) -> Named:
        return symbols.with_names(profile, names)

    shown = named(told.profile)
    notes = [*trace_text.notes(told), *shown.notes]
    if not whole:
        end = process.since + told.seconds
        notes.append(
            f"{arguments.file}: cut off or damaged: what comes after {end:.2f} s is missing"
        )
    for note in notes:
        print(f"hakmem trace: {printable(note)}", file=sys.stderr)
    tables = (
        *_tables(told, shown, named(told.temporaries), named(told.growth), arguments.top),
        *_span_tables([(span, named(span.profile)) for span in told.spans], arguments.top),
    )
    with suppress(BrokenPipeError):
        for line in _text(process, found, told, tables):
            print(line)
        sys.stdout.flush()
    if files:
        name = f"{process.name} {process.facts['pid']}"

        def page() -> str:
            paths = trace_page.paths(told)
            head = (line[:1].upper() + line[1:] for line in trace_text.head(told))
            whole = Section("The whole recording", ". ".join(head) + ".")
            calls = located(trace_page.calls(process, paths))
            return trace_page.page(told, paths, calls, notes, (whole, *tables))

        def to_heaptrack() -> Iterator[bytes]:
            return heaptrack.data(process, located(heaptrack.addresses(process)).frames)

        result = Result(name, shown, page, to_heaptrack)
        for path, writer in files:
            write(path, writer(result), "trace")
    return 0


def _spans(arguments: argparse.Namespace, process: Process) -> list[tuple[float, float]]:
    """Raises WrongUse, NoRecording."""
    spans = [(f"--at {_digits(at)}", -math.inf, at) for at in arguments.at]
    for since, until in arguments.between:
        words = f"--between {_digits(since)} {_digits(until)}"
        if since >= until:
            raise WrongUse(f"{words}: the second moment is to come later")
        spans.append((words, since, until))
    begin = math.floor(100 * process.since) / 100  # as it is shown
    end = math.ceil(100 * process.seconds(events.last_time(process))) / 100 if spans else math.inf
    for words, since, until in spans:
        if until < begin or since > end or (since == -math.inf and until > end):
            raise WrongUse(
                f"{words}: process {process.facts['pid']} was recorded from {begin:.2f} s to"
                f" {end:.2f} s; give a moment in between"
            )
    return [(since, until) for _, since, until in spans]


def _digits(seconds: float) -> str:
    """As it was given."""
    return f"{seconds:.15g}"


def _span_tables(spans: list[tuple[Span, Named]], top: int) -> Iterator[Section]:
    for span, named in spans:
        at, blocks = KINDS["inuse"][1], KINDS["alloc"][1]
        if math.isfinite(span.since):
            title = f"Allocated between {_digits(span.since)} s and {_digits(span.until)} s"
            yield trace_text.sites(title, _sum(named, blocks), named, blocks, top)
            title = f"Of that in use after {_digits(span.until)} s"
        else:
            title = f"In use after {_digits(span.until)} s"
        yield trace_text.sites(title, _sum(named, at), named, at, top)


def _sum(named: Named, at: int) -> str:
    if not named.sums[at]:
        return "nothing."
    return f"{size(named.sums[at + 1])} in {named.sums[at]:,.0f} blocks."


def _tables(
    told: Traced, shown: Named, temporaries: Named, growth: Named, top: int
) -> Iterator[Section]:
    """Those that have anything to show."""
    peak = trace_text.sites("In use at the peak", "", shown, KINDS["peak"][1], top)
    allocated = trace_text.sites("Allocated in all", "", shown, KINDS["alloc"][1], top)
    brief = trace_text.sites(
        "Temporary", "The next call of the thread freed them.", temporaries, KINDS["alloc"][1], top
    )
    grown = trace_text.sites(
        "Growth",
        "More in use at the end than when half of the time had passed.",
        growth,
        KINDS["inuse"][1],
        top,
    )
    left = trace_text.sites("In use at the end", "", shown, KINDS["inuse"][1], top)
    for section in (
        *(peak, allocated, brief, grown, left),
        *(trace_text.lifetimes(told), trace_text.flows(told)),
    ):
        if section.rows:
            yield section


def _text(
    process: Process, found: list[Process], told: Traced, tables: tuple[Section, ...]
) -> Iterator[str]:
    command = " ".join(process.facts["command"])
    yield printable(f"process {process.facts['pid']}: {command or 'its command is not known'}")
    if process.since:
        yield f"recorded from {process.since:.2f} s on"
    yield from trace_text.head(told)
    for table in tables:
        yield ""
        yield from trace_text.plain(table)
    others = [one for one in found if one is not process]
    if others:
        yield ""
        yield f"{len(others)} other process{'es' if len(others) > 1 else ''} (--process PID):"
        for one in sorted(others, key=calls_of, reverse=True)[:10]:
            yield printable(f"  {one.facts['pid']:>8}  {calls_of(one):>12,} calls  {one.name}")
