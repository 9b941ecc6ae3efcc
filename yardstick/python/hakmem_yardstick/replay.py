"""One recording on one allocator: the player (replay/) makes its calls once more.

`play` may run in any process, here or on another machine that has the recording at the same path.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import zstandard  # noqa: F401  recordings are packed with it: where it is missing, it is installed

from hakmem import events, ops
from hakmem.folders import Folder
from hakmem.recording import NoRecording
from hakmem_yardstick.allocators import environment
from hakmem_yardstick.measure import ending
from hakmem_yardstick.model import Allocator

POINTS = 400  # of a curve
_HEAD = 8  # words of the player's result that come before the epochs


class CannotReplay(Exception):
    """A line for the user."""

    status = 1


@dataclass(frozen=True)
class Job:
    recording: Path
    process: int | None
    """Its PID; None: that with most calls."""
    allocator: Allocator
    player: Path
    speed: float = 0.0
    """In times that of the recording; 0: as fast as possible."""
    timeout: float = 600.0


@dataclass(frozen=True)
class Played:
    """What a replay cost. Memory is anonymous memory of the player, in bytes."""

    allocator: str
    outcome: str
    """"ok", or the word for a table's cell: SIGSEGV, hang, exit 3."""
    detail: str = ""
    peak: int = 0
    mean: float = 0.0
    """Over the time of the recording."""
    time: float = 0.0
    """Seconds, of all calls and what the player itself does."""
    cpu: float = 0.0
    faults: int = 0
    failed: int = 0
    """Allocations that failed."""
    curve: tuple[tuple[float, int], ...] = ()
    """By seconds of the recording, the largest since the point before."""

    @property
    def why(self) -> str:
        """It is no result."""
        if self.outcome != "ok":
            return f"{self.outcome}: {self.detail}" if self.detail else self.outcome
        return f"{self.failed:,} allocations failed"


@dataclass(frozen=True)
class Prepared:
    """A process of a recording, ready for the player."""

    file: Path
    epochs: int
    times: tuple[float, ...]
    """Seconds of the recording when each ended."""
    live: tuple[int, ...]
    """Bytes requested and not freed then."""
    peak: int
    calls: int
    threads: int
    unknown: int
    whole: bool
    command: tuple[str, ...]
    pid: int


def play(job: Job) -> Played:
    """Raises NoRecording, CannotReplay."""
    ready = prepared(job.recording, job.process)
    timeout = job.timeout + (ready.times[-1] / job.speed if job.speed else 0.0)
    with tempfile.TemporaryDirectory(dir=_folder()) as folder:
        result = Path(folder) / "result"
        with result.open("wb") as file:
            file.truncate(8 * _HEAD + 16 * ready.epochs)
        speed = str(max(round(1000 * job.speed), 1 if job.speed else 0))
        try:
            done = subprocess.run(
                [job.player, ready.file, result, speed],
                env=environment(job.allocator),
                capture_output=True,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            return Played(job.allocator.name, "hang", f"not done after {timeout:.0f} s")
        if done.returncode:
            said = done.stderr.decode(errors="backslashreplace").strip()[-300:]
            return Played(job.allocator.name, ending(done.returncode), said)
        return _read(job.allocator.name, ready, np.fromfile(result, dtype="<u8"))


def _read(name: str, ready: Prepared, words: np.ndarray) -> Played:
    _, time, cpu, faults, failed = (int(word) for word in words[:5])
    resident = words[_HEAD:].reshape(-1, 2)[:, 1].astype("i8")
    times = np.asarray(ready.times)
    lasted = np.diff(times, prepend=0.0)
    between = (resident + np.roll(resident, 1)) / 2
    between[0] = resident[0]
    mean = float(np.average(between, weights=lasted)) if lasted.sum() else float(resident.mean())
    return Played(
        *(name, "ok", "", int(resident.max()), mean),
        *(time / 1e9, cpu / 1e9, faults, failed, curve(times, resident)),
    )


def curve(times: np.ndarray, values: np.ndarray) -> tuple[tuple[float, int], ...]:
    """Thinned out to POINTS; of each part the largest value."""
    ends = np.linspace(0, float(times[-1]), POINTS + 1)
    part = np.clip(np.searchsorted(ends, times, side="left"), 1, POINTS)
    first = np.flatnonzero(np.diff(part, prepend=0))
    most = np.maximum.reduceat(values, first)
    return tuple((float(ends[part[at]]), int(value)) for at, value in zip(first, most, strict=True))


# ---- making ready ----


def prepared(recording: Path, pid: int | None) -> Prepared:
    """Made once in each Python, for as long as the file stays as it is. Raises NoRecording,
    CannotReplay."""
    try:
        status = recording.stat()
    except OSError as error:
        raise NoRecording(f"{recording}: {error.strerror}") from error
    return _prepared(recording, pid, status.st_size, status.st_mtime_ns)


@cache
def _prepared(recording: Path, pid: int | None, _size: int, _changed: int) -> Prepared:
    found, whole = events.processes(recording)
    process = events.chosen(found, pid, recording)
    made = ops.made(process)
    file = _folder() / f"{len(list(_folder().iterdir()))}-{os.getpid()}.ops"
    try:
        with file.open("wb") as out:
            ops.write(made, out)
    except OSError as error:
        file.unlink(missing_ok=True)
        raise CannotReplay(
            f"{file.parent}: {error.strerror}; TMPDIR can name a folder with more room"
        ) from error
    return Prepared(
        file=file,
        epochs=len(made.times),
        times=tuple((made.times / 1e9).tolist()),
        live=tuple(made.live.tolist()),
        peak=made.peak,
        calls=made.calls,
        threads=len(made.counts),
        unknown=made.unknown,
        whole=whole,
        command=tuple(process.facts["command"]),
        pid=process.facts["pid"],
    )


@cache
def _folder() -> Path:
    """For what the player reads."""
    made = Folder("hakmem-replay-")
    atexit.register(made.remove)
    return made.path
