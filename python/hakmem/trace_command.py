"""`hakmem trace`: what a recorded program did with its memory."""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from hakmem import (
    checkpoints,
    events,
    heaptrack,
    outputs,
    pprof,
    profile_text,
    symbols,
    trace_page,
    trace_text,
    traced,
)
from hakmem.arguments import WrongUse, number
from hakmem.checkpoints import SUFFIX, Checkpoints, Index, NoIndex
from hakmem.events import Process, calls_of
from hakmem.heap_profile import Profile, escaped
from hakmem.hint import hint
from hakmem.modules import NoModule, need, needed
from hakmem.outputs import CannotWrite, Writer, WrongName
from hakmem.profile_html import Section
from hakmem.profile_text import KINDS, printable, size
from hakmem.recording import NoRecording
from hakmem.symbols import Located, Named
from hakmem.traced import Traced
from hakmem.wrappers import Wrappers

HELP = "show what a recorded program did with its memory"
DESCRIPTION = HELP[0].upper() + HELP[1:] + "."
EPILOG = """\
FILE is what 'hakmem record' wrote. It has every call, so the figures are exact, except for the
lifetimes that half and 90% of the blocks stay below, which are within 0.4%.

If several processes were recorded, or several FILEs are given, this shows their sum, and a table of
processes. --process shows one alone. A FILE may be a folder: then it stands for all files in it
whose names end in .recording.

Printed are: the peak and the call paths that held it; temporary blocks, which the next call of
their thread freed; what grew in the second half of the time; how long blocks of each size lived;
and which threads freed the blocks of others.

--at shows what was in use at a moment, --between what was allocated from one moment to another, and
what of that was in use at the second one. All times, those on the page too, are in seconds since
the recording began: also those of a process that was started later. Both options may be repeated.
A mark that the program set (hakmem_mark) or 'hakmem mark' may stand for a moment: the first one of
the name.

--from and --to show a part of the recording alone, with a page of 200 moments of this part. What
came before is read only for what was in use when the part begins. --index also writes FILE.index,
an eighth of FILE or so; where that is, a part is read from the last one of its checkpoints before
it, and not from the begin.

What is written with -o depends on how its name ends:
  .html             a page with the curve of memory in use; of any moment or range of it that you
                    choose by mouse a flame graph, and tables of functions and stacks; with a switch
                    for each process (the 60 that allocated most)
  .pb.gz            for pprof; needs the Python module protobuf
  .collapsed        collapsed stacks of what was allocated, for flamegraph.pl
  .speedscope.json  for speedscope
  .heaptrack.gz     every call of one process, for heaptrack_print and heaptrack_gui

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
  hakmem trace -o all.html first.recording second.recording
  hakmem trace --at 12.5 --between 12.5 20 app.recording
  hakmem trace --index app.recording
  hakmem trace --from 12.5 --to 13 -o part.html app.recording
  hakmem trace --at loaded --between loaded stopped app.recording

exit status:
  0  success
  1  FILE can't be read or is no recording
  2  wrong usage, no such file, or a Python module is missing
  5  the output can't be written
"""


HEAPTRACK = ".heaptrack.gz"


@dataclass(frozen=True)
class Result:
    name: str
    shown: _Shown
    notes: list[str]
    tables: tuple[Section, ...]


def _collapsed(result: Result) -> bytes:
    return escaped(profile_text.collapsed(result.shown.whole, KINDS["alloc"][1] + 1)).encode()


def _html(result: Result) -> bytes:
    """With the processes that allocated most."""
    shown = result.shown
    order = sorted(range(len(shown.every)), key=lambda one: -shown.every[one].size)
    largest = sorted(order[: trace_page.PROCESSES])
    total = sum(shown.every[one].size for one in largest) or 1
    paths = [trace_page.paths(shown.every[one], shown.every[one].size / total) for one in largest]
    calls: list[set[int]] = [set() for _ in shown.every]
    for one, some in zip(largest, paths, strict=True):
        calls[one] = trace_page.calls(shown.every[one].process, some)
    names = shown.located(calls)
    parts = [
        trace_page.Part(shown.every[one], some, names[one])
        for one, some in zip(largest, paths, strict=True)
    ]
    head = [part for line in trace_text.heads(shown.every) for part in line.split("; ")]
    title = "This part of the recording" if _is_part(shown.every) else "The whole recording"
    whole = Section(title, "\n".join(part[:1].upper() + part[1:] for part in head))
    notes = list(result.notes)
    others = [shown.every[one] for one in order[trace_page.PROCESSES :]]
    if others:
        notes.append(
            f"{len(others)} smaller processes are not in the graphs; they allocated"
            f" {size(sum(one.size for one in others))}"
        )
    return escaped(trace_page.page(parts, result.name, notes, (whole, *result.tables))).encode()


def _pprof(result: Result) -> bytes:
    return pprof.profile(result.shown.whole)


def _speedscope(result: Result) -> bytes:
    return profile_text.speedscope(result.shown.whole, result.name).encode()


def _heaptrack(result: Result) -> Iterator[bytes]:
    process = result.shown.every[0].process
    (names,) = result.shown.located([heaptrack.addresses(process)])
    return heaptrack.data(process, names.frames)


WRITERS: dict[str, Writer[Result]] = {
    ".html": _html,
    ".pb.gz": _pprof,
    HEAPTRACK: _heaptrack,
    ".collapsed": _collapsed,
    ".speedscope.json": _speedscope,
}


_SECONDS = number(float, 0, 1e9)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="NAME", action="append", default=[],
                        help="where to write; may be repeated")  # fmt: skip
    parser.add_argument(
        "--process",
        metavar="PID",
        type=number(int, 1),
        help="show this process alone; of several with this PID that with most calls",
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=number(int, 1),
        default=5,
        help="call paths in each table (default: 5)",
    )
    parser.add_argument(
        "--at",
        metavar="S",
        type=_moment,
        action="append",
        default=[],
        help="also what was in use after so many seconds, or at a mark",
    )
    parser.add_argument(
        "--between",
        metavar=("S", "T"),
        type=_moment,
        nargs=2,
        action="append",
        default=[],
        help="also what was allocated from second S to second T, and was in use at T; either may be"
        " a mark",
    )
    parser.add_argument(
        "--threads",
        action="store_true",
        help="a row for each thread in the flows between threads, not for all of one name",
    )
    parser.add_argument("--from", dest="since", metavar="S", type=_SECONDS,
                        help="begin S seconds after the recording did")  # fmt: skip
    parser.add_argument("--to", dest="until", metavar="S", type=_SECONDS,
                        help="end S seconds after the recording began")  # fmt: skip
    parser.add_argument("--index", action="store_true",
                        help=f"also write FILE{SUFFIX}, which makes --from faster")  # fmt: skip
    symbols.add_options(parser)
    parser.add_argument(
        "file", metavar="FILE", type=Path, nargs="+", help="a recording, or a folder with some"
    )


def _moment(text: str) -> float | str:
    """Seconds, or the name of a mark."""
    with suppress(argparse.ArgumentTypeError, ValueError):
        return _SECONDS(text)
    return text


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
    files = outputs.outputs(arguments.output, WRITERS)
    found, cut = events.recordings(arguments.file)
    some = _chosen(found, arguments)
    if len(some) > 1 and any(str(path).endswith(HEAPTRACK) for path, _ in files):
        raise WrongUse(f"{HEAPTRACK} has one process: choose one with --process PID")
    part, some = _part(arguments, some)
    spans = _spans(arguments, some)
    every, why_not = _traced(found, some, spans, part, arguments.index)
    shown = _Shown(every, arguments)
    notes = list(dict.fromkeys([*why_not, *_notes(every), *shown.whole.notes]))
    for file in cut if part is None else ():
        ends = [one.process.since + one.seconds for one in every if one.process.file == file]
        end = max(ends, default=0.0)
        notes.append(f"{file}: cut off or damaged: what comes after {end:.2f} s is missing")
    for note in notes:
        print(f"hakmem trace: {printable(note)}", file=sys.stderr)
    tables = (
        *_tables(shown, arguments.top, arguments.threads),
        *_span_tables(shown, arguments.top),
    )
    with suppress(BrokenPipeError):
        for line in _text(every, found, tables):
            print(line)
        sys.stdout.flush()
    result = Result(_name(every), shown, notes, tables)
    for path, writer in files:
        outputs.write(path, writer(result), "trace")
    page = next((path for path, _ in files if path.suffix == ".html"), None)
    if page is not None:
        hint(f"open {page} in a browser")
    else:
        hint("-o NAME.html writes a page; 'hakmem replay FILE' tries other allocators")
    return 0


def _part(
    arguments: argparse.Namespace, some: list[Process]
) -> tuple[tuple[float, float] | None, list[Process]]:
    """From when to when, and the processes that were there. Raises WrongUse, NoRecording."""
    if arguments.since is None and arguments.until is None:
        return None, some
    since, until = arguments.since or 0.0, arguments.until
    until = math.inf if until is None else until
    words = f"--from {_digits(since)}" + (f" --to {_digits(until)}" if until < math.inf else "")
    if since >= until:
        raise WrongUse(f"{words}: the second moment is to come later")
    if arguments.at or arguments.between or arguments.index:
        raise WrongUse(f"{words}: not with --at, --between, --index, which are of all of it")
    if any(name.endswith(HEAPTRACK) for name in arguments.output):
        raise WrongUse(f"{words}: {HEAPTRACK} has every call")
    there = [one for one in some if one.since < until and since < _ended(one)]
    if not there:
        raise WrongUse(f"{words}: {_recorded(some)}")
    return (since, until), there


def _ended(process: Process) -> float:
    """When the process was over, in seconds since the recording began. Raises NoRecording."""
    begun: int = process.facts["time"]
    done: int = (process.done or {}).get("time", 0)
    if done > begun:
        return process.since + (done - begun) / 1e9
    return process.seconds(events.last_time(process))


def _traced(
    found: list[Process],
    some: list[Process],
    spans: list[tuple[float, float]],
    part: tuple[float, float] | None,
    index: bool,
) -> tuple[list[Traced], list[str]]:
    """And what the user should know. Raises NoRecording, CannotWrite."""
    every, notes = [], []
    for file, group in itertools.groupby(some, key=lambda one: one.file):
        own = list(group)
        whole = [one for one in found if one.file == file]
        beside = checkpoints.beside(file)
        if index:
            with outputs.replaced(beside) as made, Index(made, whole) as written:
                every += [traced.traced(one, spans, index=written) for one in own]
            print(f"hakmem trace: {printable(str(beside))}", file=sys.stderr, flush=True)
            continue
        if part is not None and beside.exists():
            try:
                with Checkpoints(beside, whole) as known:
                    every += [traced.traced(one, part=part, checkpoints=known) for one in own]
                continue
            except NoIndex as why:
                notes.append(str(why))
        every += [traced.traced(one, spans, part) for one in own]
    return every, notes


def _chosen(found: list[Process], arguments: argparse.Namespace) -> list[Process]:
    """Raises NoRecording."""
    if arguments.process is None and any(map(calls_of, found)):
        return [one for one in found if calls_of(one)]
    return [events.chosen(found, arguments.process, arguments.file[0])]


def _name(every: list[Traced]) -> str:
    process = every[0].process
    others = len(every) - 1
    more = f" and {others} other process{'es' if others > 1 else ''}" if others else ""
    when = ""
    if _is_part(every):
        begin, end = trace_text.bounds(every)
        when = f", {begin:.3f} s to {end:.3f} s"
    return f"{process.name} {process.facts['pid']}{more}{when}"


def _is_part(every: list[Traced]) -> bool:
    return every[0].begin is not None


def _notes(every: list[Traced]) -> Iterator[str]:
    for one in every:
        which = f"process {one.process.facts['pid']}: " if len(every) > 1 else ""
        for note in trace_text.notes(one):
            yield which + note


class _Shown:
    """Processes with names."""

    def __init__(self, every: list[Traced], arguments: argparse.Namespace) -> None:
        self.every = every
        self.written = max(told.process.file.stat().st_mtime for told in every)
        self.debug_dirs = (*arguments.debug_dir, symbols.DEBUG_DIR)
        self.known = Wrappers(arguments.wrapper)
        self.names = self.located([_calls(told) for told in every])
        self.whole = self.named(lambda told: told.profile)

    def located(self, calls: list[set[int]]) -> list[Located]:
        """The names of calls of each process."""
        asked = [(told.profile, some) for told, some in zip(self.every, calls, strict=True)]
        return symbols.all_located(
            asked, Path("/"), self.debug_dirs, self.written, known=self.known
        )

    def named(self, profile: Callable[[Traced], Profile]) -> Named:
        """The sum of this profile of each process."""
        pairs = zip(self.every, self.names, strict=True)
        return symbols.merged([symbols.with_names(profile(told), one) for told, one in pairs])


def _calls(told: Traced) -> set[int]:
    spans = [span.profile for span in told.spans]
    profiles = (told.profile, told.temporaries, told.growth, *spans)
    return set().union(*(one.calls for one in profiles))


def _spans(arguments: argparse.Namespace, some: list[Process]) -> list[tuple[float, float]]:
    """Raises WrongUse, NoRecording."""
    moments = [*arguments.at, *(moment for pair in arguments.between for moment in pair)]
    marks: dict[str, float] = {}
    if any(isinstance(moment, str) for moment in moments):
        marks = _first_marks(some)
    found = [_seconds(at, marks) for at in arguments.at]
    spans = [(f"--at {_digits(at)}", -math.inf, at) for at in found]
    for begin_, end_ in arguments.between:
        since, until = _seconds(begin_, marks), _seconds(end_, marks)
        words = f"--between {_digits(since)} {_digits(until)}"
        if since >= until:
            raise WrongUse(f"{words}: the second moment is to come later")
        spans.append((words, since, until))
    if not spans:
        return []
    begin, end = _bounds(some)
    for words, since, until in spans:
        if until < begin or since > end or (since == -math.inf and until > end):
            raise WrongUse(f"{words}: {_recorded(some)}")
    return [(since, until) for _, since, until in spans]


def _bounds(some: list[Process]) -> tuple[float, float]:
    """As they are shown."""
    begin = math.floor(100 * min(one.since for one in some)) / 100
    last = [one.seconds(events.last_time(one)) for one in some]
    marks = [
        one.seconds(time) for one in some for time, _ in one.marks
    ]  # where they were asked for
    return begin, math.ceil(100 * max([*last, *marks])) / 100


def _recorded(some: list[Process]) -> str:
    begin, end = _bounds(some)
    which = f"process {some[0].facts['pid']} was" if len(some) == 1 else "the processes were"
    return f"{which} recorded from {begin:.2f} s to {end:.2f} s; give a moment in between"


def _first_marks(some: list[Process]) -> dict[str, float]:
    """When each was set first, in whole nanoseconds: not before it. Raises NoRecording."""
    found = sorted(mark for process in some for mark in events.read_marks(process))
    return {name: math.ceil(when * 1e9) / 1e9 for when, name in reversed(found)}


def _seconds(moment: float | str, marks: dict[str, float]) -> float:
    """Raises WrongUse."""
    if not isinstance(moment, str):
        return moment
    if moment not in marks:
        known = ", ".join(sorted(marks, key=lambda name: marks[name])[:10]) or "none"
        raise WrongUse(f"{moment}: neither seconds nor a mark of the recording, which has: {known}")
    return marks[moment]


def _digits(seconds: float) -> str:
    """As it was given."""
    return f"{Decimal(format(seconds, '.15g')).normalize():f}"


def _span_tables(shown: _Shown, top: int) -> Iterator[Section]:
    end = max(one.ended for one in shown.every)
    for which, span in enumerate(shown.every[0].spans):
        named = shown.named(functools.partial(_in_span, which, end))
        at, blocks = KINDS["inuse"][1], KINDS["alloc"][1]
        if math.isfinite(span.since):
            title = f"Allocated between {_digits(span.since)} s and {_digits(span.until)} s"
            yield trace_text.sites(title, _sum(named, blocks), named, blocks, top)
            title = f"Of that in use after {_digits(span.until)} s"
        else:
            title = f"In use after {_digits(span.until)} s"
        yield trace_text.sites(title, _sum(named, at), named, at, top)


def _in_span(which: int, end: float, told: Traced) -> Profile:
    """A process that has ended has nothing in use while others go on."""
    span = told.spans[which]
    if not told.ended < min(span.until, end):
        return span.profile
    sites = (replace(one, figures=(0.0, 0.0, *one.figures[2:])) for one in span.profile.sites)
    return replace(span.profile, sites=tuple(sites))


def _sum(named: Named, at: int) -> str:
    if not named.sums[at]:
        return "nothing."
    return f"{size(named.sums[at + 1])} in {named.sums[at]:,.0f} blocks."


def _tables(shown: _Shown, top: int, each: bool) -> Iterator[Section]:
    """Those that have anything to show."""
    every = shown.every
    several = len(every) > 1
    if several:
        yield trace_text.processes(every)
    part = _is_part(every)
    note = "Of each process at its own peak." if several else ""
    peak = trace_text.sites("In use at the peak", note, shown.whole, KINDS["peak"][1], top)
    title = "Allocated" if part else "Allocated in all"
    allocated = trace_text.sites(title, "", shown.whole, KINDS["alloc"][1], top)
    brief = trace_text.sites(
        "Temporary",
        "The next call of the thread freed them.",
        shown.named(lambda told: told.temporaries),
        KINDS["alloc"][1],
        top,
    )
    grown = trace_text.sites(
        "Growth",
        "More in use at the end than when half of the time had passed.",
        shown.named(lambda told: told.growth),
        KINDS["inuse"][1],
        top,
    )
    note = "Of each process at its own end." if several and not part else ""
    left = trace_text.sites("In use at the end", note, shown.whole, KINDS["inuse"][1], top)
    lives, flows = trace_text.lifetimes(every), trace_text.flows(every, each)
    for section in (trace_text.marks(every), peak, allocated, brief, grown, left, lives, flows):
        if section.rows:
            yield section


def _text(every: list[Traced], found: list[Process], tables: tuple[Section, ...]) -> Iterator[str]:
    if len(every) == 1:
        process = every[0].process
        command = " ".join(process.facts["command"])
        yield printable(f"process {process.facts['pid']}: {command or 'its command is not known'}")
        if process.since and not _is_part(every):
            yield f"recorded from {process.since:.2f} s on"
    yield from trace_text.heads(every)
    for table in tables:
        yield ""
        yield from trace_text.plain(table)
    shown = {id(one.process) for one in every}
    others = [one for one in found if id(one) not in shown]
    if others:
        yield ""
        yield f"{len(others)} other process{'es' if len(others) > 1 else ''} (--process PID):"
        for one in sorted(others, key=calls_of, reverse=True)[:10]:
            yield printable(f"  {one.facts['pid']:>8}  {calls_of(one):>12,} calls  {one.name}")
