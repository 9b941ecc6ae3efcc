"""`hakmem options`: every option, and its value here."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hakmem import __version__
from hakmem.hint import hint
from hakmem.library import Library
from hakmem.table import (
    AUTO_NUMBER,
    CHANGEABLE,
    TYPES,
    UNITS,
    WORDS,
    Option,
    gone,
    number,
    renamed,
    table,
)

PART_LEAST = 4  # letters of a name that begins like it
SYSTEM_FILE = "/etc/hakmem.conf"
HELP = "list every option: default, limits, what it does and costs, its value here"
DESCRIPTION = HELP[0].upper() + HELP[1:] + "."
EPILOG = """\
You set an option in /etc/hakmem.conf, in the file named in HAKMEM_CONFIG, or in a variable such as
HAKMEM_KEEP_BYTES; the later of these wins. "here" is the value that a program gets that you
start from this shell. It is shown for options that are set, with the place that sets them.

examples:
  hakmem options                         all of them
  hakmem options keep_bytes              one
  HAKMEM_SCAVENGER=off hakmem options    the values with this variable
  hakmem options --json | jq '.[] | select(.here != .default) | .name'
  hakmem run --set keep_bytes=16M your-program

exit status:
  0  printed
  2  wrong usage, or no such option
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="*", help="only these options")
    parser.add_argument("--json", action="store_true", help="write JSON, sizes in bytes")


def _source(name: str, environment: Mapping[str, str]) -> str | None:
    """The last place that names an option. Only the library knows whether it accepts the value."""
    names = [name, *(old for old, now in renamed().items() if now == name)]
    variables = [f"HAKMEM_{each.upper()}" for each in names]
    given = [variable for variable, value in environment.items() if value and variable in variables]
    if given:
        return given[-1]
    for path in (environment.get("HAKMEM_CONFIG"), SYSTEM_FILE):
        try:
            file = Path(path or "")
            # What has no end, or no writer, would be read for ever.
            lines = file.read_text(errors="replace").splitlines() if file.is_file() else []
        except OSError:
            continue
        for at in range(len(lines), 0, -1):
            left, _, right = lines[at - 1].split("#")[0].partition("=")
            if right.strip() and left.strip().lower() in names:
                return f"{path}:{at}"
    return None


def _shown(option: Option, value: int) -> str:
    if value == AUTO_NUMBER:
        return "auto"
    if option.type in WORDS:
        return WORDS[option.type][value]
    unit, size = "", 1
    if option.type == "BYTES":
        fits = ((n, s) for n, s in UNITS.items() if n and value and value % s == 0)
        unit, size = max(fits, key=lambda fit: fit[1], default=("", 1))
    return f"{value // size} {unit}".rstrip()


def _of_json(value: int | None) -> int | str | None:
    return "auto" if value == AUTO_NUMBER else value


def _record(option: Option, here: int | None) -> dict[str, object]:
    return {
        "name": option.name,
        "type": TYPES[option.type],
        "default": _of_json(number(option.value)),
        "least": number(option.least),
        "most": number(option.most),
        "here": _of_json(here),
        "source": _source(option.name, os.environ),
        "help": option.help,
    }


def _page(option: Option, here: int | None, width: int) -> str:
    facts = [f"default {_shown(option, number(option.value))}"]
    if option.type not in WORDS:
        least, most = (_shown(option, number(text)) for text in (option.least, option.most))
        facts.append(f"{least} to {most}")
    if option.name in CHANGEABLE:
        facts.append("can change at run time")
    source = _source(option.name, os.environ)
    if here is not None and (source or here != number(option.value)):
        facts.append(f"here {_shown(option, here)}" + (f", by {source}" if source else ""))
    text = textwrap.fill(option.help, width, initial_indent="    ", subsequent_indent="    ")
    return f"{option.name:20} {'; '.join(facts)}\n{text}\n"


def _values_here(path: Path, names: list[str]) -> dict[str, int]:
    """By name. A library of another version may lack some of the options."""
    here: dict[str, int] = {}
    try:
        library = Library(path)
    except OSError as error:
        print(f"hakmem options: the values here are not known: {error}", file=sys.stderr)
        return here
    for name in names:
        with suppress(KeyError):
            here[name] = library.option(name)
    missing = ", ".join(name for name in names if name not in here)
    if missing:
        print(
            f"hakmem options: the library is version {library.version}, this command "
            f"{__version__}; the library has no option {missing}",
            file=sys.stderr,
        )
    return here


def run(arguments: argparse.Namespace) -> int:
    options = {option.name: option for option in table()}
    before = renamed()
    names = [name.lower().removeprefix("hakmem_") for name in arguments.names]
    names = [before.get(name, name) for name in names]
    for name in names:
        if name in gone():
            instead = gone()[name]
            print(f"hakmem options: {name}: no such option any more: {instead}", file=sys.stderr)
            return 2
        if name not in options:
            begun = [one for one in options if len(name) >= PART_LEAST and one.startswith(name)]
            near = (begun or difflib.get_close_matches(name, options, 1))[:1]
            meant = f"; the nearest is {near[0]}" if near else "; 'hakmem options' lists all"
            print(f"hakmem options: {name}: no such option{meant}", file=sys.stderr)
            return 2
    chosen = [options[name] for name in names or options]
    here = _values_here(arguments.library, names or list(options))
    if arguments.json:
        print(json.dumps([_record(option, here.get(option.name)) for option in chosen], indent=2))
    else:
        width = min(shutil.get_terminal_size().columns, 100)
        print("\n".join(_page(option, here.get(option.name), width) for option in chosen), end="")
        hint(
            "'hakmem run --set NAME=VALUE PROGRAM' starts a program with one; 'hakmem set PID"
            " NAME=VALUE' changes those that can change at run time"
        )
    return 0
