"""`hakmem leaks`: what a search for leaks found, and what is said of a program at its end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hakmem import heap_profile, leaks, perf_map, symbols
from hakmem.arguments import number
from hakmem.heap_profile import NoProfile
from hakmem.hint import hint
from hakmem.leaks import LOST, OTHER, THROUGH, Found, WrongSuppression
from hakmem.outputs import CannotWrite, replace
from hakmem.profile_text import printable, short, size
from hakmem.symbols import Stack
from hakmem.wrappers import Wrappers

HELP = "show which blocks a program lost (memory leaks)"
DESCRIPTION = (
    "Shows which blocks a program had lost when it ended, by the call stacks that allocated them."
)
EPILOG = """\
'hakmem run --leaks PROGRAM' prints this when a process of the program ends. With --leaks=FILE it
writes FILE instead, and 'hakmem leaks FILE' shows it.

A block is reachable if its address, or one inside it, is found in a global variable, a stack, a
register, memory that the program mapped, or in another reachable block. All other blocks are lost:
the program can't free them any more. 'through' are blocks to which only the lost ones of that line
refer. They are lost, too, and are often freed by the fix for these.

A file of suppressions has a line leak:PATTERN for each leak that does not count, and comments after
#. The pattern is compared with the functions, source files and modules of the call stack. It
matches a part of a name; * stands for anything, ^ for the beginning of a name, $ for its end.

Rows begin with the first function that is no wrapper of malloc, such as xmalloc, g_malloc,
PyMem_Malloc or strdup (docs/profile.md lists them). --wrapper names further ones.

examples:
  hakmem run --leaks ./app
  hakmem run --leaks=app.leaks ./app
  hakmem leaks --reachable app.leaks
  hakmem run --leaks --leaks-status=1 --leaks-suppressions=known.txt ./app

exit status:
  0  success
  1  FILE can't be read or was not made by 'hakmem run --leaks'
  2  wrong usage, no such file, or a file of suppressions is wrong
  5  the output can't be written
  N  with --status=N: something is lost that no suppression matches
"""
TOP, DEPTH = 50, 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--suppressions",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="leaks that do not count; may be repeated",
    )
    parser.add_argument(
        "--indirect", action="store_true", help="also show where the 'through' blocks come from"
    )
    parser.add_argument("--reachable", action="store_true", help="also show reachable blocks")
    parser.add_argument(
        "--top", metavar="N", type=number(int, 1), default=TOP,
        help=f"call stacks in each table (default: {TOP})",
    )  # fmt: skip
    parser.add_argument(
        "--depth", metavar="N", type=number(int, 1), default=DEPTH,
        help=f"functions of each call stack (default: {DEPTH})",
    )  # fmt: skip
    parser.add_argument(
        "--status", metavar="N", type=number(int, 0, 255), default=0,
        help="exit status if something is lost (default: 0)",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="COPY", type=Path,
        help="copy FILE to COPY, and print one line only, unless COPY can't be written",
    )  # fmt: skip
    parser.add_argument("--name", help="what to call the program (default: FILE)")
    symbols.add_options(parser)
    parser.add_argument("file", metavar="FILE", type=Path, help="a file of 'hakmem run --leaks'")


def run(arguments: argparse.Namespace) -> int:
    try:
        return _run(arguments)
    except (NoProfile, WrongSuppression, CannotWrite) as why:
        print(f"hakmem leaks: {printable(str(why))}", file=sys.stderr)
        return why.status


def _run(arguments: argparse.Namespace) -> int:
    path: Path = arguments.file
    suppressions = [one for file in arguments.suppressions for one in leaks.read_suppressions(file)]
    profile, unread = perf_map.with_made_here(heap_profile.read(path), path)
    try:
        found = leaks.find(
            profile,
            suppressions,
            arguments.reachable,
            debug_dirs=(*arguments.debug_dir, symbols.DEBUG_DIR),
            written=profile.written or path.stat().st_mtime,
            known=Wrappers(arguments.wrapper),
            servers=arguments.name is None,  # else it is the end of a process, which waits
        )
    except NoProfile as why:
        raise NoProfile(f"{path}: {why}") from why
    for note in (*unread, *found.notes):
        print(f"hakmem leaks: {printable(note)}", file=sys.stderr)
    if profile.lost:
        print(
            f"hakmem leaks: {profile.lost} blocks have no call stack: there was no memory for it",
            file=sys.stderr,
        )
    name = arguments.name or str(path)
    lines = [f"{printable(name)}: {_summary(found)}"]
    status = 0
    if arguments.output is None or not _copied(profile.text, arguments.output):
        status = 0 if arguments.output is None else CannotWrite.status
        lines += _tables(found, arguments)
    else:
        lines[0] += f"; see 'hakmem leaks {printable(str(arguments.output))}'"
    with suppress(BrokenPipeError):
        print("\n".join(lines), flush=True)
    if found.lost:
        hint(
            "find where the blocks of the first site should be freed; --suppressions FILE accepts"
            " known leaks"
        )
    return int(arguments.status or status) if found.lost else status


def _copied(text: str, path: Path) -> bool:
    """What can't be copied is printed instead: it may be all that is left of a program."""
    try:
        replace(path, text.encode(errors="surrogateescape"))
    except CannotWrite as why:
        print(f"hakmem leaks: {printable(str(why))}", file=sys.stderr, flush=True)
        return False
    return True


# ---- text ----


def _amount(figures: tuple[float, float]) -> str:
    blocks, bytes_ = figures
    return f"{size(bytes_)} in {blocks:.0f} block{'' if blocks == 1 else 's'}"


def _summary(found: Found) -> str:
    lost = leaks.total(found.lost, LOST)
    said = "nothing is lost"
    if lost[0]:
        said = f"lost {_amount(lost)}"
        through = leaks.total(found.lost, THROUGH)
        if through[0]:
            said += f", through them {_amount(through)}"
    hidden = leaks.total(found.suppressed, LOST)
    if hidden[0]:
        said += f"; suppressed {_amount(hidden)}"
    return f"{said}; reachable {_amount(found.reachable_sum)}"


def _tables(found: Found, arguments: argparse.Namespace) -> Iterator[str]:
    if found.lost:
        yield ""
        yield f"{'lost':>12}{'blocks':>10}{'through':>12}{'blocks':>10}  site"
        yield from _rows(found.lost, (LOST, THROUGH), arguments)
    for wanted, title, stacks in (
        (arguments.indirect, "indirect", found.indirect),
        (arguments.reachable, "reachable", found.reachable),
    ):
        if wanted and stacks:
            yield ""
            yield f"{title:>12}{'blocks':>10}  site"
            yield from _rows(stacks, (OTHER,), arguments)


def _rows(
    stacks: tuple[Stack, ...], places: tuple[int, ...], arguments: argparse.Namespace
) -> Iterator[str]:
    def figures(some: tuple[Stack, ...]) -> str:
        sums = [leaks.total(some, at) for at in places]
        return "".join(f"{size(bytes_):>12}{blocks:>10.0f}" for blocks, bytes_ in sums)

    for stack in stacks[: arguments.top]:
        lines = [short(line) for line in stack.row()] or ["(no stack)"]
        yield f"{figures((stack,))}  {lines[0]}"
        for line in lines[1 : arguments.depth]:
            yield f"{'':{22 * len(places)}}  {line}"
    left = stacks[arguments.top :]
    if left:
        yield f"{figures(left)}  in {len(left)} other sites"
