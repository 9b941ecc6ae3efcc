"""Which allocator a program uses: asked of the kernel and of the dynamic loader.

There are two independent answers. Both are about the real program, not about its environment:

- `mapped` and `memory_named` read /proc/PID/maps and smaps of a running process;
- `bindings` runs a short command under LD_DEBUG=bindings and reads from the loader's own report
  to which library it bound malloc, calloc, realloc and free of each program that was started.

The demo and the tests in tests/programs use them.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hakmem.bindings import Bindings, read, variables

_MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)$")


def mapped(pid: int, library: Path) -> bool:
    """True when `library` is mapped in process `pid`; False also when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False
    return any(line.endswith(f" {library}") for line in text.splitlines())


def memory_named(pid: int, prefix: str) -> int:
    """Resident KiB in the mappings of `pid` with names that begin with `prefix`."""
    total = 0
    counts = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        header = _MAPPING.match(line)
        if header:
            counts = header.group(1).startswith(prefix)
        elif counts and line.startswith("Rss:"):
            total += int(line.split()[1])
    return total


def bindings(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | None = None,
    timeout: float = 60,
) -> Bindings:
    """Runs `argv`. Returns what the loader reports of it and of every process that it starts."""
    with tempfile.TemporaryDirectory(prefix="hakmem-bindings-") as folder:
        subprocess.run(
            argv,
            env={**env, **variables(Path(folder))},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=timeout,
            check=False,
        )
        return read(Path(folder))


def bound_elsewhere(
    report: Mapping[str, Mapping[str, set[str]]], program: str, library: Path
) -> str | None:
    """None if `program` uses the malloc functions of `library`, else what is wrong, in words.

    A program built without PIE may bind a function to itself: that is its own jump to the library,
    used as the function's address. It only counts if something is bound to the library as well.
    """
    names = [name for name in report if Path(name).name == program]
    if not names:
        return f"{program}: the loader reported no binding of malloc, calloc, realloc or free"
    for name in names:
        targets = set().union(*report[name].values())
        others = sorted(t for t in targets if t not in (str(library), name) and not _same(t, name))
        if str(library) not in targets or others:
            what = ", ".join(
                f"{symbol} to {' and '.join(sorted(to))}" for symbol, to in report[name].items()
            )
            return f"{program}: expected {library}, but the loader bound {what}"
    return None


def _same(one: str, other: str) -> bool:
    return Path(one).name == Path(other).name
