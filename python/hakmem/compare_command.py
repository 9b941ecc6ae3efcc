"""`hakmem compare` on the command line. What it measures with is the package hakmem_yardstick,
which wants libraries that may be missing: --help does without either."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hakmem import extras, variants
from hakmem.arguments import WrongUse, number

HELP = "compare allocators, or settings, on a program of yours"
DESCRIPTION = """\
Runs a program on two allocators or more, many times and in random order, and reports what each
costs: time, processor time, memory at the peak and on average, page faults. All are compared with
the first that is named. A difference is called better or worse only where noise does not explain
it: the chance that a run without any real difference reports one is 5%, all its verdicts together.

An allocator is hakmem, glibc (the system's), one that 'hakmem bench' knows, one with settings as in
hakmem+keep_bytes=16M or glibc+MALLOC_ARENA_MAX=1, or a library of yours as in mine=./mine.so.
A first run on each, which is not measured, proves that the program uses it.

Without --rounds or --seconds: at least 10 rounds, until all intervals are narrow (--precision), for
3 minutes or up to 30 rounds.
"""
EPILOG = """\
examples:
  hakmem compare glibc hakmem -- ./your-program --its-option
  hakmem compare --rounds 20 --json runs.json hakmem jemalloc mimalloc2 -- python3 app.py
  hakmem compare hakmem hakmem+keep_bytes=16M -- ./your-program
  hakmem compare --prepare 'rm -rf out' --html report.html glibc hakmem -- make -C project
  hakmem compare --fail-if-worse --measures time,peak old=./old.so new=./new.so -- ./test

exit status:
  0    compared; what the verdict is
  1    with --fail-if-worse: something was shown to be worse
  2    wrong usage, no such program or allocator; --setup or --prepare failed
  3    an allocator is not active in the program
  4    the program failed on an allocator, or its output differs
  125  hakmem+NAME=VALUE names no option, or gives it a value that is not allowed
  130  interrupted; by SIGTERM 143, by SIGHUP 129
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "hakmem compare [OPTION]... A B [C]... -- PROGRAM [ARG]..."
    add = parser.add_argument
    add(
        "allocators",
        metavar="ALLOCATOR",
        nargs="*",
        help="what to compare, the first with each other one",
    )
    add("--rounds", metavar="N", type=number(int, 1), help="exactly so many runs on each")
    add("--seconds", metavar="S", type=number(float, 0), help="so long, or until narrow enough")
    add(
        "--precision",
        metavar="P",
        default="1%",
        help="how narrow is enough: intervals of ratios +- this (0.01)",
    )
    add(
        "--measures",
        metavar="NAMES",
        help="what to judge; the fewer, the more is shown (time,cpu,peak,pss,faults)",
    )
    add(
        "--timeout",
        metavar="S",
        type=number(float, 0.001, 1e6),
        default=600.0,
        help="of one run, which then failed (600)",
    )
    add("--stdin", metavar="FILE", type=Path, help="its standard input (empty)")
    add(
        "--output",
        metavar="FILE",
        type=Path,
        help="add its standard output, at most 16 MiB of a run (thrown away)",
    )
    add("--check-output", action="store_true", help="its standard output must be always the same")
    add("--ignore-exit-status", action="store_true", help="one above 0 is no failure")
    add("--setup", metavar="COMMAND", help="run by sh once, before all")
    add("--prepare", metavar="COMMAND", help="run by sh before each run, not measured")
    add("--cd", metavar="DIR", type=Path, help="where it runs")
    add("--json", metavar="FILE", type=Path, help="write every run, as JSON")
    add("--markdown", metavar="FILE", type=Path, help="write the table")
    add("--html", metavar="FILE", type=Path, help="write the table with plots, in one file")
    add("--fail-if-worse", action="store_true", help="exit with 1 if anything is shown worse")
    add("--seed", metavar="N", type=int, help="of the order of the runs (a new one)")


def allocators() -> list[str]:
    """The names that it knows."""
    return list(extras.loaded("allocators").names())


EXAMPLE = "as in: hakmem compare glibc hakmem -- ls -l"


def run(arguments: argparse.Namespace) -> int:
    try:
        if not arguments.behind:
            raise WrongUse(f"expected a program after --, {EXAMPLE}")
        if len(arguments.allocators) < 2:
            raise WrongUse(f"expected two allocators or more, {EXAMPLE}")
        variants.check(arguments.allocators, arguments.front, arguments.cd)
        extras.loaded("compare_asked").asked(arguments)
        if arguments.html is not None:
            extras.need("plots")
        return int(extras.loaded("compare_cli").run(arguments))
    except (extras.NotInstalled, extras.CannotInstall, WrongUse) as why:
        print(f"hakmem compare: {why}", file=sys.stderr)
        return why.status
