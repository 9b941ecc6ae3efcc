"""One run of one command with all the processes that it starts: what they cost together.

`measure` is for one thread at a time: a process that loses its parent while a command runs becomes
a child of this process, and is taken for the command's.

    measure
      _forked           when setsid(1), which starts it, has forked it
      _Sampler.take     resident memory of the whole tree, from smaps_rollup
      Streams.read      what the command prints
      Tree.end          kills and reaps what it left behind

The program is started by setsid(1) and not by Python: the kernel counts into the peak of a process
the memory of the one it was forked from, and that of an interpreter with its libraries loaded is
larger than most programs'.
"""

from __future__ import annotations

import ctypes
import os
import resource
import selectors
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

_SET_CHILD_SUBREAPER = 36  # prctl's
_MOST_SAMPLES = 1000
_SHARE = 0.01  # of the run's time that taking samples may cost
_SECONDS_TO_DIE = 10.0
_SECONDS_TO_LOAD = 0.05  # an allocator that takes longer hangs


@dataclass(frozen=True)
class Measured:
    """What one run cost, all its processes taken together, and how it ended."""

    status: int
    """Exit status, or minus the number of the signal that ended it."""
    timed_out: bool
    """It was killed for taking too long; `status` is then that of the kill."""
    seconds: float
    """From its fork until the command itself had ended."""
    user_seconds: float
    system_seconds: float
    peak_kib: int
    """Resident, of its largest process."""
    minor_faults: int
    major_faults: int
    left_behind: int
    """Processes that were still there when the command had ended, and were killed."""
    output: bytes
    """Of standard output; its end, where there was much."""
    stderr: str
    series: tuple[tuple[float, float], ...] = ()
    """Resident KiB (PSS) of all processes, by seconds since the start; thinned out in long runs."""
    pss_peak_kib: float = 0.0
    """The largest sample."""
    pss_mean_kib: float = 0.0
    """Average over time."""
    sampling_seconds: float = 0.0
    """Processor time that taking the samples cost."""

    @property
    def stdout(self) -> str:
        return self.output.decode(errors="replace")

    @property
    def cpu_seconds(self) -> float:
        return self.user_seconds + self.system_seconds

    @property
    def outcome(self) -> str:
        """The word for a table's cell: "ok", "hang", "SIGSEGV", "exit 3"."""
        return "hang" if self.timed_out else ending(self.status)

    @property
    def detail(self) -> str:
        """A line for below the table, with the end of what it said; empty if all went well."""
        if self.outcome == "ok":
            return ""
        said = " ".join(self.stderr.split())[-300:]
        how = (
            f"not done after {self.seconds:.0f} seconds"
            if self.timed_out
            else f"ended by {self.outcome}"
            if self.status < 0
            else f"exit status {self.status}"
        )
        return f"{how}: {said}" if said else how


def ending(status: int) -> str:
    """As a word: "ok", "SIGSEGV", "exit 3"."""
    if status >= 0:
        return f"exit {status}" if status else "ok"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def measure(
    command: Sequence[str | Path],
    environment: Mapping[str, str],
    *,
    timeout: float,
    sample: float | None = None,
    stdin: Path | None = None,
    keep_output: bool = True,
    keep_bytes: int = 65536,
    cwd: Path | None = None,
    started: Callable[[int], None] = lambda pid: None,
) -> Measured:
    """Runs `command` in a session of its own and waits for its end.

    environment   all of its variables, with LD_PRELOAD (allocators.environment makes it)
    timeout       seconds, after which everything it started is killed
    sample        seconds between samples of resident memory, such as 0.05; longer where taking them
                  would cost more than a hundredth of the time. None takes none
    stdin         a file; without one, standard input is empty
    keep_output   False throws standard output away; the standard error is always kept
    keep_bytes    of the end of each stream
    cwd           where it runs
    started       is told the command's PID

    Raises FileNotFoundError if there is no such program, and OSError if it can't be started.
    Whatever is raised meanwhile, KeyboardInterrupt too, no process of the command survives.
    """
    program = shutil.which(str(command[0]), path=environment.get("PATH"))
    if program is None:
        raise FileNotFoundError(f"{command[0]}: no such program")
    if cwd is not None:
        program = str(Path(program).absolute())
    starter = shutil.which("setsid")
    if starter is None:
        raise FileNotFoundError("setsid: no such program; it is in the package util-linux")
    words = [starter, "--fork", program, *map(str, command[1:])]
    with (
        Path(os.devnull if stdin is None else stdin).open("rb") as source,
        Tree() as tree,
        Streams(keep_bytes) as streams,
    ):
        launcher = subprocess.Popen(
            words,
            env=dict(environment),
            stdin=source,
            stdout=subprocess.PIPE if keep_output else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=cwd,
            start_new_session=True,
        )
        deadline = time.perf_counter() + timeout
        streams.add(launcher.stdout, launcher.stderr)
        start = _forked(launcher.pid, deadline)
        sampler = _Sampler(tree, start, sample)
        # The launcher's end is also the end of all if it could not even start the program.
        ended = streams.wait(launcher.pid, deadline, None)
        main = tree.ended_launcher(launcher) if ended else None
        if main is not None:
            started(main)
            ended = streams.wait(main, deadline, sampler)
        seconds = time.perf_counter() - start
        sampler.close(seconds)
        usage = tree.end()
        streams.read_rest()
        status = tree.status_of(main) if main is not None else tree.status_of(launcher.pid)
    return Measured(
        status=status,
        timed_out=not ended,
        seconds=seconds,
        user_seconds=usage.user,
        system_seconds=usage.system,
        peak_kib=usage.peak_kib,
        minor_faults=usage.minor_faults,
        major_faults=usage.major_faults,
        left_behind=tree.left_behind if ended else 0,
        output=streams.end(0),
        stderr=streams.end(1).decode(errors="replace"),
        series=tuple(sampler.series),
        pss_peak_kib=sampler.peak,
        pss_mean_kib=sampler.mean,
        sampling_seconds=sampler.spent,
    )


def _forked(launcher: int, deadline: float) -> float:
    """When it forked the program, or had ended without: at the last look that found no child, for
    after it, and before the next, a busy machine may let the child run for a while. The launcher
    loads the allocator too, which takes some of them milliseconds: to time that would count it
    twice."""
    none_at = began = time.perf_counter()
    while True:
        look = time.perf_counter()
        if children(launcher):
            return none_at
        if look >= deadline:
            return began
        none_at = look
        if os.waitid(os.P_PID, launcher, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return none_at
        if look - began > _SECONDS_TO_LOAD:
            time.sleep(0.001)


@dataclass
class _Usage:
    user: float = 0.0
    system: float = 0.0
    peak_kib: int = 0
    minor_faults: int = 0
    major_faults: int = 0

    def add(self, used: resource.struct_rusage) -> None:
        self.user += used.ru_utime
        self.system += used.ru_stime
        self.peak_kib = max(self.peak_kib, used.ru_maxrss)
        self.minor_faults += used.ru_minflt
        self.major_faults += used.ru_majflt


def children(pid: int) -> list[int]:
    """In the order in which they became its children; none of a process that is gone."""
    found: list[int] = []
    try:
        for thread in sorted(map(int, os.listdir(f"/proc/{pid}/task"))):  # noqa: PTH208
            with open(f"/proc/{pid}/task/{thread}/children") as file:  # noqa: PTH123
                found += map(int, file.read().split())
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


class Tree:
    """The processes of one run. What loses its parent becomes ours to reap, so none is missed."""

    def __init__(self) -> None:
        if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
            raise OSError("no /proc, or a kernel without CONFIG_PROC_CHILDREN: no process is found")
        self._before = set(children(os.getpid()))
        self._usage = _Usage()
        self._statuses: dict[int, int] = {}
        self.left_behind = 0

    def __enter__(self) -> Self:
        adopt_orphans(True)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.end()
        finally:
            adopt_orphans(False)

    def roots(self) -> list[int]:
        """Our children of this run: the command, the launcher, orphans."""
        return [pid for pid in children(os.getpid()) if pid not in self._before]

    def all(self) -> list[int]:
        found: list[int] = []
        todo = self.roots()
        while todo:
            pid = todo.pop()
            found.append(pid)
            todo += children(pid)
        return found

    def ended_launcher(self, launcher: subprocess.Popen[bytes]) -> int | None:
        """Reaps it; the program that it started and we inherited."""
        _, status, _ = os.wait4(launcher.pid, 0)
        launcher.returncode = self._statuses[launcher.pid] = os.waitstatus_to_exitcode(status)
        # Orphans of the program's can be there too, if it was very quick; none is older than it.
        return min(self.roots(), key=_started_at, default=None)

    def end(self) -> _Usage:
        """Kills what is left, and reaps all; the sum of what they used."""
        give_up = time.monotonic() + _SECONDS_TO_DIE
        self._reap()
        killed: set[int] = set()
        while (alive := self.all()) and time.monotonic() < give_up:
            for pid in alive:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            killed.update(alive)
            self._reap()
            time.sleep(0.001)
        self.left_behind += len(killed)
        return self._usage

    def _reap(self) -> None:
        for pid in self.roots():
            with suppress(ChildProcessError):
                done, status, used = os.wait4(pid, os.WNOHANG)
                if done:
                    self._statuses[pid] = os.waitstatus_to_exitcode(status)
                    self._usage.add(used)

    def status_of(self, pid: int) -> int:
        return self._statuses.get(pid, -signal.SIGKILL)


def _started_at(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def adopt_orphans(yes: bool) -> None:
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_SET_CHILD_SUBREAPER, *(ctypes.c_ulong(word) for word in (yes, 0, 0, 0))) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl: {os.strerror(number)}")


def pss_kib(pid: int) -> float:
    """0 of a process that is gone, or not ours to look into."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:  # noqa: PTH123
            for line in file:
                if line.startswith(b"Pss:"):
                    return float(line.split()[1])
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        pass
    return 0.0


@dataclass
class _Sampler:
    tree: Tree
    start: float
    interval: float | None
    series: list[tuple[float, float]] = field(default_factory=list)
    peak: float = 0.0
    mean: float = 0.0
    spent: float = 0.0
    _area: float = 0.0
    """KiB times seconds, up to the last sample."""
    _last: tuple[float, float] | None = None
    _next: float = 0.0
    _taken: int = 0
    _keep: int = 1
    """Every how manieth sample goes into the series."""

    def due(self) -> float | None:
        """On the clock of `start`; None if no sample is wanted."""
        return None if self.interval is None else max(self._next, self.start)

    def take(self) -> None:
        assert self.interval is not None
        # Time of this thread's own: neighbours on the processor must not thin out the samples.
        began, used = time.perf_counter(), time.thread_time()
        kib = sum(map(pss_kib, self.tree.all()))
        took = time.thread_time() - used
        self.spent += took
        if kib > 0:  # else nothing has started yet, or all has ended and awaits its reaping
            self._add(began - self.start, kib)
        # As often as asked for, but such that the next one too is within the share.
        self._next = max(began + self.interval, self.start + (self.spent + took) / _SHARE)

    def _add(self, at: float, kib: float) -> None:
        self.peak = max(self.peak, kib)
        if self._last is not None:
            before, was = self._last
            self._area += (at - before) * (was + kib) / 2
        else:
            self._area += at * kib
        self._last = (at, kib)
        if self._taken % self._keep == 0:
            self.series.append((round(at, 4), round(kib, 1)))
        self._taken += 1
        if len(self.series) > _MOST_SAMPLES:
            self.series = self.series[::2]
            self._keep *= 2

    def close(self, seconds: float) -> None:
        """What was there last stays until the end."""
        if self._last is not None and seconds > 0:
            at, kib = self._last
            self.mean = (self._area + max(0.0, seconds - at) * kib) / seconds


class Streams:
    """Reads what a command prints while waiting for it, and keeps the end of it."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        # In pieces as they came: joined at each, a program that prints much would wait for us.
        self._kept: tuple[deque[bytes], deque[bytes]] = (deque(), deque())
        self._length = [0, 0]
        self._files: list[IO[bytes]] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        for file in self._files:
            file.close()

    def add(self, *files: IO[bytes] | None) -> None:
        for number, file in enumerate(files):
            if file is not None:
                self._files.append(file)
                os.set_blocking(file.fileno(), False)
                self._selector.register(file.fileno(), selectors.EVENT_READ, number)

    def wait(self, pid: int, deadline: float, sampler: _Sampler | None) -> bool:
        """Until it has ended, and is left to be reaped; False if the deadline came first."""
        end = os.pidfd_open(pid)
        self._selector.register(end, selectors.EVENT_READ, None)
        try:
            while True:
                due = sampler.due() if sampler is not None else None
                now = time.perf_counter()
                if sampler is not None and due is not None and due <= now:
                    sampler.take()
                    due, now = sampler.due(), time.perf_counter()
                until = deadline if due is None else min(deadline, due)
                for key, _ in self._selector.select(max(0.0, until - now)):
                    if key.data is None:
                        return True
                    self._read(key.fd, key.data)
                if time.perf_counter() >= deadline:
                    return False
        finally:
            self._selector.unregister(end)
            os.close(end)

    def _read(self, fd: int, number: int) -> bool:
        """False at its end, or if there is nothing now."""
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(fd)
            return False
        kept = self._kept[number]
        kept.append(data)
        self._length[number] += len(data)
        while self._length[number] - len(kept[0]) >= self._keep:
            self._length[number] -= len(kept.popleft())
        return True

    def read_rest(self) -> None:
        for key in list(self._selector.get_map().values()):
            while self._read(key.fd, key.data):
                pass

    def end(self, number: int) -> bytes:
        return b"".join(self._kept[number])[-self._keep :]
