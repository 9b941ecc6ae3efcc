"""A process's heap as the reader sees it from outside: the program hakmem/look beside the library,
which is started for each look, and the sheet that adds up from it."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakmem import rights

MIB = 2**20
COMPACT_MOST = 2048  # bytes of a block: above, no class compacts
PID_MOST = 2**22  # <linux/threads.h>
KERNEL_THREAD = 0x00200000  # PF_KTHREAD in <linux/sched.h>
# How the reader ends (src/sheet/target.h).
NO_SUCH, NO_RIGHT, WITHOUT, NONSENSE, WAITS, REFUSED = 3, 4, 5, 6, 7, 8
# How the command then ends.
STATUS = {WITHOUT: 1, NONSENSE: 1, REFUSED: 1, NO_RIGHT: 3, WAITS: 4}
USAGE = 2


def rounded(part: float, whole: float = MIB) -> int:
    """In tenths, halves up: as the library shows its own figures."""
    return math.floor(10 * part / whole + 0.5)


def in_tenths(tenths: int) -> str:
    return f"{'-' if tenths < 0 else ''}{abs(tenths) // 10}.{abs(tenths) % 10}"


def mib(size: float) -> str:
    return in_tenths(rounded(size))


class CannotLook(Exception):
    """A line for the user, and how the command ends."""

    def __init__(self, ended: int, line: str) -> None:
        super().__init__(line)
        self.status = STATUS.get(ended, USAGE)


class TooLate(CannotLook):
    def __init__(self, pid: int) -> None:
        super().__init__(NONSENSE, f"process {pid} was not read in time")


@dataclass(frozen=True)
class Line:
    """A part of what is resident, in bytes. What it could be reduced to, if that is known to be
    less, and by what."""

    name: str
    title: str
    resident: int
    could_be: int | None = None
    how: str = ""
    parts: tuple[tuple[str, int], ...] = ()  # by name, the largest first


@dataclass(frozen=True)
class Requested:
    """What the program asked for of the blocks in use, in bytes; the rest is rounding to size
    classes. An estimate from the samples of a heap profile."""

    size: int
    error: int  # the standard error of the size
    share: float  # of the blocks in use, as the samples have it; and its standard error
    share_error: float
    samples: int  # sampled blocks that are in use
    stand_for: int  # bytes of all blocks that were allocated while a profile was on

    def json(self) -> dict[str, Any]:
        return {
            "bytes": self.size,
            "error": self.error,
            "samples": self.samples,
            "stand_for": self.stand_for,
        }


@dataclass(frozen=True)
class Sheet:
    pid: int  # 0 of a core file
    program: str  # or the name of the core file
    version: str
    resident: int  # the sum of the lines: what the kernel said, mapping by mapping
    before: int  # the kernel's own sum before and after; 0 where it has none
    after: int
    live: int  # bytes of blocks that the program has, resident or not
    requested: Requested | None  # None where no profile was on
    swapped: dict[str, int]  # in swap, not resident: of the heap, and of others
    heap: tuple[Line, ...]
    others: tuple[Line, ...]
    seen: dict[str, Any]  # all that the reader said

    def json(self) -> dict[str, Any]:
        return {
            "pid": self.pid,
            "program": self.program,
            "version": self.version,
            "resident": self.resident,
            "kernel": {"before": self.before, "after": self.after},
            "live": self.live,
            "requested": None if self.requested is None else self.requested.json(),
            "swapped": self.swapped,
            "heap": [_json(line) for line in self.heap],
            "others": [_json(line) for line in self.others],
            **{
                key: self.seen[key]
                for key in (
                    *("freed", "returned", "taken_again", "held", "limits"),
                    *("skipped", "classes", "caches"),
                )
            },
        }


def _json(line: Line) -> dict[str, Any]:
    said: dict[str, Any] = {"name": line.name, "title": line.title, "resident": line.resident}
    if line.could_be is not None:
        said |= {"could_be": line.could_be, "how": line.how}
    if line.parts:
        said["parts"] = dict(line.parts)
    return said


def _asked(
    subject: int | Path,
    library: Path,
    *words: str,
    seconds: float | None = None,
    apart: bool = False,
) -> Any:
    return json.loads(_said(subject, library, *words, seconds=seconds, apart=apart))


def _said(
    subject: int | Path,
    library: Path,
    *words: str,
    seconds: float | None = None,
    apart: bool = False,
) -> str:
    reader = library.parent / "hakmem" / "look"
    if isinstance(subject, int):
        check_pid(subject)
    try:
        done = subprocess.run(
            [reader, str(subject), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            start_new_session=apart,
        )
    except subprocess.TimeoutExpired as error:
        assert isinstance(subject, int)
        raise TooLate(subject) from error
    except OSError as error:
        raise CannotLook(
            NO_SUCH, f"{reader}: {error.strerror}; install hakmem again, or build it whole"
        ) from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()  # paths need not be text
        what = said.partition(":")[0].strip()
        if isinstance(subject, int) and what.startswith("no permission"):
            raise CannotLook(NO_RIGHT, f"{what}: {rights.reason(subject)}")
        said = said or f"the reader ended with status {done.returncode}"
        if isinstance(subject, int) and "process" not in said:
            said = f"process {subject}: {said}"  # one of several may have been meant
        raise CannotLook(done.returncode, said)
    return done.stdout.decode(errors="surrogateescape")


def purge(pid: int, library: Path) -> int:
    """Has the process give back its free memory; how many bytes went. Raises CannotLook."""
    return int(_asked(pid, library, "purge")["result"])


def change(pid: int, library: Path, option: str, value: int, apart: bool = False) -> bool:
    """Whether a heap profile was on before. `apart`: Ctrl-C does not reach the reader. Raises
    CannotLook."""
    said = _asked(pid, library, "set", option, str(value), apart=apart)
    return bool(said["result"] == 1)  # an older library says anything


def mark(pid: int, library: Path, name: str) -> None:
    """Raises CannotLook."""
    _said(pid, library, "mark", name)


def record(pid: int, library: Path, folder: str) -> None:
    """Has the process record its calls in this folder, as it sees it. Raises CannotLook."""
    _said(pid, library, "record", folder, apart=True)


def profile(pid: int, library: Path) -> str:
    """Its heap profile up to now, in the format of gperftools. Raises CannotLook."""
    return _said(pid, library, "profile", apart=True)


def sites(pid: int, library: Path) -> str:
    """The same, with the sizes of blocks that each site holds. Raises CannotLook."""
    return _said(pid, library, "sites")


def sheet(subject: int | Path, library: Path, seconds: float | None = None) -> Sheet:
    """Of a process, within so many seconds, or of a core file. Raises CannotLook."""
    seen = _asked(subject, library, seconds=seconds)
    for cache in seen["caches"]:
        cache["name"] = _thread(seen["pid"], cache["thread"])
    return Sheet(
        seen["pid"],
        program(subject),
        seen["version"],
        seen["resident"]["mappings"],
        seen["resident"]["before"],
        seen["resident"]["after"],
        seen["live_bytes"],
        _requested(seen["requested"], seen["live_bytes"]),
        seen["swapped"],
        tuple(_heap(seen)),
        tuple(_others(seen["mappings"])),
        seen,
    )


def _requested(seen: dict[str, Any] | None, live: int) -> Requested | None:
    if seen is None:
        return None
    share, error = seen["share"], seen["error"]
    return Requested(
        round(share * live), round(error * live), share, error, seen["samples"], seen["blocks"]
    )


# ---- PIDs, and what is there ----


def read_pid(word: str) -> int:
    """With spaces around it, as ps prints it. Raises CannotLook."""
    number = word.strip()
    if not re.fullmatch("0*[1-9][0-9]{0,6}", number) or int(number) > PID_MOST:
        what = number or "''"  # as of pgrep, which found none
        raise CannotLook(NO_SUCH, f"{what}: expected a PID, a number from 1 to {PID_MOST}")
    return int(number)


def read_pids(words: Iterable[str]) -> list[int]:
    """At least one of which is there, if any are given. Raises CannotLook."""
    check_proc()
    pids = [read_pid(word) for word in words]
    gone = []
    for pid in pids:
        try:
            check_pid(pid)
            return pids
        except CannotLook as why:
            gone.append(why)
    if gone:
        raise gone[0]
    return pids


def read_subject(word: str) -> int | Path:
    """A PID, or a file: one with such a name can be given as ./4711. Raises CannotLook."""
    return read_pid(word) if re.fullmatch(r"\s*([+-]?\d+\s*)?", word) else Path(word)


def check_pid(pid: int) -> None:
    """Raises CannotLook where there is no memory of a program."""
    try:
        words = _stat(pid)
    except OSError:
        check_proc()
        if _is_hidden(pid):
            line = f"process {pid} is hidden (/proc is mounted with hidepid); try as root"
            raise CannotLook(NO_RIGHT, line) from None
        raise CannotLook(NO_SUCH, f"there is no process {pid}") from None
    if not _lives(words):
        line = f"process {pid} has ended, and its parent has not asked for its status (a zombie)"
        raise CannotLook(NO_SUCH, line)
    if int(words[6]) & KERNEL_THREAD:
        raise CannotLook(NO_SUCH, f"process {pid} is a kernel thread")


def check_proc() -> None:
    """Raises CannotLook where no process is to be seen, not even this one."""
    if not Path("/proc/self/stat").exists():
        raise CannotLook(NO_SUCH, "/proc is not mounted")


def lives(pid: int) -> bool:
    with suppress(OSError):
        return _lives(_stat(pid))
    return False


def _lives(words: list[str]) -> bool:
    """Where its first thread has ended the others go on."""
    state, threads = words[0], int(words[17])
    return state not in ("Z", "X") or threads > 1


def _stat(pid: int) -> list[str]:
    """What /proc has after the name, which may hold anything. Raises OSError."""
    return Path(f"/proc/{pid}/stat").read_text("latin-1").rpartition(")")[2].split()


def _is_hidden(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return False


def plain(name: str) -> str:
    """What may be shown on a terminal. The reader tells bytes one by one, and names hold any."""
    with suppress(UnicodeEncodeError):
        name = name.encode("latin-1").decode(errors="replace")
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def program(subject: int | Path) -> str:
    if isinstance(subject, Path):
        return plain(subject.name)
    try:
        return plain(Path(f"/proc/{subject}/comm").read_text("latin-1").removesuffix("\n"))
    except OSError:
        return "?"


def _thread(pid: int, thread: int) -> str:
    """The name of a thread; empty where it is not known, or has ended."""
    if thread == 0:
        return ""
    try:
        text = Path(f"/proc/{pid}/task/{thread}/comm").read_text("latin-1")
    except OSError:
        return ""
    return plain(text.removesuffix("\n"))


# ---- lines of the heap ----

PURGE = "malloc_trim(0)"
COMPACTS = "compaction while the program works (option compact)"


def _heap(seen: dict[str, Any]) -> Iterator[Line]:
    heap = seen["heap"]

    def less(name: str, title: str, could: int, how: str) -> Line:
        could = min(could, heap[name])
        if could == heap[name]:
            return Line(name, title, heap[name])
        return Line(name, title, heap[name], could, how)

    yield Line("live", "blocks in use", heap["live"])
    yield Line("rounding", "unused ends of large blocks and slabs", heap["rounding"])
    yield less("holes", "free blocks in pages that are in use", _holes_left(seen), COMPACTS)
    yield less("free_pages", "free pages in slabs", 0, PURGE)
    yield Line("caches", "free blocks in thread caches", heap["caches"])
    yield less("transfer", "free blocks in transfer caches", 0, PURGE)
    yield less("slices", "free slices (64 KiB), cached", 0, PURGE)
    yield less("huge_pages", "huge pages, unused parts", 0, PURGE)
    yield less("kept", "freed blocks above 2 MiB, cached", 0, PURGE)
    yield Line("metadata", "allocator metadata and code", heap["metadata"])
    unknown = sum(m["resident"] - m["heap"] for m in seen["mappings"] if m["kind"] == "heap")
    yield Line("unexplained", "not accounted for", unknown)


def _holes_left(seen: dict[str, Any]) -> int:
    """What compaction leaves of free blocks in pages that are in use, at most: a class compacts
    when more than half of its blocks are free, and these are more than 2 MiB
    (src/learn/compaction.h)."""
    left = 0
    for row in seen["classes"]:
        holes = row["resident"]["holes"]
        free = row["free"] * row["size"]
        used = (row["live"] + row["cached"] + row["in_transfer"]) * row["size"]
        compacts = row["size"] <= COMPACT_MOST and free > 2 * MIB and free > used
        left += min(holes, max(2 * MIB, used)) if compacts else holes
    return int(left)


# ---- what is not the heap's ----

TITLES = {
    "file": "program, libraries, mapped files",
    "stack": "stacks",
    "anonymous": "other anonymous memory",
}


def _others(mappings: list[dict[str, Any]]) -> Iterator[Line]:
    for kind, title in TITLES.items():
        parts: dict[str, int] = defaultdict(int)
        for mapping in mappings:
            if mapping["kind"] == kind:
                name = plain(mapping["name"]) or "unnamed"
                parts[name] += mapping["resident"] - mapping["heap"]
        largest = sorted(((n, b) for n, b in parts.items() if b), key=lambda part: -part[1])
        yield Line(kind, title, sum(parts.values()), parts=tuple(largest))
