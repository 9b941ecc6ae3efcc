"""`hakmem bench` on the command line. What it measures with is the package hakmem_yardstick, which
wants libraries that may be missing: --help does without either, --list without the libraries."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hakmem import extras, variants
from hakmem.arguments import WrongUse, number

GROUPS = ("seed", "micro", "threads", "stress", "memory", "tail", "programs", "counts")
"""Of rows."""

REPORT = "report"

HELP = "compare hakmem with other allocators, on rows of its own and real programs"
DESCRIPTION = """\
Compares hakmem with other allocators: runs each row (a benchmark with its parameters) on all of
them in turn, many times over, and prints what is better, worse, or not shown to differ. All runs,
the machine and the settings are written to a folder, with a report to look at.

Standard takes less than an hour: rows are repeated until the 95% interval of hakmem to the best
peer is within 2%, or the time is up. An interrupt (control-C) keeps what has finished.
"""
EPILOG = """\
The times are those of an idle machine, without what comes before: where other allocators must be
fetched and built first, or the benchmarks themselves, it says how long that takes, once.

examples:
  hakmem bench --quick                           the essence, in about 3 minutes
  hakmem bench                                   what decides, in less than an hour
  hakmem bench --only memory --vs glibc,jemalloc
  hakmem bench --rows 'mixed-*,pair-64' --rounds 5
  hakmem bench --quick --lib mine=./libmine.so   with an allocator of yours
  hakmem bench --full --out results              everything, in hours
  hakmem bench --resume results                  goes on where it was interrupted
  hakmem bench report results/results.json       the tables and the report once more

exit status:
  0    all was run
  1    all was run, and hakmem itself failed on a row
  2    wrong usage, or it can't begin, or can't write what it found
  125  hakmem+NAME=VALUE names no option, or gives it a value that is not allowed
  130  interrupted, by SIGTERM 143, by SIGHUP 129; what had finished is kept
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "hakmem bench [OPTION]... [report FILE | --resume [DIR]]"
    add = parser.add_argument
    add(
        "words",
        metavar="report FILE",
        nargs="*",
        help="print the tables of a results.json, packed as .json.gz or not, and write its report"
        " beside it or to --out; with --resume, the folder of the session",
    )
    add("--quick", action="store_true", help="rows that show the essence, about 3 minutes")
    add("--full", action="store_true", help="all rows, at least 6 rounds, however long it takes")
    add(
        "--only",
        metavar="GROUP",
        action="append",
        help=f"rows of this group alone, of {', '.join(GROUPS)}; may be repeated",
    )
    add(
        "--rows",
        metavar="GLOBS",
        action="append",
        help="these rows alone, as in 'pair*,mixed-400'",
    )
    add(
        "--half",
        choices=["tuning"],
        help="only rows that may tune hakmem; the other half judges its changes and is not looked"
        " at row by row",
    )
    add(
        "--vs",
        metavar="NAMES",
        action="append",
        help="compare with these alone, as in glibc,jemalloc",
    )
    add(
        "--lib",
        metavar="NAME=PATH",
        action="append",
        help="one more allocator, from its library",
    )
    add("--out", metavar="DIR", type=Path, help="where results go (hakmem-bench-DATE-TIME)")
    add(
        "--resume",
        action="store_true",
        help="go on with a session that was interrupted: DIR, or the newest here",
    )
    add("--rounds", metavar="N", type=number(int, 1), help="exactly so many rounds of every row")
    add(
        "--seconds",
        metavar="S",
        type=number(float, 1),
        help="so long for all, with at least 3 rounds",
    )
    add(
        "--scale",
        metavar="F",
        type=float,
        help="so much of each row's work, as in 0.1; rows of memory, tail and counts keep theirs",
    )
    add(
        "--timeout",
        metavar="S",
        type=number(float, 0.1, 1e6),
        help="a run that takes longer counts as a hang",
    )
    add("--list", action="store_true", help="print the rows that would be run, and run nothing")


def _take_words(arguments: argparse.Namespace) -> None:
    """The words that are no options, as what they mean. Raises WrongUse."""
    words, arguments.show = arguments.words, None
    if words[:1] == [REPORT]:
        if len(words) != 2:
            raise WrongUse(
                "expected one file after report, as in: hakmem bench report results.json"
            )
        arguments.show, words = Path(words[1]), []
    if len(words) > 1:
        raise WrongUse(f"unexpected {words[1]!r}")
    arguments.folder = words[0] if words else None


def run(arguments: argparse.Namespace) -> int:
    try:
        _take_words(arguments)
        listing = extras.loaded("listing")
        if arguments.list:
            print(listing.text(listing.chosen(listing.rows(), arguments)), end="")
            return 0
        variants.check(listing.split(arguments.vs), arguments.front)
        extras.loaded("bench_asked").check(arguments)
        extras.need("plots")
        return int(extras.loaded("bench_cli").run(arguments))
    except (extras.NotInstalled, extras.CannotInstall, WrongUse) as why:
        print(f"hakmem bench: {why}", file=sys.stderr)
        return why.status
