#!/usr/bin/env python3
"""Makes docs/options.md from the table of options, src/base/options.def.

Usage: tools/options.py [--check]; --check writes nothing and fails when the page is not what it
would make.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/base/options.def"
PAGE = ROOT / "docs/options.md"

ROW = re.compile(r'OPTION\((\w+), (\w+), ([^,]+), ([^,]+), ([^,]+), "([^"]*)"\)')
NUMBER = re.compile(r"(\d+)(?: \* (KiB|MiB|GiB))?")
UNITS = {None: 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
TYPES = {"BYTES": "size", "COUNT": "number", "SWITCH": "switch", "MILLISECONDS": "time"}

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

Options are read once, when a process first allocates, and stay as they are. A wrong value, one that
is out of bounds and a name that is no option each get one line on standard error that says what and
where it is; the option stays as it was and the program goes on. There are at most 8 such lines. A
file of more than 4 MiB is read that far.

A program that runs with more privileges than whoever started it (setuid, setgid, file capabilities:
`AT_SECURE` is set) reads none of these places.

`hakmem_option` in [`hakmem.h`](../include/hakmem/hakmem.h) tells a program what is in force.

Any combination within the bounds works; what it costs is the question.

| option | type | default | least | most | what it does, and what it costs |
|---|---|---:|---:|---:|---|
"""


@dataclass(frozen=True)
class Option:
    name: str
    type: str
    value: str  # as written in the table: "512 * KiB"
    least: str
    most: str
    help: str

    def shown(self, number: str) -> str:
        if self.type == "SWITCH":
            return ("off", "on")[int(number)]
        return number.replace(" * ", " ") + (" ms" if self.type == "MILLISECONDS" else "")

    def row(self) -> str:
        bounds = ["", ""] if self.type == "SWITCH" else [*map(self.shown, (self.least, self.most))]
        cells = [f"`{self.name}`", TYPES[self.type], self.shown(self.value), *bounds, self.help]
        return "| " + " | ".join(cells) + " |\n"


def number(text: str) -> int:
    """What "512 * KiB" is in bytes."""
    match = NUMBER.fullmatch(text)
    if match is None:
        sys.exit(f"{TABLE}: {text!r}: expected a number, or one times KiB, MiB or GiB")
    return int(match[1]) * UNITS[match[2]]


def table() -> list[Option]:
    rows = []
    for at, line in enumerate(TABLE.read_text().splitlines(), 1):
        if not line.startswith("OPTION("):
            continue
        match = ROW.fullmatch(line)
        if match is None or match[2] not in TYPES:
            sys.exit(f'{TABLE}:{at}: expected OPTION(name, TYPE, default, least, most, "help")')
        option = Option(*match.groups())
        for text in (option.value, option.least, option.most):
            number(text)
        rows.append(option)
    return rows


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
