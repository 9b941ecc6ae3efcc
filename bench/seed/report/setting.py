"""Where and when a run was made, and of which versions: what a reader of its figures asks first."""

import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from bench.seed.report.allocators import SYSTEM, Allocator, Kind


@dataclass(frozen=True)
class Setting:
    system: str
    """Kernel, its release and the architecture, separated by spaces."""
    processor: str
    """As it names itself; empty if it does not."""
    processors: int
    date: str
    """Of the run's beginning, ISO 8601."""
    scale: float
    """Of the rows' iterations; 0 if not known."""
    versions: dict[str, str]
    """By allocator, of those that a package manager knows."""

    @property
    def kernel(self) -> str:
        """Without the parts of the release that name a build."""
        name, release, architecture = [*self.system.split(), "", "", ""][:3]
        return " ".join((name, ".".join(release.split(".")[:2]), architecture)).strip()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def setting_of(record: dict[str, Any], day: str) -> Setting:
    """From a file; `day` stands for the date where none is said."""
    return Setting(
        system=record["system"],
        processor=record.get("processor", ""),
        processors=record["processors"],
        date=record.get("date", day),
        scale=record.get("scale", 0.0),
        versions=record.get("versions", {}),
    )


def here(allocators: Iterable[Allocator], scale: float) -> Setting:
    machine = platform.uname()
    versions = {a.name: _version(a) for a in allocators if a.kind is Kind.PEER}
    return Setting(
        system=f"{machine.system} {machine.release} {machine.machine}",
        processor=_processor(),
        processors=os.cpu_count() or 1,
        date=date.today().isoformat(),
        scale=scale,
        versions={name: version for name, version in versions.items() if version},
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "")


def _dpkg(*arguments: str) -> str:
    try:
        asked = subprocess.run(
            ["dpkg-query", *arguments], capture_output=True, text=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout


def _version(allocator: Allocator) -> str:
    """Package and version, or nothing where no package holds the library."""
    if allocator.library is None:
        package = "libc6"
    else:
        package = _dpkg("-S", str(allocator.library)).partition(":")[0].strip()
    version = _dpkg("-W", "-f", "${Version}\n", package).partition("\n")[0] if package else ""
    if version:
        return f"{package} {version}"
    return " ".join(platform.libc_ver()).strip() if allocator.name == SYSTEM else ""
