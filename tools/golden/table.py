"""The committed table: a page to read, and what the check compares with."""

import re
from pathlib import Path

from tools.golden.walk import Counts

HEAD = """\
# Golden counts of the fast paths

What one warm call of 64 bytes executes, from the entry to `ret` inclusive. Loads and stores are
those of memory operands, an update in place counting as both. Read from the machine code and
measured with callgrind, which must agree. `make test` fails when a number grows; after a change
that is worth it, `make golden-update` writes this page anew.

Compiler: {compiler}, x86-64

| entry point | instructions | conditional branches | loads | stores |
|---|---:|---:|---:|---:|
"""


def write(path: Path, compiler: str, rows: dict[str, Counts]) -> None:
    lines = [
        f"| `{name}` | {row.instructions} | {row.branches} | {row.loads} | {row.stores} |\n"
        for name, row in rows.items()
    ]
    path.write_text(HEAD.format(compiler=compiler) + "".join(lines))


def read(path: Path) -> tuple[str, dict[str, Counts]]:
    """The compiler and the rows; nothing where there is no table yet."""
    text = path.read_text() if path.exists() else ""
    compiler = re.search(r"^Compiler: (.*), x86-64$", text, re.MULTILINE)
    found = re.findall(r"^\| `(.+)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    rows = {name: Counts(*map(int, numbers)) for name, *numbers in found}
    return compiler[1] if compiler else "", rows
