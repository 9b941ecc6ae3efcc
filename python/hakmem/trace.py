"""Runs a program and everything that it starts, and examines each process as it ends.

The kernel stops a traced process at each exec and just before its end, while its memory is still in
place. So even the shortest program is seen, and also which program lost a variable. Threads and
child processes are followed. The program's own work is left alone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from hakmem import process
from hakmem.process import Program

# <linux/ptrace.h>
CONT, SEIZE, LISTEN = 7, 0x4206, 0x4208
EVENT_EXEC, EVENT_EXIT, EVENT_STOP = 4, 6, 128
FOLLOW = 1 << 1 | 1 << 2 | 1 << 3 | 1 << EVENT_EXEC | 1 << EVENT_EXIT  # fork, vfork, clone
ALL_TASKS = 0x40000000  # __WALL
STOPPING = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
GRACE = 5  # seconds between SIGTERM and SIGKILL


class NotPermitted(Exception):
    """The kernel does not permit tracing here."""


class _Tracer:
    def __init__(self, command: Sequence[str], seconds: float | None) -> None:
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.programs: list[Program] = []
        self.of: dict[int, Program | None] = {}  # each living process
        self.tasks: dict[int, int] = {}  # each living thread: its process
        self.seconds = seconds
        self.asked_to_end = False
        self.root = self._start(command)

    def _ptrace(self, request: int, pid: int, data: int = 0) -> bool:
        arguments = ctypes.c_long(request), ctypes.c_long(pid), ctypes.c_long(0)
        return int(self.libc.ptrace(*arguments, ctypes.c_long(data))) == 0

    def _start(self, command: Sequence[str]) -> int:
        """The child waits for a byte before it runs the command: by then it is being traced."""
        wait, go = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.close(go)
            if os.read(wait, 1):
                for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these
                    signal.signal(number, signal.SIG_DFL)
                with suppress(OSError):
                    os.dup2(2, 1)  # standard output is for the report
                    os.execv(command[0], list(command))
            os._exit(125)
        os.close(wait)
        traced = self._ptrace(SEIZE, child, FOLLOW)
        if traced:
            self.of[child] = None
            self.tasks[child] = child
            os.write(go, b"x")
        os.close(go)
        if not traced:
            os.waitpid(child, 0)
            raise NotPermitted
        return child

    def run(self) -> list[Program]:
        """In the order of their start."""
        asked = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
        handlers = {number: signal.signal(number, self._end) for number in asked}
        # The terminal sends SIGINT to the program as well, which may end in its own way.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if self.seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, self.seconds)
        try:
            while self.root in self.tasks:
                self._wait(0)
            self._see_what_is_left()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return self.programs

    def _wait(self, flags: int) -> bool:
        """Handles the next task that was stopped or has ended. Returns whether there was one."""
        try:
            task, status = os.waitpid(-1, ALL_TASKS | flags)
        except ChildProcessError:
            return False
        if task and os.WIFSTOPPED(status):
            self._stopped(task, status)
        elif task:
            self.tasks.pop(task, None)
            program = self.of.pop(task, None)
            if program is not None and task == self.root and not self.asked_to_end:
                program.killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        return task != 0

    def _see_what_is_left(self) -> None:
        """Processes that the program leaves behind go on, as they would without being traced. Some
        may have just been started: each is examined once the loader has finished its work."""
        end = time.monotonic() + GRACE
        while time.monotonic() < end:
            if self._wait(os.WNOHANG):
                continue
            if all(self._look(pid, ending=False) for pid in self.of):
                break
            time.sleep(0.01)

    def _end(self, number: int, _frame: FrameType | None) -> None:
        again = number == signal.SIGALRM and self.seconds is None
        self.asked_to_end = True
        for pid in list(self.of):  # a script would leave its children behind
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL if again else signal.SIGTERM)
        if number == signal.SIGALRM:
            self.seconds = None
            signal.setitimer(signal.ITIMER_REAL, GRACE)

    def _stopped(self, task: int, status: int) -> None:
        number, event = os.WSTOPSIG(status), status >> 16
        if task not in self.tasks:
            self._new(task)
        if event == EVENT_EXEC:
            self._became(task)
        elif event == EVENT_EXIT:
            self._look(task, ending=True)
        if event == EVENT_STOP and number in STOPPING:
            self._ptrace(LISTEN, task)
        else:
            self._ptrace(CONT, task, 0 if event else number)

    def _new(self, task: int) -> None:
        """A thread, or a process that still runs its parent's program."""
        with suppress(OSError):
            lines = Path(f"/proc/{task}/status").read_text(errors="replace").splitlines()
            facts = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
            owner, parent = int(facts["Tgid"]), int(facts["PPid"])
            self.tasks[task] = owner
            if owner == task:
                self.of[task] = self.of.get(parent)
            return
        self.tasks[task] = task

    def _became(self, pid: int) -> None:
        self.tasks[pid] = pid
        with suppress(OSError):
            program = process.program(pid)
            program.before = self.of.get(pid)
            # When the process has ended, its folder in /proc is gone.
            program.root = program.root.readlink()
            self.of[pid] = program
            self.programs.append(program)

    def _look(self, task: int, ending: bool) -> bool:
        """Returns whether there is nothing more to see: the calls are bound, or there are none. It
        reads the task: if one thread ends the process, the first may already have no memory."""
        program = self.of.get(self.tasks.get(task, task))
        if program is None or program.file is None or program.file.static:
            return True
        if not _bound(program.picture):
            with suppress(OSError):
                program.picture = process.look(task)
                program.ended = ending and not self.asked_to_end
        return _bound(program.picture)


def _bound(picture: process.Picture | None) -> bool:
    return picture is not None and any(call.target for call in picture.calls or ())


def run(command: Sequence[str], seconds: float | None = None) -> list[Program]:
    """Runs a command to its end, or sends it SIGTERM after some time. Its standard output goes to
    this process's standard error."""
    return _Tracer(command, seconds).run()
