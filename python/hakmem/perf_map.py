"""Names of code that a program made while it ran, as it writes them for perf: /tmp/perf-PID.map, a
line `START SIZE NAME` for each function, both numbers in hexadecimal.
https://github.com/torvalds/linux/blob/master/tools/perf/Documentation/jit-interface.txt
"""

from __future__ import annotations

import bisect
import os
import re
import stat
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 256 * 2**20
_LINE = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16}) (?:0x)?([0-9a-fA-F]{1,16}) (.+)")
_PYTHON = re.compile(r"py::([^:]+):(.+)")


class NoMap(Exception):
    """A line for the user."""


@dataclass(frozen=True)
class PerfMap:
    starts: list[int]
    functions: list[tuple[int, str, str]]  # the size, the name and the file of each

    def function(self, address: int) -> tuple[str, str] | None:
        at = bisect.bisect_right(self.starts, address) - 1
        if at >= 0 and address < self.starts[at] + self.functions[at][0]:
            return self.functions[at][1:]
        return None


def of_process(pid: int, root: Path, owners: Collection[int]) -> PerfMap | None:
    """None where there is none. `pid`: as the process knows it; `root`: its root folder.

    Raises NoMap."""
    path = root / f"tmp/perf-{pid}.map"
    return read(path, owners) if os.path.lexists(path) else None


def read(path: Path, owners: Collection[int] | None = None) -> PerfMap:
    """Anybody may write into /tmp, so the file has to be of one of the owners, if they are given,
    or of root. Raises NoMap."""
    try:
        # Of a link or a pipe nothing is read, nor waited for.
        link = 0 if owners is None else os.O_NOFOLLOW
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | link)
        with os.fdopen(file, "rb") as opened:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise NoMap(f"{path}: not a plain file")
            if owners is not None and status.st_uid not in {0, *owners}:
                raise NoMap(f"{path}: is another user's, so it is not read")
            content = opened.read(MOST_BYTES)
    except OSError as error:
        raise NoMap(f"{path}: {error.strerror}") from error
    return parse(content.decode(errors="replace"))


def parse(text: str) -> PerfMap:
    """Of two functions at one address the later counts: it took the place of the other."""
    found = {}
    for line in text.split("\n"):
        match = _LINE.fullmatch(line)
        if match is not None:
            python = _PYTHON.fullmatch(match[3])
            name, file = (python[1], python[2]) if python else (match[3], "")
            found[int(match[1], 16)] = int(match[2], 16), name, file
    starts = sorted(found)
    return PerfMap(starts, [found[start] for start in starts])


def inner_pid(pid: int) -> int:
    """A process's number in its own namespace."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return pid
