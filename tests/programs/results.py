"""What is kept of a case that was run: one JSON file each, and one about the machine."""

from __future__ import annotations

import ctypes
import datetime
import hashlib
import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MACHINE = "machine.json"
# DIFFERS: in a run with options, for a reason that the case knows (by_address, misuse).
SAME, DIFFERS, FAILED = "same", "differs", "failed"


@dataclass
class Measure:
    """One run of a case."""

    seconds: float
    cpu: float  # seconds, of the whole tree of processes
    peak: int  # KiB, of its largest process


@dataclass
class Result:
    program: str
    group: str
    what: str
    note: str
    library: str  # digest of the library that was preloaded
    versions: dict[str, str]  # of Debian's packages, or Python's
    verdict: str = FAILED
    message: str = ""  # of a failure or a difference
    options: list[str] = field(default_factory=list)  # of the library: NAME=VALUE
    files: int = 0  # compared in each pair of runs
    own: str = ""  # the allocator that the program brought, in force instead of the library
    bound: list[str] = field(default_factory=list)  # programs whose malloc is the library's
    seen: list[str] = field(default_factory=list)  # those in whose mappings it was seen
    system: list[Measure] = field(default_factory=list)
    preloaded: list[Measure] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        write_json(folder / f"{self.program}.json", asdict(self))


def read(file: Path) -> Result:
    kept: dict[str, Any] = json.loads(file.read_text())
    for side in ("system", "preloaded"):
        kept[side] = [Measure(**measure) for measure in kept[side]]
    return Result(**kept)


def done_with(folder: Path, program: str, library: str, options: list[str]) -> bool:
    """True when that library has passed this case with these options already."""
    file = folder / f"{program}.json"
    if not file.is_file():
        return False
    kept = read(file)
    return kept.verdict != FAILED and (kept.library, kept.options) == (library, options)


def digest(library: Path) -> str:
    return hashlib.sha256(library.read_bytes()).hexdigest()[:16]


def write_machine(folder: Path, library: Path) -> None:
    version = ctypes.CDLL(str(library)).hakmem_version()
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    kernel = platform.release().partition("-")[0]
    facts = {
        "date": datetime.date.today().isoformat(),
        "hakmem": f"{version // 10000}.{version // 100 % 100}.{version % 100}",
        "libc": " ".join(platform.libc_ver()),
        "system": f"{system}, Linux {kernel} {platform.machine()}",
        "processor": processor(),
        "processors": len(os.sched_getaffinity(0)),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30),
    }
    write_json(folder / MACHINE, facts)


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def write_json(file: Path, content: object) -> None:
    """The file is whole or not there, whenever this is ended."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(content, indent=1) + "\n")
    part.replace(file)
