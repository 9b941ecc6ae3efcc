"""A program that does not end by itself: it is started, a command puts load on it, and it is told
to end. A process beside this one starts the load, so that only the service's own processes are
measured.

    Service       in the process that measures
    main          in the process beside it
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from hakmem_yardstick.measure import Measured
from hakmem_yardstick.model import Allocator

_READY_EACH = 0.05  # s
_ENDS_WITHIN = 20.0  # s after SIGTERM
_KEPT_BYTES = 1 << 20


@dataclass(frozen=True)
class Answer:
    """Of one load."""

    seconds: float = 0.0
    output: str = ""
    failure: str = ""


class Service:
    """`ready`, a command, is repeated until it succeeds; then `load` is run."""

    def __init__(self, load: str, ready: str | None, folder: Path | None, timeout: float) -> None:
        self.asked = {"load": load, "ready": ready, "timeout": timeout}
        self.folder = folder
        self.answer = Answer()
        self.library: str | None = None
        self.beside: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        packages = os.pathsep.join(sys.path)
        self.beside = subprocess.Popen(
            [sys.executable, "-m", "hakmem_yardstick.service"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": packages},
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self.beside is not None:
            self.beside.kill()
            self.beside.communicate()

    def expect(self, allocator: Allocator) -> None:
        self.library = None if allocator.library is None else str(allocator.library)

    def started(self, pid: int) -> None:
        assert self.beside is not None and self.beside.stdin is not None
        print(json.dumps(self.asked | {"pid": pid, "library": self.library}),
              file=self.beside.stdin, flush=True)  # fmt: skip

    def answer_now(self) -> None:
        """Waits for it."""
        assert self.beside is not None and self.beside.stdout is not None
        line = self.beside.stdout.readline()
        self.answer = Answer(**json.loads(line)) if line else Answer(failure="it was killed")

    def failure(self, done: Measured) -> str:
        """Of the run that has just ended, empty if all went well."""
        if done.timed_out:
            return f"not done after {done.seconds:.0f} seconds"
        self.answer_now()
        if self.answer.failure:
            said = " ".join(done.stderr.split())[-300:]
            return f"{self.answer.failure}{': ' + said if said else ''}"
        if done.status not in (0, -signal.SIGTERM, 128 + signal.SIGTERM):
            return done.detail
        return ""


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        answer = _loaded(asked)
        _end(asked["pid"])
        print(json.dumps(asdict(answer)), flush=True)


def _loaded(asked: dict[str, Any]) -> Answer:
    pid, until = asked["pid"], time.monotonic() + asked["timeout"]
    if asked["ready"] is not None:
        while subprocess.run(asked["ready"], shell=True, capture_output=True).returncode:
            if time.monotonic() > until or not Path(f"/proc/{pid}/stat").exists():
                return Answer(failure=f"the service ended, or --ready {asked['ready']!r} failed")
            time.sleep(_READY_EACH)
    lost = _without(pid, asked["library"])
    if lost:
        return Answer(failure=lost)
    began = time.perf_counter()
    try:
        done = subprocess.run(
            ["sh", "-c", asked["load"]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=max(until - time.monotonic(), 1.0),
        )
    except subprocess.TimeoutExpired:
        return Answer(failure="--load took too long")
    seconds = time.perf_counter() - began
    output = done.stdout[-_KEPT_BYTES:]
    if done.returncode:
        end = " ".join(output.split())[-200:]
        return Answer(failure=f"--load ended with status {done.returncode}: {end}")
    return Answer(seconds, output)


def _without(pid: int, library: str | None) -> str:
    """Why the service is not on its allocator, if so."""
    if library is None:
        return ""
    try:
        there = str(Path(library).resolve()) in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return "the service has ended"
    return "" if there else f"{shlex.quote(library)} is not loaded into the service"


def _end(pid: int) -> None:
    """A service may have processes of its own; when it has ended, who measures ends those."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + _ENDS_WITHIN
    while _lives(pid) and time.monotonic() < until:
        time.sleep(0.01)
    with suppress(ProcessLookupError):
        if _lives(pid):
            os.kill(pid, signal.SIGKILL)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


if __name__ == "__main__":
    main()
