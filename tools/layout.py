#!/usr/bin/env python3
"""Makes src/layout.ld: which functions and variables of the library lie together.

    layout.py [--lib FILE] [--check]

Every process pays for the pages of the library's code that the kernel maps, and it maps 16 of them
around each that is touched. So what small programs execute stands in one place, most widely
executed first, and what stays out of their way behind it. The order changes no instruction, and a
function that the file does not name lies with the rest.

A page of variables costs each process that writes to it a page fault. So tables, of which most
processes write little or nothing, lie apart from all that is small.

--check only tells how much of what the programs execute the file names.

Needs valgrind; source: callgrind's list of the functions that each of the PROGRAMS executes, and
the sizes of the library's variables.
"""

from __future__ import annotations

import argparse
import bisect
import collections
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYOUT = ROOT / "src/layout.ld"
LIBRARY = ROOT / "build/release/libhakmem.so.0"

# Small things that people run all day, in C and in C++.
PROGRAMS: dict[str, list[str]] = {
    "true": ["/bin/true"],
    "ls": ["ls", "-l", "/"],
    "cat": ["cat", "/etc/services"],
    "sort": ["sort", "/etc/services"],
    "sed": ["sed", "-n", "s/tcp/udp/p", "/etc/services"],
    "perl": ["perl", "-e", "my %h = map { $_ => $_ x 3 } 1..5000; print scalar %h"],
    "python": [sys.executable, "-c", "import json; json.dumps([{i: 'x' * i} for i in range(500)])"],
    "git": ["git", "--no-pager", "-C", str(ROOT), "log", "-n", "20", "--format=%h"],
    "gcc": ["gcc", "-x", "c", "-S", "-o", "/dev/null", "/dev/null"],
    "cmake": ["cmake", "--version"],
    "find": ["find", str(ROOT / "src")],
}

TABLE_LEAST = 384
# Most of it is written by every process that allocates.
USED_BY_ALL = {"class_slabs", "first_shard", "superslabs_by_longest", "window_middle"}

TEXT = """\
/* Made by tools/layout.py; do not edit. Read by the linker together with its own rules.
 *
 * What small programs execute comes first, after constants and short strings, then the library's
 * other functions, then what hardly ever runs: the kernel maps 64 KiB around each page of code that
 * is touched, and all of that counts as the process's memory. Variables that are zero at first lie
 * in the file, beside the others, but for tables: so a page of them costs one fault, where one that
 * the kernel makes costs two if it is first read, and then written. */
SECTIONS
{{
    .rodata_words :
    {{
        *(.rodata.str1.8)
        *(.rodata.*.str1.8)
        *(.rodata_seldom)
    }}
}}
INSERT AFTER .rodata;

SECTIONS
{{
    .plt.got : {{ *(.plt.got) }}
    .rodata_often :
    {{
        *(EXCLUDE_FILE(*libgcc_eh.a:* *hakmem_asked.dir*) .rodata)
        *(EXCLUDE_FILE(*libgcc_eh.a:* *hakmem_asked.dir*) .rodata.*)
    }}
    .rodata_offsets : {{ *(.rodata_offsets) }}
    .text :
    {{
        *crtbegin*.o(.text)
        *libgcc.a:*(.text)
        *libc_nonshared.a:*(.text)
        KEEP(*(SORT_NONE(.fini)))
        *(.text.startup .text.startup.*)
{names}
        *(EXCLUDE_FILE(*libgcc_eh.a:*) .text EXCLUDE_FILE(*libgcc_eh.a:*) .text.[!u]*)
        *(.text .text.*)
    }}
}}
INSERT AFTER .plt;

SECTIONS
{{
    .bss_tables (NOLOAD) :
    {{
{tables}
        *hakmem_asked.dir*(.bss .bss.*)
    }}
}}
INSERT AFTER .bss;

SECTIONS
{{
    .data_often :
    {{
        *(.data .data.*)
        *(.bss .bss.*)
    }}
}}
INSERT AFTER .data;
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", type=Path, default=LIBRARY, help="default: %(default)s")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    library = options.lib.resolve()
    often: collections.Counter[str] = collections.Counter()
    for name, command in PROGRAMS.items():
        functions = executed(library, command)
        if not functions:
            sys.exit(f"layout: {name} executes nothing of {library}: is valgrind installed?")
        print(f"{name}: {len(functions)} functions")
        often.update(functions)
    lines = sections(library, [name for name, _ in sorted(often.items(), key=by_use)])
    tabled = tables(library)
    before = LAYOUT.read_text() if LAYOUT.exists() else ""
    known = sum(line in before for line in lines)
    print(f"{len(lines)} functions in all, {known} of them in {LAYOUT.relative_to(ROOT)}")
    if not options.check:
        LAYOUT.write_text(TEXT.format(names=indented(lines), tables=indented(tabled)))
    return 0


def indented(lines: list[str]) -> str:
    return "\n".join(f"        {line}" for line in lines)


def tables(library: Path) -> list[str]:
    """The linker's lines for variables of a tenth of a page or more that are zero at first, but
    for names that a smaller one has, too."""
    command = ["nm", "--defined-only", "--print-size", str(library)]
    rows = [row.split() for row in subprocess.check_output(command, text=True).splitlines()]
    zeroed = [(base(row[3]), int(row[1], 16)) for row in rows if len(row) == 4 and row[2] in "bB"]
    small = {name for name, size in zeroed if size < TABLE_LEAST} | USED_BY_ALL
    names = sorted({name for name, _ in zeroed} - small)
    return [f"*(.bss.{name} .bss.{name}.*)" for name in names]


def by_use(item: tuple[str, int]) -> tuple[int, str]:
    name, programs = item
    return -programs, name


def sections(library: Path, executed: list[str]) -> list[str]:
    """The linker's lines for these symbols, in their order. A function is in a section of its name;
    `NAME.cold` is the part of one that its compiler holds for seldom run, and where there is no
    such part the whole function may be in that section."""
    command = ["nm", "--defined-only", str(library)]
    rows = [row.split() for row in subprocess.check_output(command, text=True).splitlines()]
    places = {name.split("@")[0]: address for address, _, name in rows}
    parted = {base(name) for name in places if name.endswith(".cold")}
    names: dict[str, bool] = {}
    for symbol in executed:
        same = [name for name, address in places.items() if address == places.get(symbol)]
        for name in same or [symbol]:
            cold = name.endswith(".cold") or base(name) not in parted
            names[base(name)] = names.get(base(name), False) or cold
    lines = []
    for name, cold in names.items():
        patterns = [f".text.{name}", f".text.{name}.*"]
        if cold:
            patterns += [f".text.unlikely.{name}", f".text.unlikely.{name}.*"]
        lines.append(f"*({' '.join(patterns)})")
    return lines


def base(symbol: str) -> str:
    """Without what the compiler adds to the names of a function's copies and parts."""
    return symbol.split(".")[0]


def executed(library: Path, command: list[str]) -> set[str]:
    """The symbols of the library's functions, and of their cold parts, by addresses: callgrind's
    names are those of the source, where a function and its cold part are one."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind"
        callgrind = ["valgrind", "--tool=callgrind", "--dump-instr=yes"]
        subprocess.run(
            [*callgrind, f"--callgrind-out-file={out}.%p", *command],
            env={**os.environ, "LD_PRELOAD": str(library)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        addresses: set[int] = set()
        for profile in Path(folder).iterdir():
            addresses |= addresses_in(profile, library.name)
    nm = subprocess.check_output(["nm", "-n", "--defined-only", str(library)], text=True)
    rows = [row.split() for row in nm.splitlines()]
    places = [(int(row[0], 16), row[2].split("@")[0]) for row in rows if row[1] in "tTwW"]
    starts = [start for start, _ in places]
    found = {places[bisect.bisect_right(starts, address) - 1][1] for address in addresses}
    return {name for name in found if re.match(r"[A-Za-z_]", name)}


def addresses_in(profile: Path, library: str) -> set[int]:
    """Of the library's instructions. Callgrind names an object once and says its number later on;
    an address may be given as the distance from the one before."""
    names: dict[str, str] = {}
    ours = False
    last = 0
    found = set()
    for line in profile.read_text(errors="replace").splitlines():
        if match := re.match(r"(c?)obj?=\((\d+)\)(?: (.*))?$", line):
            called, number, name = match.groups()
            if name is not None:
                names[number] = name
            if not called:
                ours = names[number].rsplit("/", 1)[-1].startswith(library.split(".so")[0])
        elif match := re.match(r"(0x[0-9a-f]+|[+-]0x[0-9a-f]+|[+-]\d+|\*) ", line):
            word = match[1]
            if word.startswith("0x"):
                last = int(word, 16)
            elif word != "*":
                last += int(word, 0)
            if ours:
                found.add(last)
    return found


if __name__ == "__main__":
    sys.exit(main())
