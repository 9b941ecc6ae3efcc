#!/usr/bin/env python3
"""Makes docs/options.md from the table of options, src/base/options.def.

Usage: tools/options.py [--check]; --check writes nothing and fails when the page is not what it
would make.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from hakmem.table import AUTO, Option, number, table

__all__ = ["AUTO", "Option", "number", "table"]

PAGE = Path(__file__).resolve().parent.parent / "docs/options.md"

HEAD = """\
<!-- Made by tools/options.py from src/base/options.def: change it there. -->
# Options

None is needed: the defaults are meant to be right, and the benchmarks are run with them. An option
can be given in three places; where it is given in several, the later of these wins:

1. the file `/etc/hakmem.conf`,
2. the file that the environment variable `HAKMEM_CONFIG` names,
3. the environment variable `HAKMEM_` and the option's name in capitals, such as
   `HAKMEM_BIG_CACHE_BYTES=16M`.

A file has one `name = value` on a line; what follows a `#` is a comment, and the case of names
makes no difference:

```
# less memory, more calls of the kernel
big_cache_bytes = 16M
retain_slices   = 128
```

| type | value |
|---|---|
| size | a number of bytes, or of 1024 and its powers with `K`, `M`, `G` (or `KiB` and so on) |
| number | a number |
| time | a number of milliseconds, or with `ms` or `s` |
| switch | `on`, `1`, `true`, `yes`, or `off`, `0`, `false`, `no` |
| mode | `learn`, `observe` or `frozen` |

An option whose default is `auto` also takes the value `auto`: hakmem then adapts the number
to the program. A number that you set is used exactly, whatever was learned.

Options are read once, when a process first allocates, and stay as they are. A wrong value gets one
line on standard error, and so does an unknown name in a file. The line says what is wrong and
where; the option keeps the value it had, and the program goes on. There are at most 8 such lines.
Only the first 4 MiB of a file are read.

An unknown variable gets a line only if its name resembles an option's: a letter in four may be
wrong (three at most), or a part may be missing at its beginning or end. All other variables that
begin with `HAKMEM_` are taken for a script's own.

`hakmem run` and the other commands set `HAKMEM_COMPLAIN=once`: then the first program that finds
something wrong prints these lines, and sets the variable to `done` for the programs that it starts.

`hakmem run -o NAME=VALUE` is stricter: where there is no such option, or it can't have that value,
nothing is started and the exit status is 125. The library itself is asked, so `-o` allows what the
library allows.

A program that runs with more privileges than whoever started it (setuid, setgid, file capabilities:
`AT_SECURE` is set) reads none of these places.

`hakmem_option` in [`hakmem.h`](../include/hakmem/hakmem.h) tells a program what is in force.

Any combination within the bounds works; what it costs is the question.

| option | type | default | least | most | what it does, and what it costs |
|---|---|---:|---:|---:|---|
"""


def page() -> str:
    return HEAD + "".join(option.row() for option in table())


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
