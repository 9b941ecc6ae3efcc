"""A program that does not end by itself: it is started, a command puts load on it, and it is told
to end. A process beside this one starts the load, so that only the service's own processes are
measured.

    Service       in the process that measures
    main          in the process beside it
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from hakmem_yardstick.measure import Measured, adopt_orphans, children
from hakmem_yardstick.model import Allocator

_READY_EACH = 0.05  # s
_READY_MOST = 10.0  # s, of one try
_LOADED_WITHIN = 3.0  # s from its start until the service has its libraries
_ENDS_WITHIN = 20.0  # s after SIGTERM
_KEPT_BYTES = 1 << 20
_ALLOCATORS = re.compile(
    r"/(lib(?:hakmem|jemalloc|tcmalloc|mimalloc|snmalloc|rpmalloc)[^/\s]*)$", re.M
)


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
        self.waits = False
        """For an answer."""
        self.beside: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        # Not by its environment, which the load's commands get too.
        start = f"import sys; sys.path[:] = {sys.path!r}; "
        start += "from hakmem_yardstick.service import main; main()"
        self.beside = subprocess.Popen(
            [sys.executable, "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self.beside is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.beside.pid, signal.SIGKILL)
            self.beside.communicate()
        self.waits = False

    def expect(self, allocator: Allocator) -> None:
        self.library = None if allocator.library is None else str(allocator.library)

    def started(self, pid: int) -> None:
        assert self.beside is not None and self.beside.stdin is not None
        request = self.asked | {"pid": pid, "library": self.library}
        print(json.dumps(request), file=self.beside.stdin, flush=True)
        self.waits = True

    def answered(self) -> str:
        """Waits for the answer; why the load failed, or nothing."""
        assert self.beside is not None and self.beside.stdout is not None
        line = self.beside.stdout.readline()
        self.waits = False
        self.answer = Answer(**json.loads(line)) if line else Answer(failure="it was killed")
        return self.answer.failure

    def failure(self, done: Measured) -> str:
        """Of the run that has just ended, empty if all went well."""
        if not self.waits:
            return done.detail or "it could not be started"
        if done.timed_out:
            # Whatever the process beside would still answer is not for the next run.
            self.__exit__()
            self.__enter__()
            return f"not done after {done.seconds:.0f} seconds"
        failure = self.answered()
        if failure:
            said = " ".join(done.stderr.split())[-300:]
            return f"{failure}{': ' + said if said else ''}"
        if done.status not in (0, -signal.SIGTERM, 128 + signal.SIGTERM):
            return done.detail
        return ""


def main() -> None:
    adopt_orphans(True)
    for line in sys.stdin:
        asked = json.loads(line)
        answer = _loaded(asked)
        _end(asked["pid"])
        _end_own()
        print(json.dumps(asdict(answer)), flush=True)


def _loaded(asked: dict[str, Any]) -> Answer:
    pid, until = asked["pid"], time.monotonic() + asked["timeout"]
    while asked["ready"] is not None:
        if _status(asked["ready"], min(until, time.monotonic() + _READY_MOST))[0] == 0:
            break
        if time.monotonic() > until or not _lives(pid):
            return Answer(failure=f"the service ended, or --ready {asked['ready']!r} failed")
        time.sleep(_READY_EACH)
    wrong = _malloc_of(pid, asked["library"])
    if wrong:
        return Answer(failure=wrong)
    began = time.perf_counter()
    status, output = _status(asked["load"], until)
    seconds = time.perf_counter() - began
    if status is None:
        return Answer(failure="--load took too long")
    if status:
        end = " ".join(output.split())[-200:]
        return Answer(failure=f"--load ended with status {status}: {end}")
    return Answer(seconds, output)


def _status(command: str, until: float) -> tuple[int | None, str]:
    """Of a command for sh, and the end of what it prints; None if it took too long."""
    started = subprocess.Popen(
        ["sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = started.communicate(timeout=max(until - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        return None, ""
    return started.returncode, output[-_KEPT_BYTES:]


def _malloc_of(pid: int, library: str | None) -> str:
    """Why the service is not on its allocator, if so. It may still be starting."""
    until = time.monotonic() + _LOADED_WITHIN
    while True:
        try:
            maps = Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            return "the service has ended"
        found = _ALLOCATORS.findall(maps)
        if library is not None and str(Path(library).resolve()) in maps:
            return ""
        if library is None:
            return f"the service brings {found[0]}" if found and "libhakmem" not in maps else ""
        if time.monotonic() > until:
            return f"{library} is not loaded into the service"
        time.sleep(0.05)


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


def _end_own() -> None:
    """What the load's commands left behind."""
    while left := children(os.getpid()):
        for pid in left:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
