"""`hakmem purge`: a running process gives its free memory back."""

from __future__ import annotations

import argparse
import sys

from hakmem import look
from hakmem.hint import hint
from hakmem.look import CannotLook

HELP = "have running processes return their free memory to the kernel"
DESCRIPTION = HELP[0].upper() + HELP[1:] + ", as malloc_trim(0) does."
EPILOG = """\
The process does it itself when it next frees a block: within milliseconds while it works. An idle
process with several threads does it within about a second, unless the option scavenger is off. An
idle process of one thread does nothing until it frees a block again: then the exit status is 4.

What lies in the caches of other threads stays until they free nearly all that they took, or end.

Needs the same rights as a debugger, as 'hakmem sheet' does.

examples:
  hakmem purge 4711
  hakmem purge $(pgrep postgres)

exit status, the first that is not 0 of several processes:
  0  success
  1  the process does not use hakmem, or its heap can't be read
  2  wrong usage, or no such process
  3  no permission
  4  the process is idle, and will do it later, unless an earlier order waits: then not this one
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pids", metavar="PID", nargs="+", help="a running process")


def run(arguments: argparse.Namespace) -> int:
    status = 0
    for word in arguments.pids:
        try:
            gave = look.purge(look.read_pid(word), arguments.library)
            print(f"{word.strip()}: {look.mib(gave)} MiB")
        except CannotLook as why:
            print(f"hakmem purge: {why}", file=sys.stderr)
            status = status or why.status
    if status == 0:
        hint(f"'hakmem sheet {arguments.pids[0]}' shows what is left")
    return status
