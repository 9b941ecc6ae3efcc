"""What the dynamic loader reports, when asked, of where it bound malloc and its kin.

A command run with `variables(folder)` makes each process that it starts write a report into the
folder; `read` collects them. A function is reported when it is bound, which is at its first call
unless the program was linked to have all bound at its start.
"""

from __future__ import annotations

import re
from pathlib import Path

from hakmem.elf import FAMILY

# By the file that calls: function -> files that it was bound to. A program appears under the name
# it was started by, a library under its path.
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
