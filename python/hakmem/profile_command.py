"""`hakmem profile`: which code allocated the memory of a program."""

from __future__ import annotations

import argparse
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from hakmem import (
    heap_profile,
    interrupts,
    look,
    perf_map,
    pprof,
    process,
    profile_html,
    profile_text,
    symbols,
)
from hakmem.arguments import WrongUse, number
from hakmem.heap_profile import NoProfile, Profile, escaped
from hakmem.hint import hint
from hakmem.look import CannotLook
from hakmem.outputs import CannotWrite, Writer, WrongName, outputs, write
from hakmem.perf_map import NoMap, PerfMap
from hakmem.profile_difference import difference
from hakmem.profile_text import KINDS
from hakmem.symbols import Named
from hakmem.wrappers import Wrappers

HELP = "show which code allocated the memory of a program"
DESCRIPTION = HELP[0].upper() + HELP[1:] + "."
EPILOG = """\
With a FILE, reads a heap profile that a program on hakmem wrote: 'hakmem run --profile PROGRAM'
writes one when the program ends. With a PID, takes a profile of a running process: turns the option
'profile' on, waits, reads the profile, and turns the option off. Ctrl-C, SIGTERM or SIGHUP ends the
wait. The profile has only what was allocated while the option was on, in this call and in earlier
ones.

A profile is a sample: one block in many is watched, with the call stack that allocated it. So all
figures are estimates. The column with ± is their standard error: the true value is within twice
that in 95 of 100 cases. A smaller value of the option 'profile_rate' makes it smaller.

'in use' is what was not freed, 'allocated' all since the profile began, and 'peak' what was in use
when the program had most in use. In a profile of a whole run, what the program frees because it
ends still counts as in use (destructors, atexit, Python's finalization).

What is written depends on how the name after -o ends:
  .html             a page with a flame graph, and tables of functions and stacks
  .pb.gz            for pprof; needs the Python module protobuf
  .collapsed        collapsed stacks, for flamegraph.pl
  .speedscope.json  for speedscope
  .heap             the profile as the program wrote it, for pprof, jeprof and hakmem profile, and
                    names, so that hakmem profile can show it on another machine

Without -o and --text, it is FILE.html or NAME.PID.html.

Of several FILEs, such as those of the processes of one program, the sum is shown. The page has a
switch for each, and --text adds the figures of each.

Rows begin with the first function that is no wrapper of malloc, such as xmalloc, g_malloc,
PyMem_Malloc or strdup (docs/profile.md lists them). --wrapper names further ones.

Functions and lines come from the program's files and their debug files, which have to be here. This
uses llvm-symbolizer or addr2line (Debian: llvm, binutils); without them there are only functions.
Where DEBUGINFOD_URLS is set, its servers are asked for debug files that are not here, by
debuginfod-find (Debian: debuginfod). The time that this may take is said.

examples:
  hakmem run --profile=app.heap ./app
  hakmem profile app.heap
  hakmem profile --text app.heap
  hakmem profile -o app.pb.gz app.heap
  hakmem profile --text --diff before.heap after.heap
  hakmem profile --seconds 60 4711
  hakmem profile --text first.heap second.heap

exit status:
  0  success
  1  FILE can't be read or is no whole heap profile, or the process does not use hakmem
  2  wrong usage, no such process or file, or a Python module is missing
  3  no permission to read the process
  5  the output can't be written
"""
SECONDS = 30
ON = {"on", "true", "yes", "1"}


@dataclass(frozen=True)
class Result:
    """What is to be shown: of one profile, or of two and what they differ by."""

    name: str
    profile: Profile
    shown: Named
    now: Named
    before: Named | None
    kind: str
    parts: tuple[tuple[str, Named], ...]  # the name of each, if there are several


def _collapsed(result: Result) -> bytes:
    at = KINDS[result.kind][1] + 1
    return escaped(profile_text.collapsed(result.now, at, result.before)).encode()


def _own(result: Result) -> str:
    return heap_profile.with_symbols(result.profile, symbols.symbol_lines(result.now))


OWN = ".heap"
WRITERS: dict[str, Callable[[Result], bytes]] = {
    ".html": lambda result: escaped(
        profile_html.page(result.shown, result.name, result.parts)
    ).encode(),
    ".pb.gz": lambda result: pprof.profile(result.shown),
    ".collapsed": _collapsed,
    ".speedscope.json": lambda result: profile_text.speedscope(result.shown, result.name).encode(),
    OWN: lambda result: _own(result).encode(errors="surrogateescape"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write; may be repeated",
                        action="append", default=[])  # fmt: skip
    parser.add_argument("--text", action="store_true", help="print a table of the largest sites")
    parser.add_argument(
        "--by",
        metavar="WHAT",
        choices=list(KINDS),
        default="inuse",
        help="what --text and .collapsed show: inuse, alloc or peak (default: inuse)",
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=number(int, 1),
        default=10,
        help="sites that --text shows (default: 10)",
    )
    parser.add_argument(
        "--diff", metavar="OLD", type=Path, help="show what became more or less since this profile"
    )
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=number(float, 0, 1e6),
        default=SECONDS,
        help=f"how long to profile a process (default: {SECONDS})",
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave profiling turned on in the process"
    )
    symbols.add_options(parser)
    parser.add_argument(
        "--perf-map",
        metavar="FILE",
        type=Path,
        help="names of code that the program made while it ran, a map or a jitdump (default:"
        " /tmp/perf-PID.map, and jitdumps that it mapped)",
    )
    parser.add_argument(
        "subject",
        metavar="PID|FILE",
        nargs="+",
        help="a running process, or heap profiles: files, or folders with files *.heap",
    )


def run(arguments: argparse.Namespace) -> int:
    try:
        return _run(arguments)
    except (CannotLook, NoProfile, CannotWrite, WrongName, WrongUse) as why:
        print(f"hakmem profile: {profile_text.printable(str(why))}", file=sys.stderr)
        return why.status


def _run(arguments: argparse.Namespace) -> int:
    subject = _subject(arguments.subject)
    known = Wrappers(arguments.wrapper)
    debug_dirs = (*arguments.debug_dir, symbols.DEBUG_DIR)

    def of_file(path: Path, profile: Profile) -> Named:
        made = _made(arguments, profile, profile.pid, Path("/"), path)
        profile = perf_map.with_made(profile, made)
        written = profile.written or _written(path)
        return symbols.named(profile, Path("/"), debug_dirs, written, known)

    before = None if arguments.diff is None else heap_profile.read(arguments.diff)
    parts: list[Part]
    if isinstance(subject, int):
        look.check_pid(subject)
        name = f"{look.program(subject).replace('/', '_')}.{subject}"
        files = _outputs(arguments, name)
        text = _taken(arguments, subject)
        profile = process.as_called(heap_profile.parse(text, f"process {subject}"), subject)
        root = Path(f"/proc/{subject}/root")
        inner = perf_map.inner_pid(subject)
        made = _made(arguments, profile, inner, root, Path(f"/proc/{subject}"))
        profile = perf_map.with_made(profile, made)
        now = symbols.named(profile, root, debug_dirs, None, known)
        parts = [Part(name, profile, now)]
    else:
        more = "" if len(subject) == 1 else f" and {len(subject) - 1} more"
        name = f"{subject[0]}{more}"
        # A name that the user gave is wrong before any file is; the page's lies beside a file.
        files = _outputs(arguments, name) if arguments.output else []
        read = [(path, heap_profile.read(path)) for path in subject]
        files = files or _outputs(arguments, str(subject[0]))
        if more and any(str(path).endswith(OWN) for path, _ in files):
            raise WrongUse(f"-o NAME{OWN} copies one profile: name one FILE")
        parts = [Part(str(path), profile, of_file(path, profile)) for path, profile in read]
    now = symbols.merged([part.named for part in parts])
    old = None if before is None else of_file(arguments.diff, before)
    shown = now if old is None else difference(now, old, (str(arguments.diff), name))
    for note in _notes(parts, shown):
        print(f"hakmem profile: {profile_text.printable(note)}", file=sys.stderr)
    shown = replace(shown, notes=(*shown.notes, *_marks(parts)))  # of the page
    each = tuple((part.name, part.named) for part in parts)
    result = Result(name, parts[0].profile, shown, now, old, arguments.by, each)
    for path, writer in files:
        write(path, writer(result), "profile")
    if arguments.text:
        table = profile_text.Table(arguments.by, arguments.top, sys.stdout.isatty())
        lines = [
            *profile_text.table(shown, table, name),
            *profile_text.parts(each, now),
            *_marks(parts),
        ]
        with suppress(BrokenPipeError):
            print("\n".join(lines), flush=True)
    page = next((path for path, _ in files if path.suffix == ".html"), None)
    hint(
        f"open {page} in a browser"
        if page is not None
        else "without --text it writes a page with a flame graph; --diff OLD shows what grew"
    )
    return 0


@dataclass(frozen=True)
class Part:
    """A profile of those that are shown together."""

    name: str
    profile: Profile
    named: Named


def _subject(words: list[str]) -> int | list[Path]:
    """A process, or files. Raises CannotLook, NoProfile, WrongUse."""
    if len(words) == 1 and not (words[0] and Path(words[0]).is_dir()):
        one = look.read_subject(words[0])
        return one if isinstance(one, int) else [Path(words[0])]
    files = []
    for path in map(Path, words):
        some = sorted(path.glob(f"*{OWN}")) if path.is_dir() else [path]
        if not some:
            raise NoProfile(f"{path}: a folder without a file *{OWN}")
        files += some
    return files


def _outputs(arguments: argparse.Namespace, name: str) -> list[tuple[Path, Writer[Result]]]:
    return outputs(arguments.output or ([] if arguments.text else [f"{name}.html"]), WRITERS)


def _made(
    arguments: argparse.Namespace, profile: Profile, pid: int | None, root: Path, owned: Path
) -> PerfMap | None:
    """Names by the file of the option, or of those that the process wrote. The latter must be of
    our user, of the process's (the owner of `owned`) or of root."""
    notes: list[str] = []
    try:
        if arguments.perf_map is not None:
            return perf_map.read(arguments.perf_map)
        owners, written = perf_map.of_file(owned, profile)
        return perf_map.made_by(pid, profile.mappings, root, owners, notes, written)
    except (NoMap, OSError) as why:
        notes.append(str(why))
        return None
    finally:
        for note in notes:
            print(f"hakmem profile: {profile_text.printable(note)}", file=sys.stderr)


def _notes(parts: list[Part], shown: Named) -> Iterator[str]:
    lost = sum(part.profile.lost for part in parts)
    if lost:
        yield f"{lost} samples are missing: there was no memory for them"
    rates = {part.profile.rate for part in parts}
    if len(rates) > 1:
        yield "the profiles have different rates, so their figures are not equally exact"
    yield from shown.notes
    if any(note.endswith(symbols.NO_NAMES) for note in shown.notes):
        yield "a profile keeps its names where -o NAME.heap was written while the files were there"


def _marks(parts: list[Part]) -> Iterator[str]:
    for part in parts:
        which = f"{part.name}: " if len(parts) > 1 else ""
        yield from (which + line for line in profile_text.marks(part.profile))


def _written(path: Path) -> float | None:
    with suppress(OSError):
        return path.stat().st_mtime
    return None


# ---- a running process ----


def _taken(arguments: argparse.Namespace, pid: int) -> str:
    """The text of a profile. Raises CannotLook."""
    with _interrupted() as wait:
        stays = arguments.keep
        try:
            stays |= look.change(pid, arguments.library, "profile", 1, apart=True)
        except CannotLook as why:
            if why.status != look.STATUS[look.WAITS]:
                raise
            print(f"hakmem profile: {why}", file=sys.stderr, flush=True)
            stays |= _began_with_it(pid)
        try:
            wait(arguments.seconds)
            return look.profile(pid, arguments.library)
        finally:
            if not stays:
                # It may have ended, or obeys when it works again.
                with suppress(CannotLook):
                    look.change(pid, arguments.library, "profile", 0, apart=True)


def _began_with_it(pid: int) -> bool:
    """Whether the process was started with it: an idle one does not say."""
    with suppress(OSError):
        for word in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, _, value = word.partition(b"=")
            said = value.decode(errors="replace").strip().lower()
            if name == b"HAKMEM_PROFILE" and said in ON:
                return True
            if name == b"HAKMEM_PROFILE_RSS" and said.lstrip("0"):
                return True
    return False


@contextmanager
def _interrupted() -> Iterator[Callable[[float], object]]:
    """What waits for so many seconds. Ctrl-C, SIGTERM or SIGHUP ends the wait, and no more: else
    profiling would stay on. A handler may not take a lock that the interrupted thread may hold, so
    it writes to a pipe."""
    ends, tell = os.pipe()
    try:
        with interrupts.handled(lambda *_: os.write(tell, b"1")):
            yield lambda seconds: select.select([ends], [], [], seconds)
    finally:
        os.close(ends)
        os.close(tell)
