"""Reading the command line, and saying what is wrong with it."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import TypeVar

USAGE_ERROR = 2


class WrongUse(Exception):
    """A line for the user."""

    status = USAGE_ERROR


def missing_status(error: Exception) -> int:
    """Of a file that can't be read: one that is not there is wrong usage, with every command."""
    return USAGE_ERROR if isinstance(error, (FileNotFoundError, NotADirectoryError)) else 1


Number = TypeVar("Number", int, float)


def number(kind: type[Number], least: float, most: float = math.inf) -> Callable[[str], Number]:
    """For argparse: reads a number within bounds."""

    def read(text: str) -> Number:
        try:
            value = kind(text)
        except ValueError:
            value = kind(-1)
        if not least <= value <= most:
            bounds = f"{least:g} to {most:g}" if most < math.inf else f"{least:g} or more"
            whole = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r}: expected {whole}, {bounds}")
        return value

    return read
