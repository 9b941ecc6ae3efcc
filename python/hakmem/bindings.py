"""The dynamic loader's own report of where it bound malloc, calloc, realloc and free.

If a command runs with `variables(folder)`, each process that it starts writes a report into the
folder; `read` collects them. The loader reports a function when it binds it. That is the first call
of the function, unless the program was linked to bind all functions at its start (-z now).
"""

from __future__ import annotations

import re
from pathlib import Path

from hakmem.elf import FAMILY

# By calling file: function -> files that it was bound to. A program appears under the name that it
# was started with, a library under its path.
Bindings = dict[str, dict[str, set[str]]]

_BINDING = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol `([^']+)'")


def variables(folder: Path) -> dict[str, str]:
    return {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": f"{folder}/ld"}


def read(folder: Path) -> Bindings:
    found: Bindings = {}
    for report in folder.iterdir():
        for caller, target, symbol in _BINDING.findall(report.read_text(errors="replace")):
            if symbol in FAMILY:
                found.setdefault(caller, {}).setdefault(symbol, set()).add(target)
    return found
