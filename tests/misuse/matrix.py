"""Runs every kind of misuse on several allocators, and writes which of them end the program.

A kind is a small program with one wrong call or access (tests/misuse/kinds); `misuse_kinds --list`
prints them all, with the endings that are right. Each runs several times, since some endings depend
on chance. yardstick/tools/kinds.py gets the other allocators and starts this.

  tests/misuse/matrix.py --kinds build/release/tests/misuse/misuse_kinds --lib NAME=PATH[,VAR=VALUE]
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

# Of the environment, what would configure an allocator.
CONFIGURING = re.compile(
    r"(HAKMEM|MALLOC|MIMALLOC|JE_MALLOC|JEMALLOC|_RJEM|SCUDO|SNMALLOC)_|GLIBC_TUNABLES$|LD_"
)
PATIENCE = 300.0  # seconds; a run takes milliseconds, so only one that hangs comes near
HANG = "hangs"
ENDED = {"at once", "later", "earlier"}


@dataclass(frozen=True)
class Kind:
    name: str
    right: frozenset[str]
    what: str


@dataclass(frozen=True)
class Allocator:
    name: str
    library: Path | None = None
    """Null: the C library's own malloc."""
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Ending:
    how: str
    """When it was ended, else the outcome that the kind printed. An end comes too late after malloc
    returned one block twice, or an address that the program had made up: "twins, later"."""
    by: str = ""
    """The signal that ended it. "reported": none, but the allocator wrote a line."""
    report: str = ""
    """The first line that the allocator wrote about it, without its numbers."""

    @property
    def is_end(self) -> bool:
        """One of the outcomes that a kind prints is called `later`, too."""
        return self.how in ENDED and self.by not in ("", "reported")

    def __str__(self) -> str:
        return f"{self.how} {self.by}".strip()


Matrix = dict[Kind, dict[str, list[Ending]]]


def kinds(program: Path) -> list[Kind]:
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
    rows = (line.split("\t") for line in listed.stdout.splitlines())
    return [Kind(name, frozenset(right.split(", ")), what) for name, right, what in rows]


def is_right(kind: Kind, ending: Ending) -> bool:
    return ("ended" if ending.is_end else ending.how) in kind.right


def first_line(error: str) -> str:
    """Addresses and numbers of processes differ from run to run."""
    lines = (re.sub(r"^=+\s*$", "", line).strip() for line in error.splitlines())
    line = next(filter(None, lines), "")
    line = re.sub(r"\b(0x)?[0-9a-fA-F]{6,}\b", "ADDRESS", line)
    return re.sub(r"\s+", " ", re.sub(r"\b(thread|process|pid)\W+\S*\d\S*", r"\1 N", line))[:120]


def ending(status: int, output: str, error: str) -> Ending:
    if status == 0:
        found = re.search(r"^end (\S+)$", output, re.MULTILINE)
        if found is None:
            raise SystemExit(f"a kind came to its end and printed no outcome: {output}{error}")
        return Ending(found[1], "reported" if error else "", first_line(error))
    if status > 0 and not re.search("^before$", output, re.MULTILINE):
        raise SystemExit(f"a kind could not run, status {status}: {output}{error}")
    how = "later" if "after\n" in output else "at once" if "before\n" in output else "earlier"
    by = signal.Signals(-status).name if status < 0 else f"exit {status}"
    harm = re.search("^(twins|chosen)$", output, re.MULTILINE)
    how = f"{harm[1]}, {how}" if harm else how
    return Ending(how, by, first_line(error))


def environment(allocator: Allocator) -> dict[str, str]:
    kept = {name: v for name, v in os.environ.items() if not CONFIGURING.match(name)}
    if allocator.library is not None:
        kept["LD_PRELOAD"] = str(allocator.library)
    return kept | dict(allocator.environment)


def run(program: Path, kind: Kind, allocator: Allocator, patience: float = PATIENCE) -> Ending:
    command = [str(program), kind.name]
    try:
        done = subprocess.run(
            command,
            env=environment(allocator),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience,
        )
    except subprocess.TimeoutExpired:
        return Ending(HANG)
    return ending(
        done.returncode, *(part.decode(errors="replace") for part in (done.stdout, done.stderr))
    )


def run_all(
    program: Path,
    chosen: Iterable[Kind],
    allocators: Iterable[Allocator],
    runs: int,
    jobs: int,
    patience: float = PATIENCE,
) -> Matrix:
    pairs = [(kind, one) for kind in chosen for one in allocators for _ in range(runs)]
    matrix: Matrix = {}
    with ThreadPoolExecutor(jobs) as pool:
        endings = pool.map(lambda pair: run(program, pair[0], pair[1], patience), pairs)
        for (kind, one), found in zip(pairs, endings, strict=True):
            matrix.setdefault(kind, {}).setdefault(one.name, []).append(found)
    return matrix


# ---- what is written ----


def cell(found: list[Ending]) -> str:
    """Endings with how often each was; the reports' first lines stand in `reports`."""
    counts = Counter(str(one) for one in found).most_common()
    if len(counts) == 1:
        return counts[0][0]
    return ", ".join(f"{words} {count}/{len(found)}" for words, count in counts)


def names_of(matrix: Matrix) -> list[str]:
    return list(dict.fromkeys(name for row in matrix.values() for name in row))


def tsv(matrix: Matrix, origins: Iterable[str] = ()) -> str:
    names = names_of(matrix)
    lines = [*(f"# {origin}" for origin in origins), "\t".join(["kind", "right", *names])]
    for kind, row in matrix.items():
        right = ", ".join(sorted(kind.right))
        lines.append("\t".join([kind.name, right, *(cell(row[name]) for name in names)]))
    return "\n".join(lines) + "\n"


def reports(matrix: Matrix) -> str:
    """What each allocator says, and of how many kinds."""
    said: Counter[tuple[str, str]] = Counter()
    for row in matrix.values():
        for name, found in row.items():
            said.update({(name, one.report) for one in found if one.report})
    ordered = sorted(said.items(), key=lambda item: (item[0][0], -item[1]))
    lines = [f"{name}\t{count}\t{line}" for (name, line), count in ordered]
    return "\n".join(["allocator\tkinds\treport", *lines]) + "\n"


def always(kind: Kind, found: list[Ending]) -> bool:
    return all(is_right(kind, one) for one in found)


def sums(matrix: Matrix) -> str:
    lines = [f"{'allocator':24} right, always  sometimes  never  absent  (of {len(matrix)} kinds)"]
    for name in names_of(matrix):
        counts = Counter(
            "absent" if any(one.how == "absent" for one in row[name])
            else "always" if always(kind, row[name])
            else "sometimes" if any(is_right(kind, one) for one in row[name])
            else "never"
            for kind, row in matrix.items()
        )  # fmt: skip
        lines.append(
            f"{name:24} {counts['always']:13} {counts['sometimes']:10} {counts['never']:6} "
            f"{counts['absent']:7}"
        )
    return "\n".join(lines)


def missed(matrix: Matrix, ours: list[str]) -> Iterator[str]:
    """Kinds that another gets right, at least sometimes, and none of `ours` always does."""
    for kind, row in matrix.items():
        if any(always(kind, row[name]) for name in ours):
            continue
        others = [
            f"{name} ({cell(found)})"
            for name, found in row.items()
            if name not in ours and any(is_right(kind, one) for one in found)
        ]
        if others:
            own = "; ".join(f"{name}: {cell(row[name])}" for name in ours)
            yield f"{kind.name}\t{own}\t{', '.join(others)}"


# ---- today's endings, as a test ----


LASTING = ENDED | {"apart", "null"}
"""Endings that depend on no layout of memory, and on no time."""
TRIES = 3


def difference(program: Path, kind: Kind, allocator: Allocator, wanted: str) -> str:
    """Empty if it ended as expected. Every run must be right. When an error is found may depend on
    how long the process waited for a processor, so one run in three must be as expected."""
    for _ in range(TRIES):
        found = run(program, kind, allocator)
        if str(found) == wanted:
            return ""
        if not is_right(kind, found):
            break
    return f"{kind.name} on {allocator.name}: expected {wanted}, found {found} {found.report}"


def rows_of(table: str) -> list[list[str]]:
    """The header and the kinds of a table that `tsv` wrote."""
    return [line.split("\t") for line in table.splitlines() if line[:1] != "#"]


def lasts(kind: Kind, cell: str) -> bool:
    """Whether that cell is the right ending, and the only one. Not one by an access to memory that
    is not there: another layout may have some there."""
    how, _, by = cell.rpartition(" ") if "SIG" in cell else (cell, "", "")
    one = Ending(how, by)
    return how in LASTING and is_right(kind, one) and by != signal.SIGSEGV.name


def differences(program: Path, hakmem: list[Allocator], table: Path, jobs: int) -> list[str]:
    """From what the table says of hakmem's columns, where that lasts."""
    header, *rows = rows_of(table.read_text())
    cells = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    known = kinds(program)
    missing = {kind.name for kind in known} ^ cells.keys()
    if missing:
        raise SystemExit(f"{table} or {program} lacks {', '.join(sorted(missing))}: see --update")
    wanted = [
        (kind, one, cells[kind.name][one.name])
        for kind in known
        for one in hakmem
        if lasts(kind, cells[kind.name][one.name])
    ]
    with ThreadPoolExecutor(jobs) as pool:
        found = pool.map(lambda each: difference(program, *each), wanted)
        return [words for words in found if words]


# ---- the command ----

HAKMEM, CHECKED, HARDENED = "hakmem", "hakmem, checks", "hakmem, hardened"


def updated(table: str, matrix: Matrix) -> str:
    """A table that `tsv` wrote, with the columns of these allocators as they are now. Of a kind
    that it lacks the others' cells stay empty."""
    header, *rows = rows_of(table)
    old = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    now = {
        kind.name: {"kind": kind.name, "right": ", ".join(sorted(kind.right))}
        | {name: cell(found) for name, found in row.items()}
        for kind, row in matrix.items()
    }
    merged = {name: old.get(name, {}) | now.get(name, {}) for name in [*old, *now]}
    lines = [*(line for line in table.splitlines() if line[:1] == "#"), "\t".join(header)]
    lines += ["\t".join(row.get(name, "") for name in header) for row in merged.values()]
    return "\n".join(lines) + "\n"


def of_hakmem(library: Path, options: Iterable[str] = ()) -> list[Allocator]:
    pairs = (option.split("=", 1) for option in options)
    set_ = {f"HAKMEM_{name.upper()}": value for name, value in pairs}
    checks = {"HAKMEM_CHECK_FREES": "on", "HAKMEM_CHECK_SIZES": "on"}
    return [
        Allocator(HAKMEM, library, set_),
        Allocator(CHECKED, library, checks | set_),
        Allocator(HARDENED, library, {"HAKMEM_PRESET": "hardened"} | set_),
    ]


def of_argument(text: str) -> Allocator:
    name, _, rest = text.partition("=")
    path, *settings = rest.split(",")
    variables = dict(setting.split("=", 1) for setting in settings)
    if path and not Path(path).is_file():
        raise SystemExit(f"--lib {name}: there is no {path}")
    return Allocator(name, Path(path).resolve() if path else None, variables)


def write(matrix: Matrix, ours: list[str], folder: Path, origins: Iterable[str] = ()) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "matrix.tsv").write_text(tsv(matrix, origins))
    (folder / "reports.tsv").write_text(reports(matrix))
    others_only = "\n".join(missed(matrix, ours))
    (folder / "missed.tsv").write_text(others_only + "\n")
    print(sums(matrix))
    print(f"\nright elsewhere, and not always in any of {', '.join(ours)}:\n{others_only}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kinds", type=Path, required=True, help="the built misuse_kinds")
    parser.add_argument("--hakmem", type=Path, required=True, help="the built libhakmem.so")
    lib_help = "another allocator: NAME=PATH[,VAR=VALUE]; without a path the C library's"
    parser.add_argument("--lib", type=of_argument, action="append", default=[], help=lib_help)
    parser.add_argument("--only", default="", help="kinds with this in their name")
    parser.add_argument("-o", metavar="NAME=VALUE", action="append", default=[], help="of hakmem")
    parser.add_argument("--runs", type=int, default=5, help="of each kind and allocator")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a folder for the tables")
    expect_help = "a matrix.tsv: fail if a kind ends otherwise on hakmem, where its ending lasts"
    parser.add_argument("--expect", type=Path, help=expect_help)
    parser.add_argument("--update", type=Path, help="that: change these allocators' columns")
    arguments = parser.parse_args()
    program = arguments.kinds.resolve()
    ours = of_hakmem(arguments.hakmem.resolve(), arguments.o)
    if arguments.expect:
        differ = differences(program, ours, arguments.expect, arguments.jobs)
        print("\n".join([*differ, f"{len(differ)} ended otherwise than {arguments.expect} says"]))
        return 1 if differ else 0
    chosen = [kind for kind in kinds(program) if arguments.only in kind.name]
    allocators = [*ours, *arguments.lib]
    matrix = run_all(program, chosen, allocators, arguments.runs, arguments.jobs)
    names = [one.name for one in ours]
    if arguments.update:
        arguments.update.write_text(updated(arguments.update.read_text(), matrix))
    if arguments.out:
        write(matrix, names, arguments.out)
    else:
        print(tsv(matrix))
    return 0


if __name__ == "__main__":
    sys.exit(main())
