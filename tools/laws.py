#!/usr/bin/env python3
"""Makes docs/laws.md from the table of laws, src/learn/laws.def.

Usage: tools/laws.py [--check]; --check writes nothing and fails when the page is not what it would
make.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/learn/laws.def"
PAGE = ROOT / "docs/laws.md"

TEXT = r'"([^"]*)"'
SAID = r'"([^"]+)"'  # no law without a figure
LINE = re.compile(rf"LAW\((\w+), (.+?), {TEXT}, {TEXT}, {SAID}\)")
GROUP = re.compile(rf"LAWS\({TEXT}\)")


class Law(NamedTuple):
    name: str
    value: str
    what: str
    shown: str
    figure: str

    def row(self) -> str:
        value = self.value.replace(" * ", " ")
        if value.isdigit():
            value = f"{int(value):,}"
        return f"| `{self.name}` | {value} | {self.what} | {self.shown} | {self.figure} |\n"


def groups(text: str) -> dict[str, list[Law]]:
    """The laws of the table by the group that they stand in."""
    found: dict[str, list[Law]] = {}
    for line in text.splitlines():
        if group := GROUP.fullmatch(line):
            found[group[1]] = []
        elif law := LINE.fullmatch(line):
            list(found.values())[-1].append(Law(*law.groups()))
        elif line.startswith("LAW"):
            raise SystemExit(f"{TABLE}: not a law: {line}")
    return found


HEAD = """\
<!-- Made by tools/laws.py from src/learn/laws.def: change it there. -->
# Laws: the numbers that decide what is kept

A law is a number of judgement: it decides how much free memory hakmem keeps, for how long, in which
thread, and how fast it goes back to the kernel. No rule of C or of the kernel gives these numbers;
each was chosen, and another value would work too. All of them are in one table,
[`src/learn/laws.def`](../src/learn/laws.def), and the functions that decide by them are in
[`src/learn`](../src/learn/README.md).

To try another value without a change of the table:

```sh
cmake --preset release -D HAKMEM_LAWS="IDLE_PART=8;CALL_MOST=8*MiB"
cmake --build --preset release
```

`-D HAKMEM_LAWS=` returns to the table. The column *shown by* says what to run then: rows of
`hakmem bench` ([benchmarks](benchmarks.md)), tests (`ctest --preset release -R NAME`) or programs.

A figure was measured on the version of its day. `->` leads from a version without the law to one
with it. [performance.md](performance.md) says how it was measured, and explains its words;
[design.md](design.md) has the reasons.

Two kinds of numbers are not here. Limits that users can set are options: [options.md](options.md).
Numbers of structure, such as the sizes of tables and classes, stand where they are used.

"""
COLUMNS = "| law | value | what it decides | shown by | figure |\n|---|---:|---|---|---|\n"


def page() -> str:
    found = groups(TABLE.read_text())
    laws = [law for members in found.values() for law in members]
    text = HEAD + f"There are {len(laws)} laws.\n"
    for title, members in found.items():
        text += f"\n## {title}\n\n" + COLUMNS + "".join(law.row() for law in members)
    return text


def main() -> None:
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != page():
            sys.exit(f"{PAGE} is not what tools/laws.py makes: run tools/laws.py")
    elif sys.argv[1:]:
        sys.exit("usage: tools/laws.py [--check]")
    else:
        PAGE.write_text(page())


if __name__ == "__main__":
    main()
