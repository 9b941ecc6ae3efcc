"""Names of code that a program made while it ran, as it writes them for perf.

/tmp/perf-PID.map has a line `START SIZE NAME` for each function, both numbers in hexadecimal. A
jitdump also says when each was made and where it was moved to. A program that writes one maps it,
which is how perf finds it, and how it is found here.
https://github.com/torvalds/linux/blob/master/tools/perf/Documentation/jit-interface.txt
https://github.com/torvalds/linux/blob/master/tools/perf/Documentation/jitdump-specification.txt
"""

from __future__ import annotations

import bisect
import os
import re
import stat
import struct
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from hakmem.heap_profile import APART, Mapping, Profile, plain
from hakmem.heap_profile import Symbol as Function

MOST_BYTES = 256 * 2**20
_LINE = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16}) (?:0x)?([0-9a-fA-F]{1,16}) (.+)")
_PYTHON = re.compile(r"py::([^:]+):(.+)")
# V8 has the compiler before it, such as ~ for its interpreter, and the column after it.
_SCRIPT = re.compile(r"(?:JS|LazyCompile|Function|Script|Eval):[~^+*]?(.*) (\S+?):([0-9]+):[0-9]+")
_PHP = re.compile(r"JIT\$(.+)")
_DUMP = re.compile(r"jit-[0-9]{1,10}\.dump")


Times = tuple[float, float]
EVER: Times = (0.0, float("inf"))


class NoMap(Exception):
    """A line for the user."""


@dataclass(frozen=True)
class Code:
    start: int
    size: int
    function: Function
    since: int = 0  # ns of CLOCK_MONOTONIC; 0: not known
    lines: tuple[tuple[int, str, int], ...] = ()  # from each byte on: a file, and a line of it

    def at(self, address: int) -> Function:
        """With the line of the call there, if it is known, else that where the function begins."""
        byte = address - self.start
        place = bisect.bisect_right(self.lines, byte, key=lambda one: one[0]) - 1
        return (self.function[0], *self.lines[place][1:]) if place >= 0 else self.function


LATER = 10  # seconds after a profile, when a process may have changed such a file at its end
SLACK = 1  # seconds by which the clock of files and that of processes may differ
PAGE_BITS = 12


class PerfMap:
    """The functions, in the order in which they were made. Where one lies that another one lay
    before, the later counts, unless the time tells which of them is meant."""

    def __init__(self, codes: Iterable[Code]) -> None:
        # By a number of pages, a power of two, and where so many are: a function is in one such
        # place or in two, however large it is said to be.
        self._there: dict[int, dict[int, list[tuple[int, Code]]]] = defaultdict(dict)
        self._apart: dict[tuple[int, Function], int] = {}
        self._meant: dict[int, Function] = {}
        for number, code in enumerate(codes):
            first, last = code.start >> PAGE_BITS, code.start + code.size - 1 >> PAGE_BITS
            bits = (last - first).bit_length()
            for place in range(first >> bits, (last >> bits) + 1):
                self._there[bits].setdefault(place, []).append((number, code))

    def function(self, address: int) -> Function | None:
        """`address` may be one that told_apart gave."""
        meant = self._meant.get(address)
        codes = () if meant else self._at(address)
        return codes[-1].at(plain(address)) if codes else meant

    def _at(self, address: int) -> list[Code]:
        address = plain(address)
        page = address >> PAGE_BITS
        found = [
            one
            for bits, places in self._there.items()
            for one in places.get(page >> bits, ())
            if one[1].start <= address < one[1].start + one[1].size
        ]
        return [code for _, code in sorted(found, key=lambda one: one[0])]

    def told_apart(self, address: int, time: float) -> int:
        """One that stands for the function that was there at that time, in ns of CLOCK_MONOTONIC:
        the address itself, if there never was another."""
        codes = self._at(address)
        if len({code.function for code in codes}) < 2 or not time:
            return address
        before = [code for code in codes if code.since <= time]
        function = (before[-1] if before else codes[0]).at(plain(address))
        one = self._apart.setdefault((address, function), APART + 2 * len(self._apart))
        self._meant[one] = function
        return one


def of_process(
    pid: int | None,
    mapped: Iterable[str],
    root: Path,
    owners: Collection[int],
    notes: list[str],
    written: Times = EVER,
) -> PerfMap | None:
    """None where there is none. `pid`: as the process knows it; `mapped`: files that it mapped;
    `root`: its root folder; `written`: the first and the last time, as of time.time(), when it may
    have written a file. Adds to `notes` why a file is not read."""
    codes: list[Code] = []
    dumps = [one for one in mapped if _DUMP.fullmatch(one.rpartition("/")[2])]
    # Python unmaps its dump at its end.
    of_pid = [] if pid is None else [f"/tmp/perf-{pid}.map", f"/tmp/jit-{pid}.dump"]
    for name in dict.fromkeys([*of_pid, *dumps]):
        path = root / name.lstrip("/")
        if not os.path.lexists(path):
            continue
        with _noted(notes):
            if not _DUMP.fullmatch(path.name):
                codes += _read_map(path, owners, written)
            elif name in dumps:
                codes += _read_dump(path, owners)
            else:
                codes += _read_dump(path, owners, pid, written)
    return PerfMap(codes) if codes else None


@contextmanager
def _noted(notes: list[str]) -> Iterator[None]:
    try:
        yield
    except NoMap as why:
        notes.append(str(why))


def with_made(profile: Profile, made: PerfMap | None) -> Profile:
    """With names of code that is in no file, each as it was when the site was first seen."""
    if made is None:
        return profile
    sites = (replace(one, stack=_as_of(made, one.stack, one.since)) for one in profile.sites)
    return replace(profile, made=made, sites=tuple(sites))


def made_by(
    pid: int | None,
    mappings: Iterable[Mapping],
    root: Path,
    owners: Collection[int],
    notes: list[str],
    written: Times = EVER,
) -> PerfMap | None:
    """What a process wrote of such code; as of_process."""
    mapped = (one.file for one in mappings if one.is_file)
    return of_process(pid, mapped, root, owners, notes, written)


def with_made_here(profile: Profile, file: Path | None = None) -> tuple[Profile, list[str]]:
    """With what can be read of it, and why other names are missing. `file`: the profile's, where it
    is of another process, which had the file's owner."""
    notes: list[str] = []
    try:
        owners, written = of_file(file, profile)
        made = made_by(profile.pid, profile.mappings, Path("/"), owners, notes, written)
    except OSError as why:
        return profile, [f"{file}: {why.strerror}"]
    return with_made(profile, made), notes


def of_file(file: Path | None, profile: Profile) -> tuple[set[int], Times]:
    """Whose files may have names for a profile, and when those were written: a process with the
    same number may have been there before this one began, or after it. `file`: the profile, or a
    process that is there; None: this one. Raises OSError."""
    if file is None:
        return {os.geteuid()}, (started(os.getpid()) - SLACK, EVER[1])
    status = file.stat()
    ended = stat.S_ISREG(status.st_mode)
    last = (profile.written or status.st_mtime) + LATER if ended else EVER[1]
    return {os.geteuid(), status.st_uid}, (profile.started - SLACK, last)


def started(pid: int) -> float:
    """When a process began, as of time.time(); 0: not known."""
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        since_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + since_boot
    return 0.0


def _as_of(made: PerfMap, stack: tuple[int, ...], time: float) -> tuple[int, ...]:
    """Addresses that tell which functions these were then."""
    return tuple(made.told_apart(one - 1, time) + 1 for one in stack) if time else stack


def read(path: Path) -> PerfMap:
    """Of either kind. Raises NoMap."""
    with _opened(path, None) as file:
        dump = file.read(4) == MAGIC
    return PerfMap(_read_dump(path, None) if dump else _read_map(path, None))


@contextmanager
def _opened(
    path: Path, owners: Collection[int] | None, written: Times = EVER
) -> Iterator[BinaryIO]:
    """Anybody may write into /tmp, so the file has to be of one of the owners, if they are given,
    or of root; and of the process's time, where only its name says that it is this one's. Raises
    NoMap."""
    try:
        # Of a link or a pipe nothing is read, nor waited for.
        link = 0 if owners is None else os.O_NOFOLLOW
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | link)
        with os.fdopen(file, "rb") as opened:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise NoMap(f"{path}: not a plain file")
            if owners is not None and status.st_uid not in {0, *owners}:
                raise NoMap(f"{path}: is another user's, so it is not read")
            if not written[0] <= status.st_mtime <= written[1]:
                which = (
                    "ended before this one began" if status.st_mtime < written[0] else "came later"
                )
                raise NoMap(
                    f"{path}: is of another process with this number, which {which}: it is not read"
                )
            yield opened
    except OSError as error:
        raise NoMap(f"{path}: {error.strerror}") from error


def _function(name: str) -> Function:
    python, script, php = (one.fullmatch(name) for one in (_PYTHON, _SCRIPT, _PHP))
    if python:
        return python[1], python[2], 0
    if script:
        return script[1] or "(top level)", script[2], int(script[3])
    return (php[1] if php else name), "", 0


# ---- maps ----


def _read_map(path: Path, owners: Collection[int] | None, written: Times = EVER) -> list[Code]:
    with _opened(path, owners, written) as file:
        size = os.fstat(file.fileno()).st_size  # read() makes room for all that it is asked for
        return list(codes_of(file.read(min(size, MOST_BYTES)).decode(errors="replace")))


def codes_of(text: str) -> Iterator[Code]:
    for line in text.split("\n"):
        match = _LINE.fullmatch(line)
        if match is not None:
            yield Code(int(match[1], 16), int(match[2], 16), _function(match[3]))


# ---- jitdumps ----

MAGIC = b"DTiJ"  # of this byte order
HEAD = struct.Struct("<4sIIIIIQQ")  # and version, bytes, machine, padding, PID, time, flags
RECORD = struct.Struct("<IIQ")  # its kind, bytes and time
LOADED = struct.Struct("<IIQQQQ")  # PID, thread, address twice, size and number of the code
MOVED = struct.Struct("<IIQQQQQ")  # PID, thread, address, old and new one, size and number
LINES = struct.Struct("<QQ")  # the code's address, and how many lines follow
LINE = struct.Struct("<QII")  # an address in it, a line, which of several there; then the file
IS_LOADED, IS_MOVED, HAS_LINES = 0, 1, 2
SAME_FILE = b"\xff"
# V8 counts from the ELF file that 'perf inject' makes of the code, which has a header before it.
OF_V8 = 64
TIME_OF_PROCESSOR = 1  # a flag
NAME_MOST = 2**16
LINES_MOST = 2**24  # bytes, of a function


def _read_dump(
    path: Path, owners: Collection[int] | None, pid: int | None = None, written: Times = EVER
) -> list[Code]:
    """As far as it is whole: the program may be writing it. `pid` and `written`: of the process, if
    only the file's name says that it is this one's."""
    with _opened(path, owners, written) as file:
        head = file.read(HEAD.size)
        if len(head) < HEAD.size or head[:4] != MAGIC:
            raise NoMap(f"{path}: not a jitdump of this byte order")
        _, _, bytes_, _, _, of, _, flags = HEAD.unpack(head)
        if pid not in (None, of):
            raise NoMap(f"{path}: is of another process with this number, so it is not read")
        file.seek(max(bytes_, HEAD.size))
        return list(_codes(file, timed=not flags & TIME_OF_PROCESSOR))


def _codes(file: BinaryIO, timed: bool) -> Iterator[Code]:
    found: dict[int, Code] = {}
    lines: dict[int, bytes] = {}  # of code that is to come, by its address
    while len(record := file.read(RECORD.size)) == RECORD.size:
        kind, bytes_, time = RECORD.unpack(record)
        after = file.tell() + bytes_ - RECORD.size
        since = time if timed else 0
        part = {IS_LOADED: LOADED, IS_MOVED: MOVED, HAS_LINES: LINES}.get(kind)
        if bytes_ < RECORD.size + (part.size if part else 0):
            return
        if part is not None:
            body = file.read(part.size)
            if len(body) < part.size:
                return
            numbers = part.unpack(body)
            *_, start, size, number = (0, *numbers)
            code = None
            if kind == HAS_LINES:
                lines[numbers[0]] = file.read(min(LINES_MOST, after - file.tell()))
            elif kind == IS_LOADED:
                name = file.read(min(NAME_MOST, after - file.tell())).partition(b"\0")[0]
                said = name.decode(errors="replace")
                of_v8 = OF_V8 if _SCRIPT.fullmatch(said) else 0
                its = _lines(lines.pop(start, b""), start + of_v8)
                code = Code(start, size, _function(said), since, its)
            elif number in found:
                code = replace(found[number], start=start, since=since)
            if code is not None:
                found[number] = code
                yield code
        file.seek(after)


def _lines(table: bytes, before: int) -> tuple[tuple[int, str, int], ...]:
    """In the order of bytes of the code; the addresses of these have `before` more."""
    found = []
    file, at = "", 0
    while at + LINE.size < len(table):
        address, line, _ = LINE.unpack_from(table, at)
        end = table.find(b"\0", at + LINE.size)
        if end < 0:
            break
        name = table[at + LINE.size : end]
        file = file if name == SAME_FILE else name.decode(errors="replace")
        found.append((address - before, file, line))
        at = end + 1
    return tuple(sorted(found, key=lambda one: one[0]))


def inner_pid(pid: int) -> int:
    """A process's number in its own namespace."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return pid
