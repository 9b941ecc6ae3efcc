"""A running process: its files in memory, and which malloc its files call.

The loader writes the address of each function that a file calls into a table of that file. These
addresses, read from the process's memory, are the proof: each call goes to the address there.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from hakmem import elf
from hakmem.heap_profile import Profile
from hakmem.look import program as name_of

AT_SECURE = 23
NAME_MOST = 15  # bytes of a name that the kernel keeps
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) (\S+) (\d+) *(.*)")


@dataclass(frozen=True, eq=False)
class Loaded:
    """A file in memory."""

    name: str
    file: elf.Elf
    base: int  # added to the file's addresses
    ranges: tuple[tuple[int, int], ...]

    def holds(self, address: int) -> bool:
        return any(start <= address < end for start, end in self.ranges)


@dataclass(frozen=True)
class Call:
    """The file that a file's calls of a function go to; None: the loader has not bound it yet."""

    caller: Loaded
    function: str
    target: Loaded | None


@dataclass(frozen=True)
class Picture:
    """The state of a process at one moment."""

    files: tuple[Loaded, ...]  # the program first
    calls: tuple[Call, ...] | None  # None: no permission to read its memory
    unread: tuple[str, ...] = field(default=())  # mapped, but no longer on disk


def is_named_so(file: str) -> bool:
    """Whether the name is that of hakmem's library, of any version."""
    return Path(file).name.startswith(("libhakmem.so", "libhakmem-debug.so"))


def look(pid: int) -> Picture:
    """Raises OSError if the process has ended or is another user's."""
    files, unread = _files(pid)
    try:
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            calls = tuple(_calls(files, memory.fileno()))
    except PermissionError:
        return Picture(files, None, unread)
    return Picture(files, calls, unread)


def short(command: Sequence[str], most: int = 60) -> str:
    line = " ".join(command)
    return line if len(line) <= most else line[: most - 3] + "..."


@dataclass
class Program:
    """What a process is, or was, since one of its calls of exec."""

    pid: int
    path: str
    arguments: list[str]
    environment: dict[str, str]  # as the loader read it, when the program started
    privileged: bool  # the kernel told the loader to ignore LD_PRELOAD
    user: int
    groups: list[int]
    root: Path  # its file system
    file: elf.Elf | None  # None: the file can't be read
    before: Program | None = None  # the program before exec, or the one that started it
    picture: Picture | None = field(default=None, repr=False)
    ended: bool = False  # the picture is of its end: nothing more will be loaded
    killed: int = 0  # by this signal, and not because the doctor asked it to end
    called: str = ""  # the path that it was started by, where that is a link to the program

    @property
    def command(self) -> list[str]:
        words = [self.called or self.path, *self.arguments[1:]]
        while not words[-1]:  # what is left of arguments that the program wrote over
            del words[-1]
        return words

    @property
    def name(self) -> str:
        return short(self.command)

    @property
    def preloads(self) -> list[str]:
        """The files that the loader was told to preload, in its order."""
        named = re.split("[ :]+", self.environment.get("LD_PRELOAD", ""))
        with suppress(OSError):
            text = (self.root / "etc/ld.so.preload").read_text(errors="surrogateescape")
            named += re.split(r"[\s:]+", re.sub("#.*", "", text))
        return [name for name in named if name]

    @property
    def asks_for(self) -> str | None:
        """The libhakmem.so among the preloaded files."""
        return next((name for name in self.preloads if is_named_so(name)), None)

    @property
    def dropped_by(self) -> Program | None:
        """The program that had the library preloaded, and started this one without it."""
        before = None if self.asks_for else self.before
        while before is not None and not before.asks_for:
            before = before.before
        return before


def program(pid: int) -> Program:
    """Raises OSError if the process has ended or is another user's."""
    folder = Path(f"/proc/{pid}")
    lines = (folder / "status").read_text(errors="replace").splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    try:
        file = elf.read(folder / "exe")
    except elf.NotElf:
        file = None
    path = os.fspath((folder / "exe").readlink())
    arguments = os.fsdecode((folder / "cmdline").read_bytes()).split("\0")[:-1]
    return Program(
        pid,
        path,
        arguments,
        _environment(folder),
        _privileged(folder),
        int(status["Uid"].split()[1]),
        [int(group) for group in (status["Gid"].split()[1], *status["Groups"].split())],
        folder / "root",
        file,
        called=called(pid, path, *arguments[:1]),
    )


def called(pid: int, path: str, first: str = "") -> str:
    """The path of its program, by the name that `hakmem top` shows: where that is a link beside the
    program, or the first word of the command line."""
    name = name_of(pid)
    beside = str(Path(path).with_name(name)) if name else path
    if Path(path).name[:NAME_MOST] != name:
        with suppress(OSError, ValueError):
            if Path(f"/proc/{pid}/root{beside}").samefile(f"/proc/{pid}/exe"):
                return beside
        if Path(first).name[:NAME_MOST] == name:
            return first
    return path


def as_called(profile: Profile, pid: int) -> Profile:
    """A heap profile of a process, with its program's file by that path."""
    try:
        path = os.fspath(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return profile
    link = called(pid, path)
    mappings = (one.at(link) if one.file == path else one for one in profile.mappings)
    return replace(profile, mappings=tuple(mappings))


def seen_in_proc() -> bool:
    """This process. Else the numbers there are other processes'."""
    try:
        return Path("/proc/self").readlink().name == str(os.getpid())
    except OSError:
        return False


def _privileged(folder: Path) -> bool:
    words = (folder / "auxv").read_bytes()
    pairs = struct.iter_unpack("@NN", words[: len(words) // 16 * 16])
    return any(kind == AT_SECURE and value for kind, value in pairs)


def _environment(folder: Path) -> dict[str, str]:
    text = os.fsdecode((folder / "environ").read_bytes())
    pairs = (entry.partition("=") for entry in text.split("\0") if "=" in entry)
    return {name: value for name, _, value in pairs}


def _files(pid: int) -> tuple[tuple[Loaded, ...], tuple[str, ...]]:
    mappings: dict[tuple[str, int], list[re.Match[str]]] = {}
    maps = Path(f"/proc/{pid}/maps").read_bytes().decode(errors="surrogateescape")
    for line in maps.split("\n"):
        match = _MAPPING.fullmatch(line)
        if match and match[6] != "0" and match[7].startswith("/"):
            mappings.setdefault((match[5], int(match[6])), []).append(match)
    # By inode and name: other file systems have files with the same inode.
    exe = Path(f"/proc/{pid}/exe")
    program = exe.stat().st_ino, os.fspath(exe.readlink()).replace("\n", "\\012")
    found: list[Loaded] = []
    unread = []
    for (_, inode), parts in mappings.items():
        if not any("x" in part[3] for part in parts):
            continue
        name = parts[0][7]
        try:
            file = elf.read(_where(pid, inode, (inode, name) == program, parts[0]))
        except (OSError, elf.NotElf):
            unread.append(name)
            continue
        ranges = tuple((int(p[1], 16), int(p[2], 16)) for p in parts)
        starts = [int(p[1], 16) for p in parts if int(p[4], 16) == 0]
        if starts:
            loaded = Loaded(name, file, starts[0] - file.first, ranges)
            found.insert(0 if (inode, name) == program else len(found), loaded)
    return tuple(found), tuple(unread)


def _where(pid: int, inode: int, is_program: bool, mapping: re.Match[str]) -> Path:
    """The path here of the mapped file. The process may have another root, and the name may belong
    to another file by now."""
    if is_program:
        return Path(f"/proc/{pid}/exe")
    path = Path(f"/proc/{pid}/root{mapping[7]}")
    if path.exists() and path.stat().st_ino == inode:
        return path
    return Path(f"/proc/{pid}/map_files/{mapping[1]}-{mapping[2]}")


def _calls(files: tuple[Loaded, ...], memory: int) -> Iterator[Call]:
    for caller in files:
        for slot in caller.file.slots:
            try:
                word = os.pread(memory, 8, caller.base + slot.address)
            except OSError:  # the process has ended, or has unmapped the file
                continue
            if len(word) == 8:
                yield Call(caller, slot.function, _target(files, caller, slot, word))


def _target(
    files: tuple[Loaded, ...], caller: Loaded, slot: elf.Slot, word: bytes
) -> Loaded | None:
    address = int.from_bytes(word, "little")
    target = next((file for file in files if file.holds(address)), None)
    if target is None or slot.function not in target.file.inside:
        # For example into the table of the main program, which is examined as well.
        return None
    if target is caller and address != target.base + target.file.inside[slot.function]:
        return None  # the file's code that calls the loader, before the first call
    return target
