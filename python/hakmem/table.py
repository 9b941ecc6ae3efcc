"""The table of options: src/base/options.def, or the copy of it in an installed package."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).resolve().parent
TABLE = _HERE / "options.def"
if not TABLE.exists():
    TABLE = _HERE.parents[1] / "src/base/options.def"

ROW = re.compile(r'OPTION\((\w+), (\w+), ([^,]+), ([^,]+), ([^,]+), "([^"]*)"\)')
SECTION = re.compile(r"/\* ---- (.+) ---- \*/")
RENAMED = re.compile(r"^RENAMED\((\w+), (\w+)\)$", re.MULTILINE)
GONE = re.compile(r'^GONE\((\w+), "([^"]*)"\)$', re.MULTILINE)
NUMBER = re.compile(r"(\d+)(?: \* (KiB|MiB|GiB))?")
UNITS = {None: 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
TYPES = {
    "BYTES": "size", "COUNT": "number", "SWITCH": "switch", "PRESET": "preset",
    "WHEN": "mode", "PATH": "path",
}  # fmt: skip
# The word in the table, and the number that the library returns for it (HAKMEM_AUTO in hakmem.h).
AUTO = "AUTO"
AUTO_NUMBER = 2**64 - 1
# The words for the numbers of these types.
WORDS = {
    "SWITCH": ("off", "on"),
    "PRESET": ("none", "hardened"),
    "WHEN": ("off", "exit"),
    "PATH": ("none", "set"),
}

# Those that can change while a process runs: `hakmem set`, hakmem_option_set.
CHANGEABLE = (
    "thread_bytes", "keep_bytes", "soft_limit_bytes", "hard_limit_bytes",
    "report_no_memory", "check_frees", "abort_on_misuse", "compact",
    "guards_a_second", "profile", "profile_rss", "profile_rate", "profile_samples",
    "profile_scripts",
)  # fmt: skip


@dataclass(frozen=True)
class Option:
    name: str
    type: str
    value: str  # as written in the table: "512 * KiB"
    least: str
    most: str
    help: str
    section: str

    @property
    def may_be_auto(self) -> bool:
        return self.value == AUTO

    def shown(self, number: str) -> str:
        if number == AUTO:
            return "auto"
        if self.type in WORDS:
            return WORDS[self.type][int(number)]
        return number.replace(" * ", " ")


def number(text: str) -> int:
    """The number: "512 * KiB" is 524288."""
    if text == AUTO:
        return AUTO_NUMBER
    match = NUMBER.fullmatch(text)
    if match is None:
        sys.exit(f"{TABLE}: {text!r}: expected a number, or one times KiB, MiB or GiB")
    return int(match[1]) * UNITS[match[2]]


def table() -> list[Option]:
    rows, section = [], ""
    for at, line in enumerate(TABLE.read_text().splitlines(), 1):
        if (title := SECTION.fullmatch(line)) is not None:
            section = title[1]
        if not line.startswith("OPTION("):
            continue
        match = ROW.fullmatch(line)
        if match is None or match[2] not in TYPES:
            sys.exit(f'{TABLE}:{at}: expected OPTION(name, TYPE, default, least, most, "help")')
        name, kind, value, least, most, text = match.groups()
        option = Option(name, kind, value, least, most, text, section)
        for text in (option.value, option.least, option.most):
            number(text)
        rows.append(option)
    return rows


def renamed() -> dict[str, str]:
    """By the name that an option had before: the one it has."""
    return dict(RENAMED.findall(TABLE.read_text()))


def gone() -> dict[str, str]:
    """By the name of an option that is no more: what to do instead."""
    return dict(GONE.findall(TABLE.read_text()))
