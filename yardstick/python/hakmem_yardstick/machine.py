"""The machine that figures are from, and how busy it is with other things."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_BUSY_SHARE = 0.05
_BUSY_LOAD = 0.5
_PRESSURE = Path("/proc/pressure/cpu")
_CPU = Path("/sys/devices/system/cpu")
_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUP = Path("/proc/self/cgroup")

# What must be the same for figures of one session to stand side by side.
SAME = ("system", "processor", "processors", "memory_kib", "c_library")


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _field(path: Path, name: str) -> str:
    for line in _text(path).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _compiler() -> str:
    try:
        asked = subprocess.run(["cc", "--version"], capture_output=True, text=True, timeout=30)
    except OSError:
        return ""
    return asked.stdout.partition("\n")[0]


def machine() -> dict[str, Any]:
    """For Results.machine; what can't be found out is empty."""
    named = platform.uname()
    memory = _field(Path("/proc/meminfo"), "MemTotal").split()
    return {
        "system": f"{named.system} {named.release} {named.machine}",
        "processor": _field(Path("/proc/cpuinfo"), "model name"),
        "processors": len(os.sched_getaffinity(0)),
        "processors_worth": processors_worth() or "",
        "memory_kib": int(memory[0]) if memory else 0,
        "c_library": " ".join(platform.libc_ver()).strip(),
        "compiler": _compiler(),
        "transparent_huge_pages": _chosen(
            _text(Path("/sys/kernel/mm/transparent_hugepage/enabled"))
        ),
        "governor": _text(_CPU / "cpu0/cpufreq/scaling_governor"),
        "threads_a_core": _text(_CPU / "smt/active").replace("1", "2").replace("0", "1"),
        "page_bytes": os.sysconf("SC_PAGE_SIZE"),
        "load_at_start": list(os.getloadavg()),
    }


_LABELS = {
    "processor": "processor",
    "processors": "processors",
    "processors_worth": "of their time no more than",
    "memory_kib": "memory",
    "system": "system",
    "c_library": "C library",
    "compiler": "compiler",
    "transparent_huge_pages": "huge pages",
    "governor": "governor",
    "threads_a_core": "threads a core",
    "load_at_start": "load at the start",
}


def told(machine: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Of `machine()`, what is known, as a reader is told it."""
    found = {name: machine[name] for name in _LABELS if machine.get(name)}
    if "memory_kib" in found:
        found["memory_kib"] = f"{found['memory_kib'] / (1 << 20):.1f} GiB"
    if "load_at_start" in found:
        found["load_at_start"] = ", ".join(f"{load:.3g}" for load in found["load_at_start"])
    return [(_LABELS[name], str(value)) for name, value in found.items()]


def processors_worth(groups: Path = _GROUPS, own: Path = _OWN_GROUP) -> float | None:
    """How many processors' time we may use in all, where a control group says so: a container
    often sees all processors, and may not keep them busy."""
    path = next((line[3:] for line in _text(own).splitlines() if line.startswith("0::")), "/")
    group = groups / path.lstrip("/")
    limits = []
    for folder in (group, *group.parents):
        if folder.is_relative_to(groups):
            share, _, period = _text(folder / "cpu.max").partition(" ")
            if share.isdigit() and period.isdigit():
                limits.append(int(share) / int(period))
    return min(limits, default=None)


def _chosen(text: str) -> str:
    """The one in brackets."""
    return text.partition("[")[2].partition("]")[0] or text


def busy() -> str:
    """What says that the machine has other work now, so that figures would be noisy; or empty."""
    processors = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    if load > _BUSY_LOAD * processors:
        return f"load {load:.1f} on {processors} processors"
    share = _pressure("avg10") / 100
    if share > _BUSY_SHARE:
        return f"tasks waited for a processor in {share:.0%} of the last 10 s"
    return ""


def waited_seconds() -> float | None:
    """So long has some task waited for a processor since the start of the machine; None where the
    kernel does not count it."""
    return _pressure("total") / 1e6 if _PRESSURE.exists() else None


def _pressure(name: str) -> float:
    for word in _text(_PRESSURE).partition("\n")[0].split():
        if word.startswith(f"{name}="):
            return float(word.partition("=")[2])
    return 0.0


class Pressure:
    """How much others wanted the processors while rows of one thread ran."""

    def __init__(self) -> None:
        self.waited = 0.0
        self.seconds = 0.0

    def add(self, waited_before: float | None, waited_after: float | None, seconds: float) -> None:
        if waited_before is not None and waited_after is not None:
            self.waited += waited_after - waited_before
            self.seconds += seconds

    @property
    def share(self) -> float:
        return self.waited / self.seconds if self.seconds > 0 else 0.0

    @property
    def warning(self) -> str:
        if self.share <= _BUSY_SHARE:
            return ""
        return (
            f"measured on a busy machine: in {self.share:.0%} of the time another task waited for "
            "a processor, so intervals are wider than they need be"
        )
