"""What `hakmem tune` was asked for, checked before anything takes long; and as a file of settings
keeps it for --check."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hakmem import recording
from hakmem.arguments import WrongUse
from hakmem.variants import split
from hakmem_yardstick import settings_file
from hakmem_yardstick.chosen import known, measures, part, writable
from hakmem_yardstick.model import OURS
from hakmem_yardstick.settings_file import Settings
from hakmem_yardstick.subject import ALL_MEASURES, FIGURE, Figure, Program

# What a file of settings keeps, and of which type it is, where it is there at all.
_KEPT: dict[str, type] = {
    "cd": str,
    "stdin": str,
    "prepare": str,
    "load": str,
    "ready": str,
    "figure": str,
    "more_is_better": bool,
    "measures": str,
    "least": str,
    "timeout": float,
}


@dataclass(frozen=True)
class Asked:
    program: Program
    held_out: Program
    """The same, unless there is other input."""
    base: str
    figure: Figure | None
    measures: tuple[str, ...]
    least: float
    load: str | None
    ready: str | None
    how: Mapping[str, object]
    """As a file of settings keeps it."""


def checked(arguments: argparse.Namespace) -> tuple[Asked, Settings | None]:
    """And the settings to be checked. Raises WrongUse, NoRecording."""
    settings = None if arguments.check is None else settings_file.read(arguments.check)
    wanted = asked(arguments) if settings is None else asked_again(arguments, settings)
    known([wanted.base, *others(arguments)])
    if arguments.recording is not None:
        recording.check(arguments.recording)
    if settings is None:
        writable("-o", output(arguments, wanted))
    writable("--json", arguments.json)
    return wanted, settings


def others(arguments: argparse.Namespace) -> list[str]:
    """The allocators that are named."""
    words = "" if arguments.others in (None, "none") else arguments.others
    return [word for word in words.split(",") if word]


def output(arguments: argparse.Namespace, wanted: Asked) -> Path:
    """Where settings are to be written."""
    return arguments.output or Path(f"{Path(wanted.program.command[0]).name}.settings")


def asked(arguments: argparse.Namespace) -> Asked:
    """Raises WrongUse."""
    if split(arguments.base)[0] != OURS:
        raise WrongUse(f"--base {arguments.base}: expected hakmem, with settings or without")
    if arguments.ready is not None and arguments.load is None:
        raise WrongUse("--ready is for --load")
    folder = (arguments.cd or Path()).absolute()
    if not folder.is_dir():
        raise WrongUse(f"--cd {arguments.cd}: there is no such folder")
    stdin = None if arguments.stdin is None else arguments.stdin.absolute()
    if stdin is not None and not os.access(stdin, os.R_OK):
        raise WrongUse(f"--stdin {arguments.stdin}: cannot be read")
    program = Program(
        _command(arguments.behind, folder),
        stdin=stdin,
        cwd=folder,
        prepare=arguments.prepare,
        timeout=arguments.timeout,
    )
    held_out = program
    if arguments.held_out is not None:
        held_out = replace(program, command=_command(_words(arguments.held_out), folder))
    how = {name: getattr(arguments, name) for name in _KEPT} | {"cd": str(folder)}
    how["stdin"] = None if stdin is None else str(stdin)
    return Asked(
        program,
        held_out,
        arguments.base,
        _figure(arguments),
        _measures(arguments),
        part("--least", arguments.least),
        arguments.load,
        arguments.ready,
        how,
    )


def asked_again(arguments: argparse.Namespace, settings: Settings) -> Asked:
    """For --check: all but how long comes from the file. Raises WrongUse."""
    for name, kind in _KEPT.items():
        value = settings.how.get(name)
        if value is not None and not isinstance(value, (int, float) if kind is float else kind):
            raise WrongUse(f"{arguments.check}: damaged: {name} is {value!r}")
        if value is not None:
            setattr(arguments, name, Path(str(value)) if name in ("cd", "stdin") else value)
    arguments.behind = list(settings.command)
    arguments.base = settings.base
    return asked(arguments)


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise WrongUse(f"--held-out {text!r}: {error}") from error
    if not words:
        raise WrongUse("--held-out: expected a program")
    return words


def _command(words: list[str], folder: Path) -> tuple[str, ...]:
    """With the program's full path, where it is named by a path at all."""
    program = words[0]
    if "/" in program:
        program = os.path.normpath(folder / program)
    if shutil.which(program) is None:
        raise WrongUse(f"{words[0]}: no such program")
    return program, *words[1:]


def _measures(arguments: argparse.Namespace) -> tuple[str, ...]:
    first = "time" if arguments.figure is None else FIGURE
    if arguments.measures is None:
        return (first, "cpu", "peak", "pss")
    names = measures(arguments.measures, ALL_MEASURES)
    if FIGURE in names and arguments.figure is None:
        raise WrongUse("--measures figure needs --figure")
    return names


def _figure(arguments: argparse.Namespace) -> Figure | None:
    if arguments.figure is None:
        return None
    try:
        pattern = re.compile(arguments.figure)
    except re.error as error:
        raise WrongUse(f"--figure {arguments.figure!r}: {error}") from error
    if pattern.groups < 1:
        raise WrongUse(f"--figure {arguments.figure!r}: has no group, as in 'rate: ([0-9.]+)'")
    return Figure(pattern, arguments.more_is_better)
