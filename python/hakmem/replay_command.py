"""`hakmem replay` on the command line. What it does is in the package hakmem_yardstick, which wants
libraries that may be missing: --help does without either."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hakmem import extras, outputs, recording, variants
from hakmem.arguments import WrongUse, number
from hakmem.modules import NoModule
from hakmem.outputs import CannotWrite, WrongName
from hakmem.profile_text import printable
from hakmem.recording import NoRecording

FAILED = 1
ENDINGS = (".html", ".json")  # of what it writes
HELP = "make the calls of a recorded program once more, on any allocator"
DESCRIPTION = """\
Makes all calls of a recording once more, in the same order and by as many threads, on each of
several allocators, and shows how much memory each needs for them. Blocks are written to, as far as
they were in the recorded program.
"""
EPILOG = """\
FILE is what 'hakmem record' wrote. With several files there is a ranking over all of them.

An allocator is hakmem, glibc (the system's), one that 'hakmem bench' knows, one with settings as in
hakmem+keep_bytes=16M or glibc+MALLOC_ARENA_MAX=1, or a library of yours as in mine=./mine.so.

A replay tells how much memory the program's heap would take on another allocator. It does not tell
how fast the program would be: the calls follow each other without the program's work between them,
which needs the same caches of the processor. Measure that with 'hakmem compare' or 'hakmem tune'.

examples:
  hakmem record -o app.recording -- ./app
  hakmem replay app.recording
  hakmem replay --with jemalloc,tcmalloc,hakmem+huge_pages=off app.recording
  hakmem replay --speed 0 --rounds 5 -o app.html app.recording
  hakmem replay --cluster tcp://10.0.0.5:8786 /shared/*.recording

exit status:
  0    all was replayed
  1    FILE can't be read, is no recording or has nothing to replay; or a replay failed
  2    wrong usage, no such file or allocator, or a Python module is missing
  5    the output can't be written
  130  interrupted; by SIGTERM 143, by SIGHUP 129
  125  hakmem+NAME=VALUE names no option, or gives it a value that is not allowed
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--with",
        metavar="NAMES",
        dest="allocators",
        action="append",
        help="these allocators, as in glibc,jemalloc (default: hakmem,glibc)",
    )
    add(
        "--speed",
        metavar="N",
        type=number(float, 0, 1e6),
        default=1.0,
        help="so many times as fast as the recorded program, if the calls can be (default: 1, with"
        " its pauses, in which memory may go back); 0: as fast as possible, to compare times",
    )
    add(
        "--rounds",
        metavar="N",
        type=number(int, 1),
        default=1,
        help="so many times on each, in random order; medians are shown (default: 1)",
    )
    add(
        "--process",
        metavar="PID",
        type=number(int, 1),
        help="the process to replay (default: that with most calls)",
    )
    add(
        "--timeout",
        metavar="S",
        type=number(float, 0.1, 1e6),
        default=600.0,
        help="how much longer than the recording a replay may take (default: 600)",
    )
    add(
        "--cluster",
        metavar="ADDRESS",
        help="replay on the workers of a Dask cluster, which need hakmem, the allocators and the"
        " files at the same paths",
    )
    add("-o", "--output", metavar="NAME", action="append", default=[],
        help="where to write: a page (.html) or all figures (.json); may be repeated")  # fmt: skip
    add("files", metavar="FILE", nargs="+", type=Path, help="a recording")


def run(arguments: argparse.Namespace) -> int:
    try:
        arguments.allocators = _names(arguments.allocators)
        variants.check(arguments.allocators, arguments.front)
        outputs.outputs(arguments.output, dict.fromkeys(ENDINGS, bytes))
        extras.loaded("chosen").known(arguments.allocators)
        if (status := _no_recording(arguments.files)) != 0:
            return status
        if any(name.endswith(".html") for name in arguments.output):
            extras.need("plots")
        return int(extras.loaded("replay_cli").run(arguments))
    except (
        *(extras.NotInstalled, extras.CannotInstall, WrongUse),
        *(NoRecording, NoModule, CannotWrite, WrongName),
    ) as why:
        print(f"hakmem replay: {printable(str(why))}", file=sys.stderr)
        return why.status
    except OSError as error:
        print(f"hakmem replay: {printable(str(error))}", file=sys.stderr)
        return FAILED
    except MemoryError:
        print("hakmem replay: not enough memory for a recording of this size", file=sys.stderr)
        return FAILED


def _no_recording(files: list[Path]) -> int:
    """If none is one, says why of each, and returns the status for that; else 0."""
    wrong, status = [], 0
    for file in files:
        try:
            recording.check(file)
            return 0
        except NoRecording as why:
            wrong.append(str(why))
            status = status or why.status
    for line in wrong:
        print(f"hakmem replay: {printable(line)}", file=sys.stderr)
    return status


def _names(words: list[str] | None) -> list[str]:
    names = [name for word in words or ["hakmem,glibc"] for name in word.split(",") if name]
    return list(dict.fromkeys(names))
