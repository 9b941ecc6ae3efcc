"""Proof that an allocator is a program's malloc: the loader's own report of what it bound."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

from hakmem.bindings import Bindings, read, variables
from hakmem_yardstick.measure import Measured, measure


def report(
    command: Sequence[str | Path],
    environment: Mapping[str, str],
    folder: Path,
    timeout: float,
    prefix: Sequence[str] = (),
) -> tuple[Measured, Bindings]:
    """Runs a short command to its end; who of all that it started took malloc from where.

    `prefix` are words that become another user and start what follows.
    """
    with tempfile.TemporaryDirectory(prefix="bindings-", dir=folder) as place:
        Path(place).chmod(0o777)
        # By env(1): a report is named after its process, and the prefix's would be another user's.
        asked = [f"{name}={value}" for name, value in variables(Path(place)).items()]
        measured = measure(
            [*prefix, "env", *asked, *command],
            environment,
            timeout=timeout,
            keep_output=False,
            cwd=folder,
        )
        return measured, read(Path(place))


def elsewhere(bindings: Bindings, names: Iterable[str], library: Path) -> str:
    """Empty if each of these programs takes its malloc from the library; else what is wrong."""
    for name in names:
        files = [file for file in bindings if fnmatch(Path(file).name, name)]
        if not files:
            return f"the loader tells of no malloc in {name}"
        for file in files:
            for function, targets in bindings[file].items():
                # A program without PIE may bind a function to its own jump to the library.
                others = [t for t in targets if t != file and not _same(Path(t), library)]
                if others:
                    return f"{name} has {function} from {', '.join(sorted(others))}"
            if not any(_same(Path(t), library) for to in bindings[file].values() for t in to):
                return f"{name} binds malloc to itself"
    return ""


def _same(one: Path, other: Path) -> bool:
    return one.exists() and one.samefile(other)


def c_library() -> Path:
    """The file that this process, and every other of this system, has glibc from."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = Path(line.split()[-1])
        if path.name.startswith(("libc.so", "libc-2")):
            return path
    raise FileNotFoundError("no libc.so is mapped here: rows of programs need glibc")
