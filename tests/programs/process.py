"""Starts programs, ends them, and reads from the kernel what they and their children used.

Each program leads a session and a process group of its own and becomes a child of this process.
The kernel counts for a process, as its peak, also the pages of the process that started it, so a
program is not started from here, where Python alone would be its peak, but by a small shell.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PR_SET_CHILD_SUBREAPER = 36
# Tells the id of the process through standard input, which then becomes the program's own.
LAUNCH = 'echo $$ >&0; exec env "$@" <"$0"'


@dataclass
class Usage:
    """What programs used; sums of time, and of their peaks the largest."""

    cpu: float = 0.0  # seconds, user and system, of the programs and all processes they waited for
    peak: int = 0  # KiB resident, of the one process that had most

    def add(self, cpu: float, peak: int) -> None:
        self.cpu += cpu
        self.peak = max(self.peak, peak)


class Child:
    """A started program, used as a `subprocess.Popen` is."""

    def __init__(self, argv: Sequence[str], pid: int, usage: Usage) -> None:
        self.args = list(argv)
        self.pid = pid
        self.returncode: int | None = None
        self._usage = usage
        self._pidfd = os.pidfd_open(pid)

    def poll(self) -> int | None:
        if self.returncode is None:
            self._reap(os.WNOHANG)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and timeout is not None:
            ended = select.poll()
            ended.register(self._pidfd, select.POLLIN)
            if not ended.poll(max(0.0, timeout) * 1000):
                raise subprocess.TimeoutExpired(self.args, timeout)
        if self.returncode is None:
            self._reap(0)
        assert self.returncode is not None
        return self.returncode

    def _reap(self, options: int) -> None:
        pid, status, used = os.wait4(self.pid, options)
        if pid:
            self._usage.add(used.ru_utime + used.ru_stime, used.ru_maxrss)
            self.returncode = os.waitstatus_to_exitcode(status)
            os.close(self._pidfd)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def stop(self) -> None:
        """Ends the program and what it started, asking first; counts what it had left behind."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._reap_group():
                return
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                return
            end = time.monotonic() + 10
            while not self._reap_group() and time.monotonic() < end:
                time.sleep(0.01)

    def _reap_group(self) -> bool:
        """Waits for those of the group that have ended; True when none of ours is left."""
        self.poll()
        while True:
            try:
                pid, _, used = os.wait4(-self.pid, os.WNOHANG)
            except ChildProcessError:
                return self.returncode is not None
            if not pid:
                return False
            self._usage.add(used.ru_utime + used.ru_stime, used.ru_maxrss)


def start(
    argv: Sequence[str], usage: Usage, *, cwd: Path, env: Mapping[str, str], stdin: Path,
    stdout: IO[bytes], stderr: IO[bytes], user: str | None = None,
) -> Child:  # fmt: skip
    """Runs `argv`, as `user` where one is given and this process may; the rest as Popen."""
    adopt_orphans()
    variables = dict(env)
    preload = [f"LD_PRELOAD={variables.pop('LD_PRELOAD')}"] if "LD_PRELOAD" in variables else []
    launch = ["setsid", "--fork", *become(user), "sh", "-c", LAUNCH, str(stdin), *preload, *argv]
    source, sink = os.pipe()
    with os.fdopen(source, "rb") as answer:
        try:
            subprocess.run(
                launch, cwd=cwd, env=variables, stdin=sink, stdout=stdout, stderr=stderr, check=True
            )
        finally:
            os.close(sink)
        pid = int(answer.readline())
    return Child(argv, pid, usage)


def become(user: str | None) -> list[str]:
    """The words that run what follows them as `user`; none where this process is not root."""
    if not user or os.geteuid():
        return []
    group = pwd.getpwnam(user).pw_gid
    return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]


def adopt_orphans() -> None:
    """Makes this process the parent of what its descendants leave behind."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def end_orphans(usage: Usage) -> None:
    """Ends whatever descendants left to this process, and counts it; to be called with no Child."""
    while True:
        text = "".join(file.read_text() for file in Path("/proc/self/task").glob("*/children"))
        for pid in map(int, text.split()):
            os.kill(pid, signal.SIGKILL)  # a zombie, too, is still ours until it is waited for
            _, _, used = os.wait4(pid, 0)
            usage.add(used.ru_utime + used.ru_stime, used.ru_maxrss)
        if not text:
            return


def describe(status: int) -> str:
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"
