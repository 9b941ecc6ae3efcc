"""Python modules of others that only some commands need, and that may not be installed."""

from __future__ import annotations


class NoModule(Exception):
    """A line for the user: a module is missing, and how to get it."""

    status = 2

    def __init__(self, module: str, debian: str, pip: str) -> None:
        super().__init__(
            f"needs the Python module {module}: install {debian} (Debian), or 'pip install {pip}'"
        )
