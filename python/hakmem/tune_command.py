"""`hakmem tune` on the command line. What it does is in the package hakmem_yardstick, which wants
libraries that may be missing: --help does without either."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hakmem import extras, variants
from hakmem.arguments import WrongUse, number
from hakmem.modules import NoModule
from hakmem.outputs import CannotWrite
from hakmem.profile_text import printable
from hakmem.recording import NoRecording

HELP = "find out whether other settings, or another allocator, serve a program better"
DESCRIPTION = """\
Records a program, replays the recording with some settings of hakmem and on other allocators, and
then runs the program itself on the best of these in turn, many times over. The answer is to keep
the defaults, or a file of settings that 'hakmem run --settings' uses.
"""
EPILOG = """\
A setting is recommended if it makes the program better in at least one measure (see --measures),
seems worse in none, and if a second series of runs shows the same. The chance that either series
finds a gain where there is none is 1%.

A program that does not end by itself, such as a server, needs --load: a command that uses it. The
program then gets SIGTERM. With --figure, what counts is a number in the output of the load, or of
the program.

examples:
  hakmem tune -- ./app input                    time, processor time and memory
  hakmem tune --held-out './app other' -- ./app input
  hakmem tune --ready 'redis-cli -p 7000 ping' --load 'redis-benchmark -p 7000 -q -t set' \\
    --figure 'SET: ([0-9.]+) requests' --more-is-better -- redis-server --port 7000
  hakmem run --settings app.settings ./app input
  hakmem tune --check app.settings              is it still better, after an upgrade?

exit status:
  0    answered
  1    with --check: the settings are no longer better; or --recording can't be read
  2    wrong usage, no such program, file or allocator, or a Python module is missing
  4    the program failed
  5    the file can't be written
  125  hakmem+NAME=VALUE names no option, or gives it a value that is not allowed
  130  interrupted; by SIGTERM 143, by SIGHUP 129
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "hakmem tune [OPTION]... -- PROGRAM [ARG]..."
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", type=Path,
        help="where to write settings (default: PROGRAM.settings)")  # fmt: skip
    add("--minutes", metavar="M", type=number(float, 0.01), default=10.0,
        help="so long for the runs on the best candidates, about, or as long as it takes to show"
        " anything; and again for the one that gains (default: 10)")  # fmt: skip
    add(
        "--measures",
        metavar="NAMES",
        help="what may gain, and may not lose: time, cpu, peak, pss (average memory), faults,"
        " figure (default: time,cpu,peak,pss; with --figure: figure,cpu,peak,pss)",
    )
    add("--least", metavar="P", default="0.02",
        help="a smaller gain or loss does not count (default: 0.02)")  # fmt: skip
    add("--load", metavar="COMMAND", help="run by sh while the program runs; then this is to end")
    add("--ready", metavar="COMMAND", help="with --load: repeated until it succeeds, before")
    add("--figure", metavar="REGEX", help="the first group is a number, the less the better")
    add("--more-is-better", action="store_true", help="of --figure")
    add("--held-out", metavar="COMMAND",
        help="the program with other input, on which a gain must show too")  # fmt: skip
    add(
        "--base",
        metavar="NAME",
        default="hakmem",
        help="what to compare with: the settings that you use, as in hakmem+huge_pages=off"
        " (default: hakmem)",
    )
    add("--with", metavar="NAMES", dest="others",
        help="other allocators to try, or none (default: those that are installed)")  # fmt: skip
    add("--recording", metavar="FILE", type=Path, help="instead of recording the program")
    add("--stdin", metavar="FILE", type=Path, help="the program's standard input (empty)")
    add("--cd", metavar="DIR", type=Path, help="where it runs")
    add("--prepare", metavar="COMMAND", help="run by sh before each run, not measured")
    add("--timeout", metavar="S", type=number(float, 0.1, 1e6), default=600.0,
        help="of one run, which then failed (default: 600)")  # fmt: skip
    add("--cluster", metavar="ADDRESS",
        help="replay on the workers of a Dask cluster; runs of the program stay here")  # fmt: skip
    add("--json", metavar="FILE", type=Path, help="write every run, as JSON")
    add("--seed", metavar="N", type=int, help="of the order of the runs (a new one)")
    add("--check", metavar="FILE", type=Path,
        help="measure these settings again, on the program that FILE names")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    try:
        if arguments.check is None and not arguments.behind:
            raise WrongUse("expected a program after --, as in: hakmem tune -- ./app input")
        if arguments.check is not None and arguments.behind:
            raise WrongUse("--check takes the program, and how to run it, from the file")
        variants.check([arguments.base], arguments.front)
        extras.loaded("asked").checked(arguments)
        return int(extras.loaded("tune_cli").run(arguments))
    except (
        *(extras.NotInstalled, extras.CannotInstall, WrongUse),
        *(NoRecording, NoModule, CannotWrite),
    ) as why:
        print(f"hakmem tune: {printable(str(why))}", file=sys.stderr)
        return why.status
