"""Checks what `hakmem bench` was asked for, before anything takes long. Needs none of the libraries
that the command installs."""

from __future__ import annotations

import argparse
from pathlib import Path

from hakmem.arguments import WrongUse
from hakmem_yardstick import compact, listing
from hakmem_yardstick.allocators import UnknownAllocator, preparations
from hakmem_yardstick.model import Results
from hakmem_yardstick.store import CannotStore, Store, newest

_OF_A_NEW_SESSION = (
    *("quick", "full", "only", "rows", "half", "vs", "lib", "out"),
    *("rounds", "seconds", "scale", "timeout"),
)


def check(arguments: argparse.Namespace) -> None:
    """Raises WrongUse."""
    if arguments.show is not None:
        results(arguments.show)
    elif arguments.resume:
        if any(getattr(arguments, name) for name in _OF_A_NEW_SESSION):
            raise WrongUse("--resume takes all settings from the session; give no others with it")
        try:
            session(arguments.folder).check()
        except CannotStore as why:
            raise WrongUse(str(why)) from None
    else:
        _check_new(arguments)


def results(file: Path) -> Results:
    """Raises WrongUse."""
    try:
        return compact.read(file)
    except OSError as error:
        raise WrongUse(f"report {file}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise WrongUse(f"report {file}: not results of this hakmem ({error})") from error


def session(folder: str | None) -> Store:
    """Raises CannotStore."""
    return Store(Path(folder) if folder is not None else newest(Path.cwd()))


def _check_new(arguments: argparse.Namespace) -> None:
    if arguments.folder is not None:
        folder = str(arguments.folder)
        raise WrongUse(f"unexpected {folder!r}; with --resume it would be a session's folder")
    if arguments.scale is not None and not 0 < arguments.scale <= 1000:
        raise WrongUse(f"--scale {arguments.scale:g}: expected a factor above 0, such as 0.1")
    listing.chosen(listing.rows(), arguments)
    mode, vs = listing.mode_of(arguments), listing.split(arguments.vs)
    try:
        preparations(arguments.library.parent, arguments.lib or [], vs, mode)
    except UnknownAllocator as error:
        raise WrongUse(str(error)) from None
