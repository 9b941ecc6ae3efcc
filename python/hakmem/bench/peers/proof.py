"""Is an allocator the one that programs get, for all functions, and does it work?"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hakmem.bench.model import Allocator
from hakmem.bench.peers.probe import DELETE, NAMES, NEW

_PROBE = Path(__file__).resolve().parent / "probe.py"
_PATIENCE = 60  # seconds; a fast allocator takes a fraction of one


@dataclass(frozen=True)
class Proof:
    failure: str
    """Empty: it is in force, and content was kept."""
    version: str = ""
    """The library's own word, where it has one."""


def is_in_force(allocator: Allocator, reported: str) -> bool:
    """Whether the library that a child found malloc in is the one meant."""
    path = Path(reported)
    if allocator.library is None:
        return path.name.startswith(("libc.so", "libc-", "libc.musl", "ld-musl"))
    return path.exists() and path.samefile(allocator.library)


def prove(allocator: Allocator, environment: Mapping[str, str]) -> Proof:
    # -I keeps the user's Python settings out; the interpreter's own blocks shall be malloc's too.
    command = [sys.executable, "-I", "-S", str(_PROBE)]
    try:
        done = subprocess.run(
            command,
            env={**environment, "PYTHONMALLOC": "malloc"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return Proof(f"a short run with it hangs: no end after {_PATIENCE} s")
    said = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return Proof(f"a short run with it ends by {name}: {said[0]}")
    if done.returncode != 0:
        return Proof(f"a short run with it exits with {done.returncode}: {said[0]}")
    record = json.loads(done.stdout)
    elsewhere = _elsewhere(allocator, record["origins"])
    if elsewhere:
        hint = f"; the loader: {said[0]}" if "ld.so" in said[0] else ""
        return Proof(f"not in force: {elsewhere}{hint}")
    if record["failures"]:
        return Proof(f"it does not work: {record['failures'][0]}")
    return Proof("", record["version"])


def _elsewhere(allocator: Allocator, origins: Mapping[str, str | None]) -> str:
    """Functions that others would answer; empty if there are none."""
    others = [
        f"{name} is {origins[name] or 'nobody'}'s"
        for name in NAMES
        if not is_in_force(allocator, origins[name] or "")
    ]
    for name in (NEW, DELETE):
        origin = origins[name]
        # The C++ library's own operators call malloc and free.
        standard = origin is None or Path(origin).name.startswith(("libstdc++", "libc++"))
        if not standard and not is_in_force(allocator, origin or ""):
            others.append(f"{name} is {origin}'s")
    return ", ".join(others)
