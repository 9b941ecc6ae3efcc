#!/usr/bin/env python3
"""Makes docs/options.md from the table of options, src/base/options.def.

Usage: tools/options.py [--check]; --check writes nothing and fails when the page is not what it
would make.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from hakmem.table import AUTO, CHANGEABLE, TYPES, WORDS, Option, gone, number, renamed, table

__all__ = ["AUTO", "Option", "gone", "number", "renamed", "table"]

PAGE = Path(__file__).resolve().parent.parent / "docs/options.md"

HEAD = """\
<!-- Made by tools/options.py from src/base/options.def: change it there. -->
# Options

You need no options: the defaults suit most programs, and the benchmarks use them. You can set an
option in three places. If it is set in more than one, the later place in this list wins:

1. the file `/etc/hakmem.conf`,
2. the file named in the environment variable `HAKMEM_CONFIG`,
3. an environment variable: `HAKMEM_` and the option's name in capitals, such as
   `HAKMEM_KEEP_BYTES=16M`.

A file has one `name = value` per line. Text after a `#` is a comment. Names may be in upper or
lower case:

```
# less memory, more system calls
keep_bytes = 16M
stats_signal    = 10
```

| type | value |
|---|---|
| size | a number of bytes, or a number with `K`, `M` or `G` (`KiB`, `MiB`, `GiB`): powers of 1024 |
| number | a number |
| switch | `on`, `1`, `true`, `yes`, or `off`, `0`, `false`, `no` |
| mode | one of the words that the option names |
| path | the name of a file, at most 1023 bytes, or `none` |

An option without a value, as in `HAKMEM_PRESET=`, counts as not set, and so does an empty
`HAKMEM_CONFIG`: what an earlier place says stays.

An option whose default is `auto` accepts the value `auto`: hakmem then decides by itself, while the
program runs or by `preset`.

**What changes at run time.** A process reads the options once, when it first
allocates. Those with "yes" under *at run time* can also be changed later, by [`hakmem
set`](watch.md#changing-a-running-process) from outside or by the program itself
(`hakmem_option_set`). The others keep their value until the process ends.

Any combination of values within the limits works; the table says what each costs.

`hakmem options` lists the options with the values that apply to programs you start. A program asks
with `hakmem_option` of [`hakmem.h`](../include/hakmem/hakmem.h).

## Wrong names and values

hakmem prints one line on standard error for a wrong value, and for an unknown name in a file. The
line says what is wrong and where. The option keeps the value it had, and the program continues.
There are at most 8 such lines. Only the first 4 MiB of a file are read.

For an unknown environment variable there is a line only if the name resembles that of an option:
one letter in four may be wrong (at most three), or a part may be missing at the beginning or end.
hakmem ignores all other variables that begin with `HAKMEM_`.

`hakmem run` and the other commands set `HAKMEM_COMPLAIN=once`. The first program that finds
something wrong then prints these lines, and sets the variable to `done` for the programs that it
starts.

`hakmem run --set NAME=VALUE` is stricter. If the option does not exist, or does not accept the
value, or if there is none, it starts nothing and exits with status 125. It asks the library itself,
so `--set` accepts what the library accepts.

A program with more privileges than the user who started it (setuid, setgid or file capabilities, so
that `AT_SECURE` is set) takes nothing from that user. From `/etc/hakmem.conf` it takes only what
makes it safer: `preset`, the options of [a hardened heap](security.md), `guards_a_second` and
`check_frees`.
"""


TABLE = """
## {section}

| option | type | default | least | most | at run time | what it does, and what it costs |
|---|---|---:|---:|---:|---|---|
"""


FORMER = """
## Former names

These names mean the same as before, in each of the three places and with `--set`:

| former name | option |
|---|---|
"""

GONE = """
## Options that are gone

hakmem prints what to do instead if one of these is set, and the program continues.

| option | instead |
|---|---|
"""


def row(option: Option) -> str:
    bounds = (option.least, option.most) if option.type not in WORDS else ()
    shown = [option.shown(bound) for bound in bounds] or ["", ""]
    changes = "yes" if option.name in CHANGEABLE else ""
    cells = [f"`{option.name}`", TYPES[option.type], option.shown(option.value), *shown]
    return "| " + " | ".join([*cells, changes, option.help]) + " |\n"


def page() -> str:
    sections = (
        TABLE.replace("{section}", section) + "".join(row(option) for option in options)
        for section, options in groupby(table(), key=lambda option: option.section)
    )
    former = "".join(f"| `{old}` | `{name}` |\n" for old, name in renamed().items())
    instead = "".join(f"| `{name}` | {what} |\n" for name, what in gone().items())
    return HEAD + "".join(sections) + FORMER + former + GONE + instead


def main() -> None:
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != page():
            sys.exit(f"{PAGE} is not what tools/options.py makes: run tools/options.py")
    elif sys.argv[1:]:
        sys.exit("usage: tools/options.py [--check]")
    else:
        PAGE.write_text(page())


if __name__ == "__main__":
    main()
