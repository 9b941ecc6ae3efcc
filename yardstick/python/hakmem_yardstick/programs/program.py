"""What a program of the group is: where its parts are found, what it works on, how one run goes.

Program.make    its inputs, once for each size of the work
Program.run     one measured run of it in a Place, and what came out
"""

from __future__ import annotations

import functools
import glob
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hakmem_yardstick.measure import Measured, measure

SCRIPTS = Path(__file__).resolve().parent / "scripts"
# Debian's programs and no others: a python3 of a virtual environment is not what a row names.
PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin"
POSTGRES = "/usr/lib/postgresql/*/bin"
SAMPLE_SECONDS = 0.05


class LoadFailed(Exception):
    """The client of a server found that it did not do its work."""


def found(name: str) -> str:
    return find(name) or name


@functools.cache
def find(name: str) -> str | None:
    """Where Debian puts a program; of several versions of PostgreSQL the newest."""
    folders = sorted(glob.glob(POSTGRES), key=_version)  # noqa: PTH207
    return shutil.which(name, path=os.pathsep.join([PATH, *reversed(folders)]))


def _version(folder: str) -> int:
    number = Path(folder).parent.name
    return int(number) if number.isdecimal() else 0


@dataclass(frozen=True)
class Place:
    """Where one run happens, and with what."""

    inputs: Path
    """What `make` made; not to be changed."""
    folder: Path
    """Of this run alone, gone when it is over."""
    environment: Mapping[str, str]
    sizes: Mapping[str, int]
    timeout: float
    sample: float | None = SAMPLE_SECONDS
    before: Sequence[str | Path] = ()
    """Words that start what follows them."""

    def measure(self, command: Sequence[str | Path]) -> Measured:
        return measure(
            [*self.before, *command],
            self.environment,
            timeout=self.timeout,
            sample=self.sample,
            cwd=self.folder,
        )


@dataclass(frozen=True)
class Ran:
    """One run."""

    measured: Measured
    result: Sequence[bytes] = ()
    """What it computed, which no allocator may change."""
    seconds: float | None = None
    """What the client of a server waited; else the run's own time counts."""
    operations: int | None = None
    """Times are divided by it."""
    extra: Mapping[str, float] = field(default_factory=dict)
    raw: Mapping[str, object] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        hashed = hashlib.sha256()
        for part in self.result:
            hashed.update(len(part).to_bytes(8) + part)
        return hashed.hexdigest()[:16]


Run = Callable[[Place], Ran]
Command = Callable[[Place], Sequence[str | Path]]
Make = Callable[[Path, Mapping[str, int]], None]


@dataclass(frozen=True)
class Program:
    name: str
    why: str
    packages: tuple[str, ...]
    executables: tuple[str, ...]
    run: Run
    sizes: Mapping[str, int]
    """How much work: the numbers that a scale multiplies."""
    proof: tuple[str, ...]
    """A short command in which the loader binds all that matters; @INPUTS@ is the folder."""
    proof_of: tuple[str, ...]
    """Whose malloc is proved: programs and libraries by their names, or patterns of them."""
    own: str = ""
    """What it keeps from malloc: pools and heaps of its own."""
    make: Make | None = None
    fixed: Mapping[str, int | str] = field(default_factory=dict)
    """Further parameters."""
    variables: Mapping[str, str] = field(default_factory=dict)
    family: str = ""
    """Of those that differ in their size alone; empty: its name."""
    tier: str = "standard"
    threads: int = 1
    per: str = ""
    """The operation that times are of; empty: the whole run."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Figures of its own in KiB, judged too: name and what it is."""
    judged: tuple[str, ...] = ("time", "peak")
    brings: str = ""
    """An allocator that it is linked with, so that the system's must be preloaded too."""
    user: str | None = None
    """Whom it runs as when this process is root, which it refuses to be."""

    def scaled(self, scale: float) -> dict[str, int]:
        return {name: max(1, round(size * scale)) for name, size in self.sizes.items()}

    def longer(self, name: str, why: str, **sizes: int) -> Program:
        """A row of the full run that does the same with more."""
        return replace(
            self,
            name=name,
            why=why,
            sizes={**self.sizes, **sizes},
            family=self.family or self.name,
            tier="full",
        )

    def missing(self) -> list[str]:
        return [name for name in self.executables if find(name) is None]


def row(
    name: str,
    why: str,
    run: Run,
    sizes: Mapping[str, int],
    packages: str = "",
    executables: str = "",
    proof: str = "",
    of: str = "",
    **more: Any,
) -> Program:
    """A Program by words with spaces between them. What is not given follows from what stands
    before it: a package is named as the row, and its program is asked for its version."""
    packages = packages or name
    executables = executables or packages.split()[0]
    main = executables.split()[0]
    words = (packages, executables, proof or f"{main} --version", of or main)
    packed, executed, proved, named = (tuple(each.split()) for each in words)
    return Program(name, why, packed, executed, run, sizes, proved, named, **more)


def words(text: str, *more: str) -> Command:
    """A command by words with spaces between them, and `more` as they are. In each word @INPUTS@
    and @SCRIPTS@ stand for folders, and the names of sizes for these."""

    def command(place: Place) -> list[str]:
        known = {"INPUTS": place.inputs, "SCRIPTS": SCRIPTS, **place.sizes}
        program, *rest = (
            re.sub(r"@(\w+)@", lambda name: str(known[name[1]]), word)
            for word in (*text.split(), *more)
        )
        return [found(program), *rest]

    return command


def made(maker: Callable[[Path, int], None], file: str, size: str) -> Make:
    """Inputs in one file, or of the folder where that is empty, by one of the sizes."""
    return lambda folder, sizes: maker(folder / file, sizes[size])


def batch(command: Command, outputs: str | None = None) -> Run:
    """A command that works and ends. Its result: what it prints, and the files of a pattern."""

    def run(place: Place) -> Ran:
        measured = place.measure(command(place))
        return Ran(measured, [measured.stdout.encode(), *_files(place.folder, outputs)])

    return run


def _files(folder: Path, pattern: str | None) -> Iterable[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob(pattern))] if pattern else []
