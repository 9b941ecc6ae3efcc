"""`hakmem set`: changes an option of a running process."""

from __future__ import annotations

import argparse
import re
import sys

from hakmem import look
from hakmem.hint import hint
from hakmem.look import CannotLook
from hakmem.table import AUTO, AUTO_NUMBER, CHANGEABLE, UNITS, WORDS, Option, gone, renamed, table

HELP = "change an option of a running process"
DESCRIPTION = HELP[0].upper() + HELP[1:] + "."
EPILOG = f"""\
These options can change while a process runs:
  {", ".join(CHANGEABLE[:4])},
  {", ".join(CHANGEABLE[4:9])},
  {", ".join(CHANGEABLE[9:])}
Values are written as in 'hakmem run --set': 16M, on, auto. 'hakmem options' says what each does.

The process does it itself when it next frees a block: within milliseconds while it works. An idle
process with several threads does it within about a second, unless the option scavenger is off. An
idle process of one thread does nothing until it frees a block again: then the exit status is 4.

Needs the same rights as a debugger, as 'hakmem sheet' does.

examples:
  hakmem set 4711 keep_bytes=16M
  hakmem set 4711 compact=off

exit status:
  0  success
  1  the process does not use hakmem, or refused the option
  2  wrong usage, or no such process
  3  no permission
  4  the process is idle, and will do it later, unless an earlier order waits: then not this one
"""
SUFFIXES = {"K": "KiB", "M": "MiB", "G": "GiB", "KiB": "KiB", "MiB": "MiB", "GiB": "GiB"}
SWITCHES = {"on": 1, "true": 1, "yes": 1, "1": 1, "off": 0, "false": 0, "no": 0, "0": 0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pid", metavar="PID", help="a running process")
    parser.add_argument("setting", metavar="NAME=VALUE", help="an option, and its new value")


def run(arguments: argparse.Namespace) -> int:
    try:
        name, value = _setting(arguments.setting)
        look.change(look.read_pid(arguments.pid), arguments.library, name, value)
    except CannotLook as why:
        print(f"hakmem set: {why}", file=sys.stderr)
        return why.status
    hint(f"'hakmem sheet {arguments.pid}' shows what it changes; it lasts until the process ends")
    return 0


def _setting(words: str) -> tuple[str, int]:
    given, equals, value = words.partition("=")
    if not equals:
        raise CannotLook(look.USAGE, f"{words}: expected NAME=VALUE, as in keep_bytes=16M")
    name = given.lower().removeprefix("hakmem_")
    name = renamed().get(name, name)
    options = {option.name: option for option in table()}
    if name in gone():
        raise CannotLook(look.USAGE, f"there is no option {given} any more: {gone()[name]}")
    if name not in options:
        raise CannotLook(look.USAGE, f"there is no option {given}; 'hakmem options' lists them")
    if name not in CHANGEABLE:
        can = ", ".join(CHANGEABLE)
        raise CannotLook(
            look.USAGE, f"{name} can only be set when a process starts; {can} can change"
        )
    number = _number(options[name], value)
    if number is None:
        raise CannotLook(
            look.USAGE, f"{words}: the value is not allowed; 'hakmem options {name}' says what is"
        )
    return name, number


def _number(option: Option, value: str) -> int | None:
    if option.may_be_auto and value.lower() == AUTO.lower():
        return AUTO_NUMBER
    if option.type in WORDS:
        return SWITCHES.get(value.lower())
    match = re.fullmatch("([0-9]+) *([A-Za-z]*)", value)
    if match is None or match[2] not in {"", *(SUFFIXES if option.type == "BYTES" else ())}:
        return None
    number = int(match[1]) * UNITS[SUFFIXES.get(match[2])]
    return number if _bound(option.least) <= number <= _bound(option.most) else None


def _bound(text: str) -> int:
    number, _, unit = text.partition(" * ")
    return int(number) * UNITS[unit or None]
