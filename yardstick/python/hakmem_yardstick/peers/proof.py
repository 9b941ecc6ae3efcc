"""Is an allocator the one that programs get, for all functions?"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hakmem import process
from hakmem_yardstick.measure import ending
from hakmem_yardstick.model import Allocator
from hakmem_yardstick.peers.probe import DELETE, NAMES, NEW

_PROBE = Path(__file__).resolve().parent / "probe.py"
_PATIENCE = 60  # seconds; a fast allocator takes a fraction of one


@dataclass(frozen=True)
class Proof:
    failure: str
    """Empty: it is active."""
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
    variables = {**environment, "PYTHONMALLOC": "malloc", "LD_BIND_NOW": "1"}
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
        timer = threading.Timer(_PATIENCE, child.kill)
        timer.start()
        with child:
            assert child.stdin is not None and child.stdout is not None
            line = child.stdout.readline()
            calls = _calls(child.pid) if line else None
            child.stdin.close()
        hangs = not timer.is_alive()
        timer.cancel()
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()[:1] or ["no word"]
    if hangs:
        return Proof(f"a short run with it hangs: no end after {_PATIENCE} s")
    if child.returncode < 0:
        return Proof(f"a short run with it ends by {ending(child.returncode)}: {said[0]}")
    if child.returncode != 0 or not line:
        return Proof(f"a short run with it exits with {child.returncode}: {said[0]}")
    record = json.loads(line)
    elsewhere = _elsewhere(allocator, record["origins"], calls)
    if elsewhere:
        hint = f"; the loader: {said[0]}" if "ld.so" in said[0] else ""
        return Proof(f"not active: {elsewhere}{hint}")
    return Proof("", record["version"])


def _calls(pid: int) -> dict[str, set[str]] | None:
    """Where the calls of all files in the process lead, by function; None if it can't be read."""
    try:
        calls = process.look(pid).calls
    except OSError:
        return None
    if calls is None:
        return None
    leads: dict[str, set[str]] = {}
    for call in calls:
        if call.target is not None:
            leads.setdefault(call.function, set()).add(call.target.name)
    return leads


def _elsewhere(
    allocator: Allocator, origins: Mapping[str, str | None], calls: Mapping[str, set[str]] | None
) -> str:
    """Functions that others would answer; empty if there are none."""
    others = []
    for name in NAMES:
        asked = origins[name] or ""
        at_table = asked == sys.executable
        leads = (calls or {}).get(name, set())
        wrong = [file for file in leads if not is_in_force(allocator, file)]
        if not leads and (at_table or not asked):
            others.append(f"{name} is nobody's")
        elif wrong or not (at_table or is_in_force(allocator, asked)):
            others.append(f"{name} is {', '.join(wrong) or asked}'s")
    for name in (NEW, DELETE):
        origin = origins[name]
        # The C++ library's own operators call malloc and free.
        standard = origin is None or Path(origin).name.startswith(("libstdc++", "libc++"))
        if not standard and not is_in_force(allocator, origin or ""):
            others.append(f"{name} is {origin}'s")
    return ", ".join(others)
