#!/usr/bin/env python3
"""Makes what --help prints (command/help.txt), the manual pages and completions of the command, in
share/, and docs/doctor.md, from the command's own parsers, its causes and the table of options.

Usage: tools/pages.py [--check]; --check writes nothing and fails when a file is not what it would
make.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from hakmem import __version__
from hakmem.causes import CAUSES, INSTALLATION, NOTES, OBJECTS, UNKNOWN
from hakmem.cli import parsers, summaries
from hakmem.table import TYPES, table
from tools.completions import completions

ROOT = Path(__file__).resolve().parent.parent
SEE_ALSO = {
    "hakmem": [
        "hakmem-run",
        "hakmem-doctor",
        "hakmem-top",
        "hakmem-exporter",
        "hakmem-why",
        "hakmem-sheet",
        "hakmem-profile",
        "hakmem-leaks",
        "hakmem-record",
        "hakmem-trace",
        "hakmem-replay",
        "hakmem-tune",
        "hakmem-purge",
        "hakmem-set",
        "hakmem-mark",
        "hakmem-options",
        "hakmem-bench",
        "hakmem-compare",
    ],
    "hakmem-run": ["hakmem", "hakmem-doctor", "hakmem-profile", "hakmem-leaks", "hakmem-options"],
    "hakmem-doctor": ["hakmem", "hakmem-run"],
    "hakmem-top": ["hakmem", "hakmem-exporter", "hakmem-sheet", "hakmem-purge", "hakmem-set"],
    "hakmem-exporter": ["hakmem", "hakmem-top", "hakmem-sheet"],
    "hakmem-why": ["hakmem", "hakmem-sheet", "hakmem-purge", "hakmem-profile"],
    "hakmem-sheet": ["hakmem", "hakmem-purge", "hakmem-doctor"],
    "hakmem-profile": ["hakmem", "hakmem-run", "hakmem-sheet", "hakmem-options"],
    "hakmem-leaks": ["hakmem", "hakmem-run", "hakmem-profile"],
    "hakmem-record": ["hakmem", "hakmem-trace", "hakmem-profile"],
    "hakmem-trace": ["hakmem", "hakmem-record", "hakmem-profile"],
    "hakmem-replay": ["hakmem", "hakmem-record", "hakmem-compare", "hakmem-tune"],
    "hakmem-tune": ["hakmem", "hakmem-run", "hakmem-options", "hakmem-compare", "hakmem-replay"],
    "hakmem-purge": ["hakmem", "hakmem-sheet"],
    "hakmem-mark": ["hakmem", "hakmem-trace", "hakmem-profile", "hakmem-exporter"],
    "hakmem-set": ["hakmem", "hakmem-sheet", "hakmem-options"],
    "hakmem-options": ["hakmem", "hakmem-run"],
    "hakmem-bench": ["hakmem", "hakmem-compare", "hakmem-options"],
    "hakmem-compare": ["hakmem", "hakmem-bench", "hakmem-options"],
}
PLACES = {
    "/etc/hakmem.conf": "options for the whole machine, one NAME = VALUE on a line",
    "HAKMEM_CONFIG": "names a file of options for the programs that have it",
    "HAKMEM_NAME": "the option NAME, as in HAKMEM_KEEP_BYTES=16M",
    "HAKMEM_COMPLAIN": "set to once by hakmem: a wrong option is reported once per command",
    "LD_PRELOAD": "what the loader takes into a program; hakmem run puts libhakmem.so in front",
}

# ---- manual pages ----


def released() -> str:
    """The day of this version, as Debian's log of changes has it."""
    written = re.search(r"^ -- .*>  (.*)$", (ROOT / "debian/changelog").read_text(), re.MULTILINE)
    assert written is not None
    return f"{parsedate_to_datetime(written[1]):%Y-%m-%d}"


def roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def paragraphs(text: str) -> str:
    return "\n.PP\n".join(roff(part.strip()) for part in text.strip().split("\n\n"))


def literal(text: str) -> str:
    lines = [line.removeprefix("  ") for line in text.rstrip().splitlines()]
    return ".nf\n" + roff("\n".join(lines)) + "\n.fi"


def items(pairs: Iterator[tuple[str, str]]) -> str:
    return "\n".join(f".TP\n.B {roff(name)}\n{roff(text)}" for name, text in pairs)


def actions(command: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                yield choice.dest, f"{choice.help}; see hakmem-{choice.dest}(1)"
            continue
        words = action.metavar if isinstance(action.metavar, tuple) else (action.metavar or "",)
        value = f" {' '.join(words)}".rstrip() if action.option_strings else ""
        name = ", ".join(action.option_strings) or str(action.metavar)
        yield name + value, str(action.help)


def manual(command: argparse.ArgumentParser, brief: str) -> str:
    name = command.prog.replace(" ", "-")
    usage = " ".join(command.format_usage().removeprefix("usage: ").split())
    # "examples:" and "exit status:" with what is indented below them are sections of their own.
    epilog = re.split(r"^(examples|exit status):\n((?:  .*\n)+)", command.epilog or "", flags=re.M)
    sections = {head.upper(): body for head, body in zip(epilog[1::3], epilog[2::3], strict=True)}
    more = "\n\n".join(part.strip() for part in epilog[::3] if part.strip())
    page = [
        f'.\\" Made by tools/pages.py from the command: change it there.\n'
        f'.TH {name.upper()} 1 "{released()}" "hakmem {__version__}" "User Commands"',
        f".SH NAME\n{roff(name)} \\- {roff(brief)}",
        f".SH SYNOPSIS\n.B {roff(usage)}",
        f".SH DESCRIPTION\n{paragraphs(command.description or '')}",
    ]
    if more:
        page.append(".PP\n" + paragraphs(more))
    page.append(".SH OPTIONS\n" + items(actions(command)))
    if name == "hakmem-options":
        facts = ((f"{o.name} ({TYPES[o.type]}, {o.shown(o.value)})", o.help) for o in table())
        page.append(".SH THE OPTIONS OF HAKMEM\n" + items(facts))
    if name == "hakmem-doctor":
        told = ((filled(id, 0), f"{filled(id, 1)} {filled(id, 2)}") for id in CAUSES)
        page.append(".SH CAUSES AND WHAT TO DO\n" + items(told))
    if "EXAMPLES" in sections:
        page.append(".SH EXAMPLES\n" + literal(sections["EXAMPLES"]))
    if "EXIT STATUS" in sections:
        pairs = (line.split(maxsplit=1) for line in sections["EXIT STATUS"].splitlines())
        page.append(".SH EXIT STATUS\n" + items((status, text) for status, text in pairs))
    if name in ("hakmem-run", "hakmem-options"):
        page.append(".SH FILES AND ENVIRONMENT\n" + items(iter(PLACES.items())))
    others = ", ".join(f".BR {roff(other)} (1)" for other in SEE_ALSO[name])
    page.append(".SH SEE ALSO\n" + others.replace(", .", " ,\n."))
    return "\n".join(page) + "\n"


def filled(id: str, at: int) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: match[1].upper(), CAUSES[id][at])


# ---- docs/doctor.md ----

HEAD = """\
<!-- Made by tools/pages.py from python/hakmem/causes.py: change it there. -->
# What `hakmem doctor` says

`hakmem doctor` checks whether a program uses hakmem's `malloc`. This page lists every cause and
note that it can print; [trouble.md](trouble.md) starts from symptoms instead.

The loader writes the addresses of `malloc`, `calloc`, `realloc` and `free` into tables in the
program's memory, one table for each file of the program. The doctor reads these tables. If all of
the addresses lie in hakmem, hakmem is active; if not, the doctor looks for the cause.

The exit status is 0 if hakmem is active everywhere, 1 if it is not, 2 for wrong usage, and 3 if
it cannot be determined. With `--json`, `verdict` is one of `in force` (active), `in part`,
`not in force` and `unknown`, and `id` has the word in the first column of the tables below. Words
in capitals are replaced by the names in your case.

- [hakmem is not active](#hakmem-is-not-active)
- [The installation is broken](#the-installation-is-broken)
- [It cannot be determined](#it-cannot-be-determined)
- [Libraries with another allocator](#libraries-with-another-allocator)
- [Notes](#notes): runtimes with a separate heap, calls of the C library's own functions

"""
TABLE = "| id | message | why | what to do |\n|---|---|---|---|\n"
OF_OBJECTS = """\
Some libraries contain another allocator and rarely call `malloc`: some Python extensions, Rust
programs and C++ programs. hakmem is active in the program, but it neither serves nor counts what
such a library allocates for itself. The doctor searches all files in the program's memory and
names each one that contains an allocator, what that allocator is used for, and what you can do.
The verdict and the exit status are about `malloc` only.

How the doctor recognizes these files:

- by the symbols of the allocator: `mi_malloc`, `_rjem_mallctl`, `tc_malloc`, `rpmalloc`,
  `sn_malloc` and similar ones;
- where the symbols are stripped, as in the wheels of polars, by the allocator's messages and the
  names of its settings. A stripped rpmalloc or Google's tcmalloc has neither, so the doctor does
  not find it;
- a library such as `libjemalloc.so`, which defines `malloc` but is overridden by hakmem, is named
  only if another file calls it by another name (`je_malloc`, `mi_malloc`). jemalloc's `mallocx` and
  `mallctl` are hakmem's.

Tested with the wheels of polars 2.1 (jemalloc), pyarrow 26 (mimalloc, or jemalloc by a setting)
and DuckDB 2.0 (jemalloc). The wheel of torch 2.15 for x86-64 contains no allocator: its main
memory comes from `malloc`, and so from hakmem, while the GPU driver manages the GPU's memory.

"""
CHAPTERS = {
    "hakmem is not active": [
        id for id in CAUSES if id not in (*INSTALLATION, *NOTES, *OBJECTS, *UNKNOWN)
    ],
    "The installation is broken": INSTALLATION,
    "It cannot be determined": UNKNOWN,
    "Libraries with another allocator": OBJECTS,
    "Notes": NOTES,
}


def page() -> str:
    text = HEAD
    for title, ids in CHAPTERS.items():
        rows = (" | ".join([f"`{id}`", *(filled(id, at) for at in range(3))]) for id in ids)
        text += f"## {title}\n\n" + (OF_OBJECTS if ids is OBJECTS else "")
        text += TABLE + "".join(f"| {row} |\n" for row in rows) + "\n"
    return text.rstrip() + "\n"


# ---- what --help prints ----


def helps(commands: Mapping[str, argparse.ArgumentParser]) -> str:
    """For bin/hakmem, which prints the part below a command's name."""
    return "".join(f"=== {name}\n{command.format_help()}" for name, command in commands.items())


def files() -> dict[str, str]:
    top, commands = parsers()
    about = summaries()
    pages = {
        "command/help.txt": helps({"hakmem": top, **commands}),
        "share/man/man1/hakmem.1": manual(top, "programs on hakmem's malloc"),
    }
    for name, command in commands.items():
        pages[f"share/man/man1/hakmem-{name}.1"] = manual(command, about[name])
    return pages | completions(top) | {"docs/doctor.md": page()}


def main() -> None:
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: tools/pages.py [--check]")
    for name, text in files().items():
        path = ROOT / name
        if not sys.argv[1:]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"{path} is not what tools/pages.py makes: run tools/pages.py")


if __name__ == "__main__":
    main()
