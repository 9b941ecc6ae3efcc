"""`hakmem sheet`: what the memory of a running process is used for."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePath

from hakmem import look, profile_text, sites
from hakmem.arguments import number
from hakmem.hint import hint
from hakmem.look import CannotLook, Line, Requested, Sheet, in_tenths, mib, rounded
from hakmem.sites import Seen, Sites

HELP = "show what the memory of a running process is used for"
DESCRIPTION = HELP[0].upper() + HELP[1:] + "."
EPILOG = """\
Reads the process from outside. It needs no preparation: no option has to be set when the process
starts. The process is not stopped, and no code runs in it.

The lines add up to the resident memory (RSS) that the kernel reports. Where a line can be reduced,
'could be' says to what, and 'by' says how. A block in use counts with the size of its class, which
is up to an eighth more than the program asked for. If the heap changes while it is read, a few
milliseconds, the difference is shown as 'not accounted for'.

Where a heap profile is on in the process, or was, the last line has how much of the blocks in use
the program requested: the rest is rounding to size classes. It is an estimate from the sampled
blocks, with its standard error.

Reading another process needs the same rights as a debugger: root, or the same user where
kernel.yama.ptrace_scope is 0.

Of a core file, sizes are of what was dumped: what was resident is not known.

With --sites, the call stacks follow that hold most of the memory, of the blocks that were allocated
while a heap profile was on ('hakmem set PID profile=on'); with --seconds those that grew most, too.
Then come the size classes with much free memory in pages that are at least half free. It can't go
back because of the blocks in use there. The sites that have blocks of these classes follow. Which
of their blocks lie in such pages is not known.

examples:
  hakmem sheet 4711
  hakmem sheet --sites --seconds 60 4711
  hakmem sheet --classes --threads 4711
  hakmem sheet /var/lib/systemd/coredump/core
  hakmem sheet --json 4711 | jq '.heap[] | {name, resident}'

exit status:
  0  success
  1  the process does not use hakmem, or its heap can't be read
  2  wrong usage, or no such process
  3  no permission to read the process
"""
TOP = 5
PARTS = 3  # named in the table, of each line
NAME_MOST = 30
COVERED = 0.8  # of the bytes in use; where samples stand for less, the sheet says so


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="write JSON; sizes are in bytes")
    parser.add_argument("--classes", action="store_true", help="show all size classes, too")
    parser.add_argument(
        "--threads", action="store_true", help="show what each thread's cache holds, too"
    )
    parser.add_argument(
        "--sites",
        action="store_true",
        help="show which code holds the memory, too, where a heap profile is on in the process",
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=number(int, 1),
        default=TOP,
        help=f"sites that --sites shows (default: {TOP})",
    )
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=number(float, 0, 1e6),
        help="look twice, so many seconds apart, and show which sites grew; implies --sites",
    )
    parser.add_argument("subject", metavar="PID|CORE", help="a running process, or a core file")


def run(arguments: argparse.Namespace) -> int:
    with_sites = arguments.sites or arguments.seconds is not None
    seen = None
    try:
        subject = look.read_subject(arguments.subject)
        if with_sites and not isinstance(subject, int):
            raise CannotLook(look.USAGE, "--sites needs a running process")
        if isinstance(subject, int) and with_sites:
            seen = _sites(subject, arguments)
        sheet = look.sheet(subject, arguments.library)
    except CannotLook as why:
        print(f"hakmem sheet: {profile_text.printable(str(why))}", file=sys.stderr)
        return why.status
    shown = list(lines(sheet))
    if seen is not None:
        shown += ["", *sites.lines(seen, sheet, arguments.top)]
    if arguments.classes:
        shown += ["", *classes(sheet)]
    if arguments.threads:
        shown += ["", *threads(sheet)]
    said = sheet.json() | ({} if seen is None else {"sites": seen.json(arguments.top)})
    text = json.dumps(said, indent=2) if arguments.json else "\n".join(shown)
    with suppress(BrokenPipeError):
        print(text, flush=True)
    if not arguments.json:
        hint(f"'hakmem why {arguments.subject}' says why it is so large, and what to do")
    return 0


def _sites(pid: int, arguments: argparse.Namespace) -> Seen:
    process = Sites(pid, arguments.library)
    seen = process.look()
    if arguments.seconds is None:
        return seen
    time.sleep(arguments.seconds)
    return process.look()


LIMITS = {"soft": "soft_limit_bytes", "hard": "hard_limit_bytes", "container": "the container"}


def lines(sheet: Sheet) -> Iterator[str]:
    whose = f"{sheet.program} (PID {sheet.pid})" if sheet.pid else sheet.program
    yield (
        f"{whose}, hakmem {sheet.version}: {mib(sheet.resident)} MiB "
        f"{'resident' if sheet.pid else 'dumped'}, {mib(sheet.live)} MiB in blocks in use"
    )
    yield ""
    yield f"{'heap':<40}{'MiB':>9}{'%':>6}{'could be':>10}  by"
    yield from _rows(sheet, sheet.heap)
    yield ""
    yield "outside the heap"
    yield from _rows(sheet, sheet.others, sum(line.resident for line in sheet.heap))
    yield ""
    yield f"{'total':<40}{mib(sheet.resident):>9}{'100':>6}{_kernel(sheet)}"
    if any(sheet.swapped.values()):
        yield f"{'in swap, not resident':<40}{mib(sum(sheet.swapped.values())):>9}" + (
            f"{'':>16}  heap {mib(sheet.swapped['heap'])}, other {mib(sheet.swapped['others'])}"
        )
    limits = {name: bytes for name, bytes in sheet.seen["limits"].items() if bytes is not None}
    if limits:
        said = ", ".join(f"{LIMITS[name]} {mib(bytes)}" for name, bytes in limits.items())
        yield f"limits in MiB: {said}; of the heap count {mib(sheet.seen['held'])}"
    if sheet.requested is not None:
        yield _requested(sheet, sheet.requested)


def classes(sheet: Sheet) -> Iterator[str]:
    """Size classes, those with the most resident memory first. The last column is the resident
    memory of free blocks that are not in caches, in MiB."""
    titles = ("size", "in use", "MiB", "free", "MiB", "in caches", "RSS MiB", "RSS free")
    widths = (18, 9, 8, 9, 8, 10, 8, 9)  # a terminal of 80 columns
    head = "".join(f"{t:>{w}}" for t, w in zip(titles, widths, strict=True))
    yield "size classes" + head.removeprefix(" " * len("size classes"))
    rows = [(sum(row["resident"].values()), row) for row in sheet.seen["classes"]]
    for resident, row in sorted(rows, key=lambda one: -one[0]):
        size = row["size"]
        cells = (
            str(size),
            str(row["live"]),
            mib(row["live"] * size),
            str(row["free"]),
            mib(row["free"] * size),
            str(row["cached"] + row["in_transfer"]),
            mib(resident),
            mib(row["resident"]["holes"] + row["resident"]["free_pages"]),
        )
        yield "".join(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True))


def threads(sheet: Sheet) -> Iterator[str]:
    """Threads' caches, the largest first. Caches of threads that ended wait for new threads."""
    yield f"{'thread caches':<24}{'thread':>10}{'free blocks':>13}{'MiB':>9}"
    for cache in sorted(sheet.seen["caches"], key=lambda one: -one["bytes"]):
        name = cache["name"] if cache["living"] else "(ended)"
        number = cache["thread"] or "-"
        yield f"  {name:<22}{number:>10}{cache['blocks']:>13}{mib(cache['bytes']):>9}"


def _requested(sheet: Sheet, found: Requested) -> str:
    share = f"{100 * found.share:.1f}% ± {100 * found.share_error:.1f}% of the blocks in use"
    covered = found.stand_for / max(sheet.live, 1)
    some = "" if covered > COVERED else f" for {100 * covered:.0f}% of them"
    return (
        f"{'blocks in use, as requested':<40}{mib(found.size):>9}{'':>16}  "
        f"{share} (estimate{some}, {found.samples} samples)"
    )


def _kernel(sheet: Sheet) -> str:
    if sheet.before == 0:
        return ""
    low, high = sorted((sheet.before, sheet.after))
    said = mib(low) if mib(low) == mib(high) else f"{mib(low)} to {mib(high)}"
    return f"  (kernel: {said})"


def _rows(sheet: Sheet, shown: tuple[Line, ...], before: int = 0) -> Iterator[str]:
    """What is shown of each is how much further the sum is with it, as that is shown: so what is
    shown adds up, too."""
    for line in shown:
        now = before + line.resident
        size = rounded(now) - rounded(before)
        whole = max(sheet.resident, 1)
        share = rounded(100 * now, whole) - rounded(100 * before, whole)
        before = now
        if line.resident == 0:
            continue
        could = "" if line.could_be is None else mib(line.could_be)
        after = line.how or ", ".join(
            f"{_short(name)} {mib(size)}" for name, size in line.parts[:PARTS]
        )
        cells = f"{in_tenths(size):>9}{in_tenths(share):>6}{could:>10}"
        row = f"  {line.title:<38}{cells}  {after}"
        yield row.rstrip()


def _short(name: str) -> str:
    last = PurePath(name).name or name
    return last if len(last) <= NAME_MOST else last[: NAME_MOST - 1] + "…"
