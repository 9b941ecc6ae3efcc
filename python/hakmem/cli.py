"""The command line: the subcommands, and the module of each.

bin/hakmem calls `main` with its own path and the library's, followed by what the user wrote. It
answers --help itself, with texts that tools/pages.py makes from the parsers here.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import os
import re
import select
import signal
import sys
import textwrap
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn

from hakmem import __version__, interrupts
from hakmem.arguments import USAGE_ERROR
from hakmem.library import Library
from hakmem.modules import NoModule, need, needed

FAILED = 3
MISSING = 125
# Each is imported when it is needed: all of them take a quarter of a second.
SUBCOMMANDS = {
    "doctor": "doctor",
    "top": "top_command",
    "exporter": "exporter_command",
    "why": "why_command",
    "sheet": "sheet_command",
    "profile": "profile_command",
    "leaks": "leaks_command",
    "record": "record_command",
    "trace": "trace_command",
    "replay": "replay_command",
    "tune": "tune_command",
    "purge": "purge_command",
    "mark": "mark_command",
    "set": "set_command",
    "options": "options",
    "bench": "bench_command",
    "compare": "compare_command",
}
# What hakmem/look starts for `hakmem run`.
REPORTERS = {"budgets": "budgets_command"}
# Former names, and what they stand for.
FORMER = {"stat": ["top", "--once"]}
TAKE_PROGRAMS = ("doctor", "record", "compare", "tune")

DESCRIPTION = "Runs programs with hakmem as their malloc, and inspects them."
EPILOG = """\
examples:
  hakmem run redis-server --port 7000    run a program with hakmem as its malloc
  hakmem doctor -- ls -l                 does this program use hakmem? if not, why?
  hakmem doctor 4711                     does the running process 4711 use hakmem?
  hakmem doctor                          is hakmem installed correctly?
  hakmem top                             watch all processes on hakmem
  hakmem exporter                        serve their figures to Prometheus
  hakmem why 4711                        why is process 4711 so large?
  hakmem sheet 4711                      what does process 4711 use memory for?
  hakmem profile 4711                    which of its code allocates memory?
  hakmem run --leaks prog                which memory does prog leak?
  hakmem purge 4711                      have it return its free memory
  hakmem options                         list the options
  hakmem bench --quick                   benchmark hakmem and other allocators
  hakmem compare hakmem glibc -- prog    compare two allocators on a program of yours
  hakmem tune -- prog                    would other settings serve it better?

See 'hakmem COMMAND --help' or the manual pages (man hakmem-run) for more.
"""

RUN_HELP = "run a program with hakmem as its malloc"
RUN_DESCRIPTION = """\
Runs a program, and all programs that it starts, with hakmem as their malloc. To do so, the command
puts libhakmem.so first in LD_PRELOAD and then executes the program in its place. This costs as much
as a shell script of two lines and env. Where the library can't be loaded into the program, because
it is linked statically, say, one line on standard error says so, and the program runs without
hakmem. Each --set costs one more shell, which asks the library whether it accepts the value.
"""
RUN_EPILOG = """\
All words after PROGRAM are its arguments. The environment of the program gets LD_PRELOAD, the
options, and HAKMEM_COMPLAIN=once, with which a wrong option is reported once and not by every
program. If --set names an unknown option or a value that is not allowed, nothing is started.
Nothing else changes: for example, Python keeps its own heap of small objects unless you set
PYTHONMALLOC=malloc.

examples:
  hakmem run python3 app.py
  hakmem run --set keep_bytes=16M --set scavenger=off your-program --its-option
  hakmem run sh -c 'make -j8'            child processes use hakmem, too
  hakmem run env -u LD_PRELOAD prog      prog does not use hakmem
  hakmem run --profile=app.heap ./app    which code allocates memory? see 'hakmem profile'
  hakmem run --hardened ./app            let misuse of the heap end the program
  hakmem run --leaks ./app               which blocks did it lose? see 'hakmem leaks'
  hakmem run --max-peak=200M ./tests     fail if a process needs more memory
  hakmem run --debug prog                look for an error in hakmem itself

exit status:
  122  a process exceeded --max-peak, --max-leaked or --max-allocations, and the status of the
       program is 0
  125  hakmem itself failed, --set has an unknown option or value, the library
       for --debug is not installed, or a process could not be checked for --max-... and the status
       of the program is 0
  126  the program was found, but can't be executed
  127  the program was not found
  N    something is lost, with --leaks-status=N, no --max-... is exceeded, and the status of the
       program is 0
  else the exit status of the program
"""


WIDTH = 100  # of help that is not for a terminal


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str, width: int) -> None:
        super().__init__(prog, max_help_position=min(30, width // 3), width=width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if self._width == WIDTH else "\n".join(_wrapped(text, width)) + "\n"


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Paragraphs anew; of lists each line that is too long, below its second column."""
    for listed, group in groupby(text.splitlines(), key=lambda line: line[:1] in ("", " ")):
        if not listed:
            yield from textwrap.wrap(" ".join(group), width)
            continue
        for line in group:
            columns = re.match(r" *(\S.*?  +)?", line)
            behind = " " * min(columns.end() if columns else 0, width // 2)
            whole = textwrap.wrap(line, width, subsequent_indent=behind) or [""]
            yield from whole if len(line) > width else [line]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}; see '{self.prog} --help'", file=sys.stderr)
        sys.exit(USAGE_ERROR)


def module(name: str) -> Any:
    """Of a subcommand. Ends the process where the Python has not what that needs."""
    try:
        return importlib.import_module(f"hakmem.{(SUBCOMMANDS | REPORTERS)[name]}")
    except ModuleNotFoundError:
        try:
            need("elftools", *needed(name, sys.argv))
        except NoModule as why:
            print(f"hakmem {name}: {why}", file=sys.stderr)
            sys.exit(MISSING)
        raise


def summaries() -> dict[str, str]:
    """A line for each subcommand."""
    return {"run": RUN_HELP} | {name: module(name).HELP for name in SUBCOMMANDS}


def parsers(
    names: Iterable[str] = tuple(SUBCOMMANDS), width: int = WIDTH
) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser of the whole command, and those of `run` and of these subcommands. `width`: of
    their help."""

    def formatter(prog: str) -> _Formatter:
        return _Formatter(prog, width)

    top = _Parser(prog="hakmem", description=DESCRIPTION, epilog=EPILOG, formatter_class=formatter)
    top.add_argument("--version", action="store_true", help="print version and commit")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    # For its help; bin/hakmem does what it says.
    run = commands.add_parser(
        "run",
        usage="hakmem run [-h] [--hardened] [--guards[=N]] [--debug] [--profile[=FILE]]\n"
        "                  [--leaks[=FILE]] [--leaks-status=N] [--leaks-suppressions=FILE]\n"
        "                  [--max-peak=SIZE] [--max-leaked=SIZE] [--max-allocations=N]"
        " [--junit=FILE]\n"
        "                  [--settings=FILE] [--set NAME=VALUE]... [--] PROGRAM [ARG]...",
        help=RUN_HELP,
        description=RUN_DESCRIPTION,
        epilog=RUN_EPILOG,
        formatter_class=formatter,
    )
    run.add_argument(
        "--hardened",
        action="store_true",
        help="let most misuse of the heap end the program, and make attacks a matter of chance:"
        " the option preset=hardened (see docs/security.md)",
    )
    run.add_argument(
        "--guards",
        action="store_true",
        help="find uses after free and overflows of about 10 blocks a second, or with --guards=N of"
        " N, and report the stacks that allocated and freed them: the option guards_a_second (see"
        " docs/guards.md)",
    )
    run.add_argument(
        "--debug",
        action="store_true",
        help="use libhakmem-debug.so, which checks itself: slower, for finding errors in hakmem",
    )
    run.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        help="set an option of hakmem for this run (see 'hakmem options'); may be repeated. Its"
        " former name, -o, is still understood",
    )
    run.add_argument(
        "--settings",
        metavar="FILE",
        help="use the settings that 'hakmem tune' wrote to FILE, instead of those in the file that"
        " HAKMEM_CONFIG names. For another program, another build of it, or another number of"
        " processors it says so in a line and uses the defaults",
    )
    run.add_argument(
        "--profile",
        action="store_true",
        help="write a heap profile of each process when it ends, in any way but SIGKILL: to"
        " PROGRAM.PID.heap, or with --profile=FILE to FILE; 'hakmem profile' shows it. Where ptrace"
        " is not permitted, only processes that end by exit write one",
    )
    run.add_argument(
        "--leaks",
        action="store_true",
        help="when a process ends, print which blocks it has lost (memory leaks), to standard"
        " error; with --leaks=FILE write FILE, which 'hakmem leaks' shows. Needs Python and"
        " ptrace",
    )
    run.add_argument(
        "--leaks-status",
        metavar="N",
        help="with --leaks: exit with status N, from 1 to 255, if something is lost and the"
        " program's own status is 0",
    )
    run.add_argument(
        "--leaks-suppressions",
        metavar="FILE",
        help="with --leaks or --max-leaked: a file of leaks that do not count (see 'hakmem leaks"
        " --help'); may be repeated",
    )
    run.add_argument(
        "--max-peak",
        metavar="SIZE",
        help="the most memory that each process may have in use at once, in blocks as requested:"
        " 200M. For this and the next two options, a line on standard error says what exceeds it,"
        " by how much and which code allocated it. Needs Python and ptrace",
    )
    run.add_argument(
        "--max-leaked",
        metavar="SIZE",
        help="the most memory that each process may have lost when it ends, as --leaks finds it",
    )
    run.add_argument(
        "--max-allocations",
        metavar="N",
        help="how many blocks each process may allocate: 1e6",
    )
    run.add_argument(
        "--junit",
        metavar="FILE",
        help="with --max-...: write the results as JUnit XML, with a test case for each option. It"
        " is an error if the program was ended by a signal or could not be checked",
    )
    run.add_argument("program", metavar="PROGRAM", help="the program to run")
    run.add_argument("args", metavar="ARG", nargs="*", help="its arguments")
    for name in names:
        its = module(name)
        sub = commands.add_parser(
            name,
            help=its.HELP,
            description=its.DESCRIPTION,
            epilog=its.EPILOG,
            formatter_class=formatter,
        )
        its.add_arguments(sub)
    return top, dict(commands.choices)


class _Waiting(io.FileIO):
    """Also where another program has set the terminal or pipe so that a write does not wait."""

    def write(self, data: Any) -> int:
        while (written := super().write(data)) is None:
            select.select([], [self], [])
        return written


class _Output(_Waiting):
    """Standard output that remembers why it could not be written."""

    failure: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.failure = error
            raise


class _Errors(_Waiting):
    """Standard error. What can't be said changes neither what is done nor the exit status."""

    def write(self, data: Any) -> int:
        with suppress(OSError):
            return super().write(data)
        return len(data)


def main() -> None:
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Errors(sys.stderr.fileno(), "w", closefd=False)),
        encoding=sys.stderr.encoding,
        errors="backslashreplace",
        line_buffering=True,
    )
    output = _Output(sys.stdout.fileno(), "w", closefd=False)
    # Names and arguments of programs need not be text of this locale.
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding=sys.stdout.encoding,
        errors="backslashreplace",
        line_buffering=sys.stdout.isatty(),
    )
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # there is nothing to clean up
    mistake = ""  # why it did not come to its end
    status: int | str | None = 0
    try:
        status = run(sys.argv[1:])
    except SystemExit as end:
        status = end.code
    except OSError as error:  # a folder, a file or a process that it can't be without
        what = f"{error.filename}: " if error.filename else ""
        mistake = f"hakmem {' '.join(sys.argv[3:4])}: {what}{error.strerror or error}\n"
        status = FAILED
    except interrupts.Interrupted as end:  # what it undid is undone
        signal.signal(end.number, signal.SIG_DFL)
        os.kill(os.getpid(), end.number)
    except Exception:  # 1, Python's own status for it, has a meaning
        said = "hakmem: this is a mistake in hakmem; please report it\n"
        mistake = f"{traceback.format_exc()}{said}"
        status = FAILED
    with suppress(OSError):
        sys.stdout.flush()
    if output.failure is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())  # Python flushes once more
        if isinstance(output.failure, BrokenPipeError):  # its reader had enough
            status = 0 if mistake else status
        else:
            print(f"hakmem: standard output: {output.failure.strerror}", file=sys.stderr)
            status = FAILED
    elif mistake:
        print(mistake, end="", file=sys.stderr)
    sys.exit(status)


def run(words: list[str]) -> int:
    """`words`: bin/hakmem, the library, and what the user wrote."""
    front, library, *words = words
    if words and words[0] in FORMER:
        print(f"hakmem: '{words[0]}' is now '{' '.join(FORMER[words[0]])}'", file=sys.stderr)
        words = FORMER[words[0]] + words[1:]
    # What follows belongs to another program.
    at = words.index("--") if "--" in words else len(words)
    name = words[0] if at > 0 and words[0] in SUBCOMMANDS | REPORTERS else None
    if name is None:
        return _without_subcommand(words[:at], Path(library))
    commands = parsers([name], _columns())[1]
    if at < len(words) and name not in TAKE_PROGRAMS:
        commands[name].error("-- comes before a program, as in 'hakmem doctor -- ls -l'")
    arguments = commands[name].parse_intermixed_args(words[1:at])
    arguments.front, arguments.library = Path(front), Path(library)
    arguments.behind = words[at + 1 :]
    return int(module(name).run(arguments))


def _without_subcommand(words: list[str], library: Path) -> int:
    if words == ["--version"]:
        return _version(library)
    if words and not words[0].startswith("-") and words[0] != "run":
        return _unknown(words[0])
    top = parsers(width=_columns())[0]
    if top.parse_args(words).version:
        return _version(library)
    top.print_help()
    return 0


def _columns() -> int:
    """bin/hakmem knows how wide the terminal is, if help is for one."""
    told = os.environ.get("HAKMEM_COMMAND_COLUMNS", "")
    width = int(told) if told.isdecimal() else 0
    return max(40, min(width, 120)) if width > 0 else WIDTH


def _unknown(word: str) -> int:
    near = difflib.get_close_matches(word, ["run", *SUBCOMMANDS], 1)
    meant = f"; did you mean '{near[0]}'?" if near else ""
    print(
        f"hakmem: there is no command '{word}'{meant or ';'} see 'hakmem --help'", file=sys.stderr
    )
    return USAGE_ERROR


def _version(library: Path) -> int:
    built = f"{__version__} ({_commit(library)})"
    try:
        version = Library(library).version
    except OSError as error:
        print(f"hakmem {built}; its library can't be loaded: {error}")
        return 1
    print(f"hakmem {built}")
    if version != __version__:
        print(
            f"the library, {library.resolve()}, is version {version}: install the same version "
            "of both"
        )
    return 0


def _commit(library: Path) -> str:
    """As the build wrote it down: beside this file if it is installed, else beside the library."""
    for folder in Path(__file__).resolve().parent, library.parent:
        with suppress(OSError):
            return (folder / "commit").read_text().strip()
    return "commit not known: the file that names it is missing; install hakmem again"
