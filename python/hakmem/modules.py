"""Python modules of others that only some commands need, and that may not be installed."""

from __future__ import annotations

import importlib
import shlex
import shutil
import sys
from collections.abc import Sequence
from typing import Any

RECORDINGS = ("numpy", "zstandard")
PPROF = "google.protobuf"
# What is installed to get a module, where its name is another. Debian has python3- before it.
_PACKAGES = {
    "elftools": "pyelftools",
    PPROF: "protobuf",
    "prometheus_client": "prometheus-client",
}


class NoModule(Exception):
    """A line for the user: which modules are missing, and the command that installs them."""

    status = 2

    def __init__(self, names: Sequence[str]) -> None:
        packages = [_PACKAGES.get(name, name) for name in names]
        listed = " and ".join(
            [", ".join(packages[:-1]), packages[-1]] if packages[1:] else packages
        )
        super().__init__(
            f"needs the Python module{'s' if packages[1:] else ''} {listed}:"
            f" install with '{_command(packages)}'"
        )


def _command(packages: list[str]) -> str:
    """For the Python that runs this: Debian's own gets modules from Debian's packages."""
    if sys.prefix == sys.base_prefix == "/usr" and shutil.which("apt-get"):
        return shlex.join(["apt-get", "install", *(f"python3-{name}" for name in packages)])
    return shlex.join([sys.executable, "-m", "pip", "install", *packages])


def needed(command: str, words: Sequence[str]) -> list[str]:
    """What a command with these words needs besides pyelftools, if it is one that needs that."""
    found = list(RECORDINGS) if command == "trace" else []
    return [*found, PPROF] if any(word.endswith(".pb.gz") for word in words) else found


def need(*names: str) -> list[Any]:
    """These modules. Raises NoModule, which names all that are missing."""
    found, missing = [], []
    for name in names:
        try:
            found.append(importlib.import_module(name))
        except ImportError:
            missing.append(name)
    if missing:
        raise NoModule(missing)
    return found
