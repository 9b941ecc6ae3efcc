"""`hakmem record`: every allocation and free of a program, into a file."""

from __future__ import annotations

import argparse
import errno
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hakmem import interrupts, look, perf_map, rights, ring
from hakmem.arguments import USAGE_ERROR, number
from hakmem.folders import Folder
from hakmem.hint import hint
from hakmem.look import CannotLook
from hakmem.modules import RECORDINGS, NoModule, need
from hakmem.profile_text import printable, size
from hakmem.recording import PROCESS_MOST, Writer
from hakmem.ring import CHUNK_EVENTS, Gathered, Ring
from hakmem.touched import Looks

HELP = "record every allocation and free of a program"
DESCRIPTION = HELP[0].upper() + HELP[1:] + ", and of all programs that it starts, into a file."
EPILOG = """\
Each event has the thread, the size, the alignment, the time, and for allocations the call stack.
'hakmem trace FILE' shows what the program did.

A recording has sizes, times, addresses of blocks and code, command lines and the paths of programs
and libraries. It has no contents of memory.

The program writes events to memory that it shares with this command, which compresses them. When
that memory is full, the program waits. If this command is killed, the program goes on after 5
seconds without being recorded, and what was written until then can be read. The recording ends with
the program; processes that it leaves behind are not recorded any longer.

With a PID, records a running process that uses hakmem, and those that it forks from then on, for so
many seconds. Ctrl-C, SIGTERM or SIGHUP ends the recording before that. Blocks that were allocated
before are only seen when they are freed.

examples:
  hakmem record -- ./app input
  hakmem record -o app.recording -- ./app input
  hakmem record --seconds 60 4711
  hakmem trace app.recording

exit status, with a PROGRAM:
  2    wrong usage, or a Python module is missing
  125  the recording can't be written
  126  the program was found, but can't be executed; no file is written
  127  the program was not found; no file is written
  else the exit status of the program; 128 and more: the program was killed by a signal

exit status, with a PID:
  0    success
  1    the process does not use hakmem, or can't be recorded now
  2    wrong usage, no such process, or a Python module is missing
  3    no permission to read and write the process
  4    the process is idle: it did not begin to record
  125  the recording can't be written
"""
FAILED = 125
SECONDS = 30
LIMIT = 4096  # MiB
BLOCK_EVENTS = 1 << 17  # a block of the file has so many at most, or those of a second
LOOK_EVENTS = 1 << 15  # a look is to find so many, a sixteenth of a ring
REST_LEAST, REST_MOST = 0.001, 0.005  # seconds between looks; a process waits at its end for two
QUIET_EACH = 0.1  # seconds until the ring is emptied where only threads that ended left chunks
MAPS_EACH = 1.0  # seconds from one look at a process's mappings to the next
NAMES_SHARE = 0.02  # of the time may be spent on the names of its threads


class CannotRecord(Exception):
    status = FAILED


class NotPermitted(CannotRecord):
    status = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="where to write (default: PROGRAM.PID.recording)",
    )
    parser.add_argument(
        "--limit",
        metavar="MIB",
        type=number(int, 1),
        default=LIMIT,
        help=f"end the recording, not the program, when FILE has this many MiB (default: {LIMIT})",
    )
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=number(float, 0, 1e6),
        default=SECONDS,
        help=f"how long to record a process (default: {SECONDS})",
    )
    parser.add_argument("subject", metavar="PID", nargs="?", help="a running process")


def run(arguments: argparse.Namespace) -> int:
    command: list[str] = arguments.behind
    if bool(command) == (arguments.subject is not None):
        wrong = "a PID or a program, not both" if command else "a PID, or a program after --"
        print(f"hakmem record: name {wrong}; see 'hakmem record --help'", file=sys.stderr)
        return USAGE_ERROR
    try:
        need(*RECORDINGS)
        if command:
            return _record_program(arguments, command)
        return _record_process(arguments, look.read_pid(arguments.subject))
    except (CannotRecord, CannotLook, NoModule) as why:
        print(f"hakmem record: {printable(str(why))}", file=sys.stderr)
        return why.status


def _record_process(arguments: argparse.Namespace, pid: int) -> int:
    look.check_pid(pid)
    _refuse_another_namespace(pid)
    root = Path(f"/proc/{pid}/root")
    if not os.access(root, os.X_OK):
        why = rights.reason(pid)
        raise NotPermitted(f"no permission to read and write process {pid}: {why}")
    name = f"{look.program(pid).replace('/', '_')}.{pid}"
    folder = _folder_for(pid, root)
    until = float("inf")

    def end(*_: object) -> None:
        nonlocal until
        until = 0.0

    try:
        writer = _writer(arguments.output or Path(f"{name}.recording"))
        with interrupts.handled(end):
            recorder = Recorder(folder.within, writer, arguments.limit * 2**20)
            look.record(pid, arguments.library, "/" + str(folder.path.relative_to(root)))
            until = min(until, time.monotonic() + arguments.seconds)
            while not recorder.stopped and time.monotonic() < until and look.lives(pid):
                recorder.look()
                recorder.rest()
            recorder.finish()
            _tell(recorder)
        return FAILED if recorder.failed else 0
    finally:
        folder.remove()


def _refuse_another_namespace(pid: int) -> None:
    """A recorded process names itself by the number that it knows."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith("NSpid:") and line.split()[1:] != [str(pid)]:
                raise CannotRecord(
                    f"process {pid} has another number in its container: run hakmem record there"
                )


PREFIX = "hakmem-record-"  # of folders for rings


def _folder_for(pid: int, root: Path) -> Folder:
    """Where the process can write, in memory if there is some where it lives."""
    for where in ("dev/shm", "tmp"):
        with suppress(OSError):
            folder = Folder(PREFIX, root / where)
            owner = Path(f"/proc/{pid}").stat()
            if os.geteuid() != owner.st_uid:
                os.chown(folder.path, owner.st_uid, owner.st_gid)
            return folder
    raise CannotRecord(f"process {pid} has no folder /dev/shm or /tmp to which this user may write")


def _record_program(arguments: argparse.Namespace, command: list[str]) -> int:
    if shutil.which(command[0]) is None:  # 'hakmem run' says why, and nothing is written
        return subprocess.call(_words(arguments.front, command))
    output = arguments.output or Path(f"{Path(command[0]).name}.{os.getpid()}.recording")
    folder = _folder()
    try:
        writer = _writer(output)
        recorder = Recorder(folder.within, writer, arguments.limit * 2**20)
        program: subprocess.Popen[bytes] | None = None

        def hand_on(number: int, _: object) -> None:
            """Ctrl-C reaches the program as well as this command, as SIGHUP does that a terminal
            sends: it goes on until the program has ended."""
            if number == signal.SIGTERM and program is not None:
                program.terminate()

        with interrupts.handled(hand_on):
            program = _start(arguments.front, command, folder.path)
            try:
                while program.poll() is None:
                    recorder.look()
                    recorder.rest()
                recorder.finish()
            finally:
                recorder.stop_all()
        _tell(recorder)
        status = program.returncode
        return status if status >= 0 else 128 - status
    finally:
        folder.remove()


def _tell(recorder: Recorder) -> None:
    print(f"hakmem record: {printable(recorder.summary())}", file=sys.stderr)
    if recorder.count:
        hint(f"'hakmem trace {recorder.writer.path}' says what the program did with its memory")


def _folder() -> Folder:
    """In memory, if there is room for some rings."""
    memory = Path("/dev/shm")
    with suppress(OSError):
        if shutil.disk_usage(memory).free >= 256 * 2**20:
            return Folder(PREFIX, memory)
    try:
        return Folder(PREFIX)
    except OSError as error:
        raise CannotRecord(f"no folder for what the program tells: {error.strerror}") from error


def _writer(path: Path) -> Writer:
    try:
        return Writer(path)
    except OSError as error:
        raise CannotRecord(f"{path}: {error.strerror}") from error


def _start(front: Path, command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"HAKMEM_RECORD": str(folder)}
    try:
        return subprocess.Popen(_words(front, command), env=environment, restore_signals=True)
    except OSError as error:
        raise CannotRecord(f"{command[0]}: {error.strerror}") from error


def _words(front: Path, command: list[str]) -> list[str]:
    return ["/bin/sh", str(front), "run", "--", *command]


@dataclass
class _Process:
    """One ring, and what waits to be written."""

    number: int  # in the file
    ring: Ring
    looks: Looks
    maps: str = ""
    looked: float = 0.0
    written: float = 0.0
    waiting: Gathered = field(default_factory=lambda: Gathered(BLOCK_EVENTS // CHUNK_EVENTS))
    reader: threading.Thread | None = None  # looks at the mappings
    found: str = ""  # what it found
    names: dict[str, str] = field(default_factory=dict)  # of threads, at the last look
    names_next: float = 0.0  # when they may be looked at again
    ending: bool = False  # the last such look has begun
    descriptor: int | None = None  # is readable when the process has ended; kernels from 5.3 on
    emptied: float = 0.0  # when its ring was

    def __post_init__(self) -> None:
        with suppress(OSError, AttributeError):  # not in each Python
            self.descriptor = os.pidfd_open(self.ring.process)

    def read_maps(self) -> None:
        path = Path(f"/proc/{self.ring.process}/maps")
        with suppress(OSError):
            text = path.read_bytes().decode(errors="surrogateescape")
            if self.ring.path.name not in text:  # it has executed another program
                return
            # Other line ends than this one may be part of a path.
            lines = text.split("\n")
            self.found = "".join(f"{line}\n" for line in lines if "/" in line or "[v" in line)
        begun = time.monotonic()
        if self.ending or begun >= self.names_next:
            with suppress(OSError):  # the process may end meanwhile
                self._read_names(path.parent / "task")
            now = time.monotonic()
            self.names_next = now + (now - begun) / NAMES_SHARE

    def _read_names(self, tasks: Path) -> None:
        for thread in tasks.iterdir():
            with suppress(OSError):
                self.names[thread.name] = (thread / "comm").read_text(errors="replace").strip()


class Recorder:
    """Empties rings into a file."""

    def __init__(self, folder: Path, writer: Writer, limit: int) -> None:
        self.folder = ring.Folder(folder)
        self.writer = writer
        self.limit = limit
        self.processes: list[_Process] = []  # those whose rings are there
        self.count = 0
        self.events = 0
        self.waited = 0
        self.lost = 0
        self.gave_up = 0  # processes that waited too long for this command
        self.unread = 0  # processes whose larger rings could not be opened
        self.stopped = ""  # why nothing more is recorded
        self.failed = False  # by no wish of the user
        self.pause = REST_MOST
        self.most = 0  # events of a process that the last look found
        self.ends = select.poll()

    def rest(self) -> None:
        """Each look takes some time, however few events it finds."""
        self.pause *= LOOK_EVENTS / max(self.most, 1)
        self.pause = min(max(self.pause, REST_LEAST), REST_MOST)
        self.ends.poll(1000 * self.pause)

    def look(self) -> None:
        """Empties all rings once."""
        self.most = 0
        for new in self.folder.new():
            self._begin(new)
        newest = {process.ring.process: process for process in self.processes}
        over = {descriptor for descriptor, _ in self.ends.poll(0)}
        for process in list(self.processes):
            self._beat()
            if process.descriptor is None:
                ended = not look.lives(process.ring.process)
            else:
                ended = process.descriptor in over
            ended |= newest[process.ring.process] is not process
            self._empty(process, ended)
            if ended:
                self._end(process)

    def _beat(self) -> None:
        """Before anything that may take long, so that no process gives up."""
        for process in self.processes:
            process.ring.beat()

    def stop_all(self) -> None:
        for process in self.processes:
            process.ring.stop()

    def finish(self) -> None:
        """No more is recorded; nor is what a process that is still there starts meanwhile."""
        self.stop_all()
        while (before := self.count) is not None:
            self.look()
            self.stop_all()
            if self.count == before:
                break
        for process in list(self.processes):
            self._empty(process, True)
            self._end(process)
        self.folder.close()
        self.writer.close()

    def _begin(self, new: Ring) -> None:
        process = _Process(self.count, new, Looks(new.process))
        self.count += 1
        self.processes.append(process)
        if process.descriptor is not None:
            self.ends.register(process.descriptor, select.POLLIN)
        if self.stopped:
            new.stop()
        self._write(
            lambda: self.writer.said(
                b"PROC",
                {
                    "process": process.number,
                    "pid": new.process,
                    "parent": new.parent,
                    "command": _command(new),
                    "tick_shift": new.tick_shift,
                    "ticks": new.ticks,
                    "time": new.time,
                    "started": time.time(),
                    "begun": perf_map.started(new.process),
                    "cpus": os.cpu_count(),
                },
            )
        )
        self._look_at_maps(process)

    def _look_at_maps(self, process: _Process) -> None:
        """Which files the process has in memory, for names of functions. In a thread: that takes
        seconds where many threads begin or end."""
        if process.reader is None:
            process.looked = time.monotonic()
            process.reader = threading.Thread(target=process.read_maps, daemon=True)
            process.reader.start()

    def _take_maps(self, process: _Process) -> None:
        """Writes what a look has found, if one has ended."""
        if process.reader is None or process.reader.is_alive():
            return
        process.reader = None
        if process.found and process.found != process.maps:
            process.maps = text = process.found
            self._write(
                lambda: self.writer.said(b"MAPS", {"process": process.number, "maps": text})
            )

    def _empty(self, process: _Process, ended: bool) -> None:
        state = process.ring.state
        self._take_maps(process)
        now = time.monotonic()
        if ended or not process.ring.is_quiet or now - process.emptied > QUIET_EACH:
            process.emptied = now
            self._take(process, ended)
        if process.looks.due and not ended:
            self._look_at_pages(process)
        if ended or now - process.written > 1:
            self._write_waiting(process, ended)
        if state == ring.ENDING and not ended and process.ring.head["seen"][0] < state:
            if process.ending and process.reader is None:
                process.ring.see(state)
            elif process.reader is None:
                process.ending = True
                self._look_at_maps(process)

    def _take(self, process: _Process, ended: bool) -> None:
        at = process.ring.full(ended)
        self.most = max(self.most, CHUNK_EVENTS * len(at))
        while len(at):
            if process.waiting.room_left == 0:
                self._beat()
                self._write_waiting(process, ended)
            room = process.waiting.room_left
            process.ring.take(at[:room], process.waiting)
            at = at[room:]

    def _write_waiting(self, process: _Process, ended: bool) -> None:
        process.written = time.monotonic()
        if process.waiting.used:
            self._note(process, ended)
            self.events += process.waiting.used
            chunks = process.waiting.chunks()
            self._write(lambda: self.writer.events(process.number, chunks))

    def _note(self, process: _Process, ended: bool) -> None:
        """What of the new events is to be looked at while the process is there."""
        events = process.waiting.new()
        process.looks.note(events)
        late = time.monotonic() - process.looked > MAPS_EACH
        if late and not ended and ring.has_paths(events):
            self._look_at_maps(process)

    def _look_at_pages(self, process: _Process) -> None:
        self._note(process, False)
        process.looks.note(process.ring.unfinished())
        seen = process.looks.look()
        if seen:
            facts = {"process": process.number, "time": time.monotonic_ns(), "blocks": seen}
            self._write(lambda: self.writer.said(b"SEEN", facts))

    def _end(self, process: _Process) -> None:
        head = process.ring.head
        process.looks.close()
        if process.descriptor is not None:
            self.ends.unregister(process.descriptor)
            os.close(process.descriptor)
        if process.reader is not None:
            process.reader.join(MAPS_EACH)
            self._take_maps(process)
        gave_up = process.ring.state == ring.ENDED and not head["stop"][0]
        self.gave_up += gave_up
        self.unread += not process.ring.all_is_seen
        process.ring.stop()  # it may be there still, if not as far as can be seen
        waited, lost = int(head["waited"][0]), int(head["lost"][0])
        self.waited += waited
        self.lost += lost
        self._write(
            lambda: self.writer.said(
                b"DONE",
                {
                    "process": process.number,
                    "time": time.monotonic_ns(),
                    "orderly": process.ring.state == ring.ENDING,
                    "gave_up": bool(gave_up),
                    "lost": lost,
                    "threads": dict(process.names),
                    "waits": int(head["waits"][0]),
                    "waited_ns": waited,
                },
            )
        )
        self.processes.remove(process)
        with suppress(OSError):
            process.ring.path.unlink()

    def _write(self, write: object) -> None:
        if self.stopped:
            return
        try:
            write()  # type: ignore[operator]
        except OSError as error:
            self.failed = True
            self._stop(f"{self.writer.path}: {os.strerror(error.errno or errno.EIO)}")
        if self.writer.size > self.limit:
            self._stop(f"{self.writer.path} has {self.limit // 2**20} MiB (see --limit)")

    def _stop(self, why: str) -> None:
        if self.stopped:
            return
        self.stopped = why
        for process in self.processes:
            process.ring.stop()

    def summary(self) -> str:
        each = self.writer.size / self.events if self.events else 0
        text = (
            f"{self.writer.path}: {self.events:,} events of {self.count} process"
            f"{'es' if self.count != 1 else ''}, {size(self.writer.size)}, {each:.1f} bytes each"
        )
        if not self.count:
            text += "; the program does not use hakmem: see 'hakmem doctor'"
        if self.waited > 10**8:
            text += f"; the program waited {self.waited / 1e9:.1f} s for this command"
        if self.lost:
            text += f"; {self.lost:,} calls are missing"
        if self.gave_up:
            text += f"; {self.gave_up} processes gave up, as this command did not answer for 5 s"
        if self.unread:
            text += f"; calls of {self.unread} processes are missing: too many open files?"
        if self.stopped:
            text += f"; the recording ends early: {self.stopped}"
        return text


def _command(process: Ring) -> list[str]:
    command = process.command
    if not command or process.command_is_cut:
        with suppress(OSError):
            command = Path(f"/proc/{process.process}/cmdline").read_bytes() or command
    words = command.removesuffix(b"\0").split(b"\0") if command else []
    return _cut([word.decode(errors="backslashreplace") for word in words])


def _cut(words: list[str]) -> list[str]:
    """To what a reader takes: linkers get some 100 KB."""
    left = PROCESS_MOST // 2
    kept: list[str] = []
    for word in words:
        left -= len(json.dumps(word)) + 2
        if left < 0:
            return [*kept, "..."]
        kept.append(word)
    return kept
