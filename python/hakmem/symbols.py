"""Which function, file and line the addresses of a heap profile belong to.

llvm-symbolizer finds that out, or addr2line of binutils; one of them is started once for each file.
What they leave without a name, the files' own tables of symbols may have. Separate debug files are
found as debuggers find them: by the build id, or by the name that the file has of it; also at
debuginfod servers, where the environment names some.
"""

from __future__ import annotations

import argparse
import os
import re
import stat
import zlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.segments import NoteSegment

from hakmem import debuginfod, heap_profile, runtimes, wrappers
from hakmem.heap_profile import DELETED, Figures, Profile, Samples
from hakmem.naming import BROKEN, lines_of
from hakmem.naming import Line as Line
from hakmem.wrappers import Wrappers

DEBUG_DIR = Path("/usr/lib/debug")
PAGE = 4096

# By these a program enters the allocator.
ENTRANCES = (
    r"hakmem_\w+|(__libc_)?(malloc|calloc|realloc|memalign|valloc|pvalloc)|reallocarray"
    r"|aligned_alloc|posix_memalign|operator new(\[\])?(\(.*\))?|_Zn[wa][jm]\w*"
    r"|__alloc_token_\w+|__size_returning_new\w*"
    r"|(__rustc::)?__(rust|rdl|rg)_(alloc|alloc_zeroed|realloc)"
    r"|alloc::alloc::(alloc|alloc_zeroed|realloc|exchange_malloc)"
    r"|<[^ ]+ as core::alloc::(global::)?(GlobalAlloc|Allocator)>::\w+"
    r"|(<alloc::alloc::Global>|alloc::alloc::Global)::(alloc|grow)_impl\w*"
)
_ENTRANCE = re.compile(ENTRANCES)
_OWN_FILE = re.compile(r"libhakmem[^/]*\.so[^/]*")

CUT = 0  # in place of calls of a stack that were not recorded, as no function is called there
LEFT_OUT = "(calls left out)"
NO_NAMES = "so has no names"  # of a file: the end of a note


@dataclass(frozen=True)
class Frame:
    address: int  # of the call, not where it returns
    module: heap_profile.Mapping | None
    within: int  # the address as the module's file counts
    lines: tuple[Line, ...]  # the innermost inlined function first; empty where none is known

    @property
    def shown(self) -> tuple[Line, ...]:
        """Something to show in any case."""
        return self.lines or (Line(self.place),)

    @property
    def place(self) -> str:
        name = "" if self.module is None else self.module.path.rpartition("/")[2]
        return f"{name or '?'}+{self.within:#x}"


Significant = tuple[bool, bool, bool]


@dataclass(frozen=True)
class Stack:
    frames: tuple[Frame, ...]  # the innermost first
    figures: Figures
    errors: Figures
    samples: Samples = (0, 0, 0)
    significant: Significant = (False, False, False)  # of a difference: in use, allocated, peak

    def lines(self) -> tuple[Line, ...]:
        """The innermost first."""
        return tuple(line for frame in self.frames for line in frame.shown)

    @property
    def place(self) -> Hashable:
        """The same of each process that has it."""
        return tuple(
            (frame.module.path if frame.module else "", frame.within, frame.lines)
            for frame in self.frames
        )

    def row(self) -> Sequence[Line]:
        """What a row of a table shows."""
        return without_wrappers(self.lines())


def without_wrappers(lines: Sequence[Line]) -> Sequence[Line]:
    """From the first line on that is no wrapper; all, where each is one."""
    first = next((at for at, line in enumerate(lines) if not line.is_wrapper), 0)
    return lines[first:]


@dataclass(frozen=True)
class Named:
    """A profile with names."""

    rate: int
    stacks: tuple[Stack, ...]
    build_ids: Mapping[str, str]  # by path
    notes: tuple[str, ...] = ()  # what the user should know, a line each
    sides: tuple[str, str] | None = None  # of a difference: what is compared, the older one first
    functions: Mapping[str, Significant] = field(default_factory=dict)  # of a difference
    frames: Mapping[int, Frame] = field(default_factory=dict)  # by the address of the call

    @property
    def is_difference(self) -> bool:
        return self.sides is not None

    @property
    def sums(self) -> list[float]:
        return [sum(s.figures[i] for s in self.stacks) for i in range(len(heap_profile.FIGURES))]


@dataclass
class _Facts:
    """What an ELF file says of itself."""

    build_id: str = ""
    loads: list[tuple[int, int, int]] = field(default_factory=list)  # offset, size, address
    link: tuple[str, int] | None = None  # a debug file's name, and its checksum
    has_lines: bool = False  # debug information
    missing: str = ""  # why its file is of no use

    def address(self, offset: int) -> int:
        """Of a byte of the file, as the file counts addresses."""
        for start, size, address in self.loads:
            if start <= offset < start + size:
                return offset - start + address
        return offset


def add_options(parser: argparse.ArgumentParser) -> None:
    """Those of commands that show names."""
    parser.add_argument(
        "--debug-dir",
        metavar="DIR",
        type=Path,
        action="append",
        default=[],
        help=f"where separate debug files are, before {DEBUG_DIR}; may be repeated",
    )
    wrappers.add_option(parser)


def named(
    profile: Profile,
    root: Path = Path("/"),
    debug_dirs: Sequence[Path] = (DEBUG_DIR,),
    written: float | None = None,
    known: Wrappers = wrappers.KNOWN,
    servers: bool = True,
) -> Named:
    """`root`: below which the files of the mappings lie; `written`: when the profile was;
    `servers`: whether to ask those of debuginfod, which takes time."""
    found = located(profile, profile.calls, root, debug_dirs, written, known, servers)
    return with_names(profile, found)


@dataclass(frozen=True)
class Located:
    frames: Mapping[int, Frame]  # by the address of the call
    build_ids: Mapping[str, str]
    notes: tuple[str, ...]


def located(
    profile: Profile,
    calls: Iterable[int],
    root: Path = Path("/"),
    debug_dirs: Sequence[Path] = (DEBUG_DIR,),
    written: float | None = None,
    known: Wrappers = wrappers.KNOWN,
    servers: bool = True,
) -> Located:
    """The functions and lines of calls."""
    (found,) = all_located([(profile, calls)], root, debug_dirs, written, known, servers)
    return found


def all_located(
    asked: Sequence[tuple[Profile, Iterable[int]]],
    root: Path = Path("/"),
    debug_dirs: Sequence[Path] = (DEBUG_DIR,),
    written: float | None = None,
    known: Wrappers = wrappers.KNOWN,
    servers: bool = True,
) -> list[Located]:
    """The same of some processes, of each by itself; a file is read once for all. `servers`:
    whether to ask those of debuginfod, which takes time."""
    of_file: dict[tuple[str, str], dict[tuple[int, int], heap_profile.Mapping]] = defaultdict(dict)
    frames: list[dict[int, Frame]] = [{} for _ in asked]
    # A program may have made the code of a function several times.
    functions: list[dict[Line, Frame]] = [{} for _ in asked]
    for which, (profile, calls) in enumerate(asked):
        for call in calls:
            script = profile.scripts.get(call)
            module = profile.mapping_of(call)
            if script is not None:
                line = Line(script.function, script.file, script.line, is_script=True)
                frames[which][call] = Frame(call, None, 0, (line,))
            elif call == CUT:
                frames[which][call] = Frame(call, None, 0, (Line(LEFT_OUT),))
            elif call in profile.symbols:
                frames[which][call] = _written_frame(call, module, profile.symbols[call], known)
            elif module is not None and module.is_file:
                of_file[module.path, module.build_id][which, call] = module
            else:
                plain = heap_profile.plain(call)
                within = call - module.start if module else plain
                code = module is None or module.executable  # what it made may be gone at its end
                made = profile.made.function(plain) if profile.made and code else None
                if made and made[1] and profile.scripts:
                    continue  # a trampoline, beside the frame that it leads to
                frame = Frame(call, module, within, ())
                if made:
                    line = Line(*made, is_script=bool(made[1]))
                    frame = functions[which].setdefault(line, Frame(call, None, 0, (line,)))
                frames[which][call] = frame
    nameless = {which for which, (profile, _) in enumerate(asked) if profile.made is None}
    notes = list(
        runtimes.without_names(
            path for (path, _), calls in of_file.items() if nameless & {which for which, _ in calls}
        )
    )
    build_ids = {}
    for (path, build_id), modules in sorted(of_file.items()):
        module = next(iter(modules.values()))
        file, facts = _found(root, module)
        if file is not None and not build_id and written is not None and _changed(file) > written:
            notes.append(f"{path}: newer than the profile, so its names may be wrong")
        build_ids[path] = build_id or facts.build_id
        own = _OWN_FILE.fullmatch(path.rpartition("/")[2])
        debug = None if own else _debug_file(file, facts, root, debug_dirs)
        if debug is None and servers and not own and facts.build_id and not facts.has_lines:
            debug = debuginfod.debug_file(facts.build_id, notes)
        if file is None and debug is None:
            notes.append(f"{path}: {facts.missing}, {NO_NAMES}")
        if file is None and debug is not None:
            facts.loads = _loads(modules, _facts(debug))
        places = {
            (which, call): facts.address(call - module.start + module.offset)
            for (which, call), module in modules.items()
        }
        files = [one for one in (debug, file) if one is not None and not own]
        lines = lines_of(files, sorted(set(places.values())))
        for (which, call), module in modules.items():
            at = places[which, call]
            frames[which][call] = Frame(call, module, at, _marked(lines.get(at, ()), known))
    return [Located(one, build_ids, tuple(notes)) for one in frames]


def _changed(file: Path) -> float:
    return file.stat().st_mtime


def _marked(lines: Iterable[Line], known: Wrappers) -> tuple[Line, ...]:
    return tuple(
        replace(line, is_wrapper=True) if known.has(line.function) else line for line in lines
    )


def _written_frame(
    call: int,
    module: heap_profile.Mapping | None,
    symbols: Iterable[heap_profile.Symbol],
    known: Wrappers,
) -> Frame:
    """By the names that stand in the profile."""
    in_file = module is not None and module.is_file
    within = call - module.start + module.offset if module else call
    made = ((one, not in_file and bool(one[1])) for one in symbols)
    lines = _marked((Line(*one, is_script=is_script) for one, is_script in made), known)
    return Frame(call, module, within, lines)


def symbol_lines(named: Named) -> Iterator[str]:
    """The names of a profile, as a file has them."""
    for call, frame in sorted(named.frames.items()):
        is_apart = heap_profile.APART <= call < 2 * heap_profile.APART
        if call != CUT and call < heap_profile.SCRIPTS and not is_apart:
            for line in frame.lines:
                yield heap_profile.symbol_line(call, (line.function, line.file, line.line))


def merged(some: Sequence[Named]) -> Named:
    """The sums of some processes. Stacks are the same where they are at the same places of the same
    files."""
    if len(some) == 1:
        return some[0]
    stacks: dict[Hashable, Stack] = {}
    for stack in (stack for one in some for stack in one.stacks):
        before = stacks.get(stack.place)
        stacks[stack.place] = stack if before is None else added(before, stack)
    build_ids = {path: build_id for one in some for path, build_id in one.build_ids.items()}
    notes = dict.fromkeys(note for one in some for note in one.notes)
    return Named(some[0].rate, tuple(stacks.values()), build_ids, tuple(notes))


def with_names(profile: Profile, names: Located) -> Named:
    stacks = tuple(_stacks(profile, names.frames))
    return Named(profile.rate, stacks, names.build_ids, names.notes, frames=names.frames)


def stack_of(site: heap_profile.Site, frames: Mapping[int, Frame]) -> tuple[Frame, ...]:
    """Without the allocator's frames, below the name of the call."""
    calls = (address - 1 for address in site.stack if address > 0)
    stack = _callers([frames[call] for call in calls if call in frames])
    return (Frame(0, None, 0, (Line(site.name),)), *stack) if site.name else stack


def _stacks(profile: Profile, frames: Mapping[int, Frame]) -> Iterator[Stack]:
    """Each stack once."""
    stacks: dict[tuple[Frame, ...], Stack] = {}
    for site in profile.sites:
        stack = stack_of(site, frames)
        before = stacks.get(stack)
        one = Stack(stack, site.figures, site.errors, site.samples)
        stacks[stack] = one if before is None else added(before, one)
    yield from stacks.values()


def added(a: Stack, b: Stack, sign: int = 1) -> Stack:
    """The sum of both, or the difference; the frames are those of `a`."""
    figures = tuple(x + sign * y for x, y in zip(a.figures, b.figures, strict=True))
    errors = tuple((x * x + y * y) ** 0.5 for x, y in zip(a.errors, b.errors, strict=True))
    samples = tuple(x + y for x, y in zip(a.samples, b.samples, strict=True))
    return Stack(a.frames, figures, errors, samples)  # type: ignore[arg-type]


def _callers(stack: list[Frame]) -> tuple[Frame, ...]:
    """Without the allocator at the innermost end; something always stays."""
    for at, frame in enumerate(stack):
        name = "" if frame.module is None else frame.module.path.rpartition("/")[2]
        if _OWN_FILE.fullmatch(name):
            continue
        kept = 0
        while kept < len(frame.lines) and _ENTRANCE.fullmatch(frame.lines[kept].function):
            kept += 1
        if frame.lines and kept == len(frame.lines):
            continue
        outer = Frame(frame.address, frame.module, frame.within, frame.lines[kept:])
        return (outer, *stack[at + 1 :])
    return tuple(stack[-1:])


# ---- files ----


def _file(root: Path, path: str) -> Path | None:
    """A plain file: opening anything else may do anything."""
    file = root / path.lstrip("/")
    with suppress(OSError, ValueError):
        if stat.S_ISREG(file.stat().st_mode):
            with file.open("rb"):
                return file
    return None


def _found(root: Path, module: heap_profile.Mapping) -> tuple[Path | None, _Facts]:
    """The file of a module, if it is the one that the process had. It may lie below our own root:
    a process that changed its root has the files that it mapped before."""
    if module.deleted:
        file = _nameless(root.parent, module)
        if file is not None:
            return file, _facts(file)
        missing = "was replaced or removed while the process ran"
        return None, _Facts(build_id=module.build_id, missing=missing)
    missing = "can't be read"
    for base in dict.fromkeys((root, Path("/"))):
        file = _file(base, module.file)
        if file is None:
            continue
        facts = _facts(file)
        if module.build_id == facts.build_id or (not module.build_id and base == root):
            return file, facts
        missing = "another build than the process had" if module.build_id else missing
    return None, _Facts(build_id=module.build_id, missing=missing)


def _nameless(process: Path, module: heap_profile.Mapping) -> Path | None:
    """The file of a module that has no name any more, or never had one (memfd_create): the kernel
    has it as long as it is mapped. That of the program itself may be read with fewer rights."""
    if process.parent != Path("/proc"):  # it has ended
        return None
    mapped = _file(process, f"map_files/{module.start:x}-{module.end:x}")
    with suppress(OSError):
        if mapped is None and os.fspath((process / "exe").readlink()) == module.file + DELETED:
            return _file(process, "exe")
    return mapped


def _loads(
    modules: Mapping[tuple[int, int], heap_profile.Mapping], facts: _Facts
) -> list[tuple[int, int, int]]:
    """Of a file that is not here, by its debug file: that does not have the code, but says which
    address it begins at. That is the mapping with the lowest offset; each further one of the same
    process lies as far behind it as their addresses do."""
    address = facts.loads[0][2] if facts.loads else 0
    lowest = min(one.offset for one in modules.values())
    found: dict[int, tuple[int, int, int]] = {}
    for which, one in sorted({(which, one) for (which, _), one in modules.items()}, key=_place):
        begins = [
            other.start
            for (process, _), other in modules.items()
            if process == which and other.offset == lowest and other.start <= one.start
        ]
        if begins:  # of the file as it was loaded last below
            at = address - address % PAGE + one.start - max(begins)
            found.setdefault(one.offset, (one.offset, one.end - one.start, at))
    return list(found.values())


def _place(of: tuple[int, heap_profile.Mapping]) -> tuple[int, int]:
    return of[0], of[1].start


def _facts(path: Path) -> _Facts:
    facts = _Facts()
    with suppress(*BROKEN), path.open("rb") as file:
        elf = ELFFile(file)
        parts = list(elf.iter_segments())
        for segment in sorted(parts, key=lambda one: not one["p_flags"] & 1):  # code first
            if segment["p_type"] == "PT_LOAD":
                facts.loads.append((segment["p_offset"], segment["p_filesz"], segment["p_vaddr"]))
        for segment in parts:
            for note in segment.iter_notes() if isinstance(segment, NoteSegment) else ():
                if note["n_type"] == "NT_GNU_BUILD_ID" and re.fullmatch(
                    "([0-9a-f]{2}){2,64}", str(note["n_desc"])
                ):
                    facts.build_id = str(note["n_desc"])
        names = (".debug_info", ".zdebug_info")
        facts.has_lines = any(elf.get_section_by_name(name) is not None for name in names)
        section = elf.get_section_by_name(".gnu_debuglink")
        if section is not None:
            data = section.data()
            name = data.partition(b"\0")[0].decode(errors="surrogateescape")
            if name and "/" not in name:
                facts.link = (name, int.from_bytes(data[-4:], "little"))
    return facts


def _debug_file(path: Path | None, facts: _Facts, root: Path, dirs: Sequence[Path]) -> Path | None:
    """As https://sourceware.org/gdb/current/onlinedocs/gdb/Separate-Debug-Files.html says."""
    build_id = facts.build_id
    for folder in dirs if build_id else ():
        for base in dict.fromkeys((root / str(folder).lstrip("/"), folder)):
            debug = base / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
            with suppress(OSError):
                if debug.is_file():
                    return debug
    if facts.link is not None and path is not None:
        name, checksum = facts.link
        beside = path.parent
        at = str(beside).lstrip("/")
        for debug in (beside / name, beside / ".debug" / name, *(d / at / name for d in dirs)):
            with suppress(OSError):
                if debug.is_file() and not debug.samefile(path) and _crc(debug) == checksum:
                    return debug
    return None


def _crc(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while part := file.read(2**20):
            checksum = zlib.crc32(part, checksum)
    return checksum
