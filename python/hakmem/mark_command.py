"""`hakmem mark`: gives a moment of a running process a name."""

from __future__ import annotations

import argparse
import sys

from hakmem import look
from hakmem.look import CannotLook

HELP = "give this moment of running processes a name, for recordings, profiles and metrics"
DESCRIPTION = HELP[0].upper() + HELP[1:] + "."
EPILOG = """\
The same as a call of hakmem_mark("NAME") in the program. 'hakmem trace' shows marks on the curve of
memory in use, and takes them as moments: --at NAME, --between NAME OTHER. Heap profiles list them,
and 'hakmem exporter' counts them. A name has up to 39 bytes. Of the first 64 names of a process it
is known how often and when they were set; further ones are only in recordings.

The process does it itself when it next frees a block: within milliseconds while it works. An idle
process with several threads does it within about a second, unless the option scavenger is off. An
idle process of one thread does nothing until it frees a block again: then the exit status is 4, and
the mark has that later time.

Needs the same rights as a debugger, as 'hakmem sheet' does.

examples:
  hakmem mark 4711 loaded
  hakmem mark 4711 4712 after-deploy

exit status, the first that is not 0 of several processes:
  0  success
  1  the process does not use hakmem, or one that has no marks
  2  wrong usage, or no such process
  3  no permission
  4  the process is idle, and will do it later, unless an earlier order waits: then not this one
"""
MOST = 39  # bytes of a name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pids", metavar="PID", nargs="+", help="a running process")
    parser.add_argument("name", metavar="NAME", help="of the moment")


def run(arguments: argparse.Namespace) -> int:
    name = arguments.name.encode(errors="surrogateescape")
    if not name or len(name) > MOST or not arguments.name.isprintable():
        print(f"hakmem mark: expected a name of 1 to {MOST} bytes", file=sys.stderr)
        return look.USAGE
    status = 0
    for word in arguments.pids:
        try:
            look.mark(look.read_pid(word), arguments.library, arguments.name)
        except CannotLook as why:
            print(f"hakmem mark: {why}", file=sys.stderr)
            status = status or why.status
    return status
