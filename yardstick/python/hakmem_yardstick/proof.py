"""Proves which malloc a program and all that it starts call, by running it once.

The run is a traced one (hakmem.trace), in a Python of its own, so that what it does to signals and
children stays there. Where the files of a process call malloc is read from its memory.

    prove
      main        in the other Python
        _finding    one process
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hakmem import elf, process, trace
from hakmem_yardstick.measure import Streams, Tree
from hakmem_yardstick.model import Allocator

_NOT_PERMITTED = "programs may not be traced here (a container without ptrace, or under a debugger)"
_KEPT_BYTES = 1 << 24
_EXTRA_SECONDS = 30.0  # for the other Python, beyond what the program may take


class Unproved(Exception):
    """It was not, or could not be, shown to be active; the text says why."""


@dataclass(frozen=True)
class Finding:
    """Of one process since its last exec."""

    program: str
    in_force: bool
    why: str = ""
    """Why not."""


def prove(
    allocator: Allocator,
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    timeout: float,
    stdin: Path | None = None,
    cwd: Path | None = None,
) -> list[Finding]:
    """Runs the command to its end, and says of each process in which it is not active.

    Raises Unproved if it is in none, or if it can't be told; FileNotFoundError if there is no such
    program. The run is killed after `timeout` seconds; what was seen until then counts.
    """
    path = shutil.which(command[0], path=environment.get("PATH"))
    if path is None:
        raise FileNotFoundError(f"{command[0]}: no such program")
    _refuse(path)
    asked = {
        "command": [str(Path(path).absolute()), *command[1:]],
        "environment": dict(environment),
        "library": None if allocator.library is None else str(allocator.library),
        "seconds": timeout,
    }
    packages = (str(Path(file).parents[1]) for file in (__file__, process.__file__))
    other = [
        sys.executable,
        "-c",
        "from hakmem_yardstick import proof; proof.main()",
        json.dumps(asked),
    ]
    # What the program left behind is killed, as in runs that count, which it would disturb; and not
    # waited for, though it holds our pipes.
    with (
        Path(os.devnull if stdin is None else stdin).open("rb") as source,
        Tree(),
        Streams(_KEPT_BYTES) as streams,
    ):
        child = subprocess.Popen(
            other,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(packages)},
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            start_new_session=True,
        )
        streams.add(child.stdout, child.stderr)
        try:
            ended = streams.wait(child.pid, time.perf_counter() + timeout + _EXTRA_SECONDS, None)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        streams.read_rest()
        out, said = (streams.end(number).decode(errors="replace") for number in (0, 1))
    if not ended:
        raise Unproved(f"did not end within {timeout:.0f} seconds, even when killed")
    lines = out.splitlines()
    if child.returncode != 0 or not lines:
        raise Unproved(f"could not be looked at: {said.strip()[-300:]}")
    answer = json.loads(lines[-1])
    if "refused" in answer:
        raise Unproved(answer["refused"])
    findings = [Finding(**finding) for finding in answer["findings"]]
    if not findings:
        raise Unproved("ended before it could be looked at")
    if not any(finding.in_force for finding in findings):
        raise Unproved(findings[0].why)
    return findings


def _refuse(path: str) -> None:
    """What is known before it runs."""
    try:
        file = elf.read(Path(path))
    except elf.NotElf:
        return  # a script; its interpreter will be seen
    except OSError:
        return  # may be executed and not read; the run will tell
    if file.go and file.static:
        raise Unproved("it is a Go program without cgo, which does not use malloc")
    if file.static and not file.is_hakmem:
        raise Unproved("it is linked statically: its malloc is inside, and none can be preloaded")


def main() -> None:
    """In the other Python; prints one line of JSON."""
    asked = json.loads(sys.argv[1])
    library = None if asked["library"] is None else Path(asked["library"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    answer: dict[str, Any]
    try:
        programs = trace.run(asked["command"], asked["seconds"])
    except trace.NotPermitted:
        answer = {"refused": _NOT_PERMITTED}
    else:
        replaced = {
            id(p.before) for p in programs if p.before is not None and p.before.pid == p.pid
        }
        found = [
            finding
            for program in programs
            if (finding := _finding(program, library, id(program) in replaced)) is not None
        ]
        answer = {"findings": [asdict(finding) for finding in found]}
    sys.stdout.flush()
    print(json.dumps(answer), flush=True)


def _finding(program: process.Program, library: Path | None, is_replaced: bool) -> Finding | None:
    """None for one that tells nothing: it became another before it called anything."""

    def no(why: str) -> Finding:
        return Finding(program.name, False, why)

    file, picture = program.file, program.picture
    if program.privileged:
        return no("it runs with raised privileges, so that nothing can be preloaded")
    if file is None:
        return no(f"{program.path} may not be read")
    if file.static:
        return no("it is linked statically: its malloc is inside, and none can be preloaded")
    calls = [] if picture is None else [c for c in picture.calls or () if c.target is not None]
    targets = list(dict.fromkeys(c.target for c in calls if c.target is not None))
    own = picture.files[0] if picture is not None and picture.files else None
    if own is not None and _hides_malloc(own.file):
        return no(f"it brings a malloc of its own inside{_named(own)}")
    if not targets:
        return None if is_replaced else no("it was not seen to call malloc")
    others = [target for target in targets if not _is_meant(target, library)]
    if not others:
        return Finding(program.name, True)
    took = any(name == str(library) for name in program.preloads) or library is None
    where = ", ".join(f"{other.name}{_named(other)}" for other in others)
    if took or len(others) < len(targets):
        return no(f"its malloc is that of {where}")
    return no(f"LD_PRELOAD was taken away before it started, and its malloc is that of {where}")


def _is_meant(target: process.Loaded, library: Path | None) -> bool:
    if library is None:
        return target.file.allocator in elf.C_LIBRARIES or Path(target.name).name.startswith(
            ("libc.so", "libc-", "ld-")
        )
    try:
        return Path(target.name).samefile(library)
    except OSError:
        return False


def _hides_malloc(file: elf.Elf) -> bool:
    """The program calls a malloc inside itself that it shows nobody."""
    return "malloc" in file.inside and "malloc" not in file.exported and not file.is_hakmem


def _named(loaded: process.Loaded) -> str:
    allocator = loaded.file.allocator
    return "" if allocator is None or allocator in elf.C_LIBRARIES else f" ({allocator})"
