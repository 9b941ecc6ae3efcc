"""The command line: which subcommands there are, and which module does each.

bin/hakmem starts `main` with its own path and the library's before what the user wrote.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import traceback
from pathlib import Path

from hakmem import __version__, doctor, extras, options
from hakmem.library import Library

USAGE_ERROR = 2
SUBCOMMANDS = {"doctor": doctor, "options": options}
# Typer's, each the `app` of hakmem.bench's module of that name; their libraries may be missing.
MEASURING = {
    "bench": ("cli", "compare hakmem with other allocators, on rows of its own and real programs"),
    "compare": ("compare", "compare allocators, or settings, on a program of yours"),
}

DESCRIPTION = "Runs programs on hakmem's malloc, and tells whether they are."
EPILOG = """\
examples:
  hakmem run redis-server --port 7000    on hakmem instead of the system's malloc
  hakmem doctor -- ls -l                 is it in force there, and if not, why
  hakmem doctor 4711                     the same of a process that runs
  hakmem doctor                          is hakmem installed well
  hakmem options                         what can be set
  hakmem bench --quick                   how it compares with other allocators here
  hakmem compare hakmem glibc -- prog    and on a program of yours

'hakmem COMMAND --help' tells more, and so do the manual pages: man hakmem-run.
"""

RUN_HELP = "run a program on hakmem"
RUN_DESCRIPTION = """\
Runs a program, and what it starts, with hakmem as its malloc: puts libhakmem.so before what
LD_PRELOAD already names, and becomes the program. Costs what a shell script of two lines costs.
"""
RUN_EPILOG = """\
Everything after PROGRAM is the program's. Besides LD_PRELOAD and the options its environment gets
HAKMEM_COMPLAIN=once, so that a wrong option is reported once and not by every program. All else is
left alone: Python, for one, keeps its own heap of small objects unless you set PYTHONMALLOC=malloc.

examples:
  hakmem run python3 app.py
  hakmem run -o big_cache_bytes=16M -o scavenger=off your-program --its-option
  hakmem run sh -c 'make -j8'            children are on hakmem too
  hakmem run env -u LD_PRELOAD prog      and so they are taken out again

exit status:
  125  hakmem itself failed
  126  the program was found and can't be executed
  127  the program was not found
  else the program's
"""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=100)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="hakmem", description=DESCRIPTION, epilog=EPILOG, formatter_class=_Formatter
    )
    top.add_argument("--version", action="store_true", help="print the library's version")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    # For its help; bin/hakmem does what it says.
    run = commands.add_parser(
        "run",
        usage="hakmem run [-h] [-o NAME=VALUE]... [--] PROGRAM [ARG]...",
        help=RUN_HELP,
        description=RUN_DESCRIPTION,
        epilog=RUN_EPILOG,
        formatter_class=_Formatter,
    )
    run.add_argument(
        "-o",
        "--option",
        metavar="NAME=VALUE",
        action="append",
        help="set an option of hakmem (see 'hakmem options') for this run",
    )
    run.add_argument("program", metavar="PROGRAM", help="what to run")
    run.add_argument("args", metavar="ARG", nargs="*", help="its arguments")
    for name, module in SUBCOMMANDS.items():
        sub = commands.add_parser(
            name,
            help=module.HELP,
            description=module.HELP[0].upper() + module.HELP[1:] + ".",
            epilog=module.EPILOG,
            formatter_class=_Formatter,
        )
        module.add_arguments(sub)
    for name, (_, help) in MEASURING.items():
        commands.add_parser(name, help=help)
    return top


def main() -> None:
    if sys.stdout is None:  # closed
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    # Names and arguments of programs need not be text of this locale.
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # there is nothing to clean up
    status: int | str | None = 0
    try:
        status = _run(sys.argv[1:])
    except SystemExit as end:  # argparse's
        status = end.code
    except BrokenPipeError:
        pass  # as below
    except Exception:  # 1, Python's own status for it, has a meaning
        traceback.print_exc()
        print("hakmem: this is a mistake in hakmem; please report it", file=sys.stderr)
        status = 3
    try:
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # its reader had enough
            print(f"hakmem: standard output: {error.strerror}", file=sys.stderr)
            status = 3
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)


def _run(words: list[str]) -> int:
    front, library, *words = words
    if words and words[0] in MEASURING:
        return measuring(words[0], words[1:], Path(front), Path(library))
    top = parser()
    # What follows belongs to another program.
    at = words.index("--") if "--" in words else len(words)
    arguments = top.parse_args(words[:at])
    arguments.front, arguments.library = Path(front), Path(library)
    arguments.behind = words[at + 1 :]
    if at < len(words) and arguments.command != "doctor":
        top.error("-- comes before a program, as in 'hakmem doctor -- ls -l'")
    if arguments.version:
        return _version(arguments.library)
    if arguments.command is None:
        top.print_help()
        return 0
    return int(SUBCOMMANDS[arguments.command].run(arguments))


def measuring(name: str, words: list[str], front: Path, library: Path) -> int:
    try:
        module = importlib.import_module(f"hakmem.bench.{MEASURING[name][0]}")
    except ModuleNotFoundError as missing:
        if str(missing.name).startswith("hakmem"):
            raise
        try:
            extras.start_again(str(missing.name), [str(front), str(library), name, *words])
        except extras.CannotInstall as why:
            print(f"hakmem {name}: {why}", file=sys.stderr)
            return USAGE_ERROR
    try:
        status = module.app(
            words, prog_name=f"hakmem {name}", obj=(front, library), standalone_mode=False
        )
    except Exception as error:
        if not hasattr(error, "format_message"):  # what all of typer's own have
            raise
        told = error.format_message().rstrip(".")
        print(f"hakmem {name}: {told}; see 'hakmem {name} --help'", file=sys.stderr)
        return USAGE_ERROR
    return int(status or 0)


def _version(library: Path) -> int:
    try:
        print(f"hakmem {Library(library).version}")
    except OSError as error:
        print(f"hakmem {__version__} (command); its library can't be loaded: {error}")
        return 1
    return 0
