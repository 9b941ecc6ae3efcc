"""Python modules of others that only some commands need, and that may not be installed."""

from __future__ import annotations

import importlib
import shlex
import shutil
import sys
from collections.abc import Sequence
from typing import Any

# What commands need besides, whatever their options.
NEEDED = {
    "record": ("numpy", "zstandard"),
    "trace": ("numpy", "zstandard"),
}
# What is installed to get a module, where its name is another. Debian has python3- before it.
_PACKAGES = {
    "elftools": "pyelftools",
    "google.protobuf": "protobuf",
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
