"""Decides about one program: is hakmem its malloc, what proves it, and if not, why."""

from __future__ import annotations

import os
import shlex
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from hakmem import elf, malloc_conf, rights
from hakmem.causes import Cause, cause
from hakmem.process import Call, Loaded, Picture, Program, is_named_so
from hakmem.profile_text import printable

IN_FORCE, IN_PART, NOT, UNKNOWN = "in force", "in part", "not in force", "unknown"


@dataclass(frozen=True)
class Judgement:
    program: Program
    verdict: str
    proof: str = ""
    causes: tuple[Cause, ...] = ()
    notes: tuple[Cause, ...] = ()
    objects: tuple[Cause, ...] = ()  # files with an allocator of their own


def judge(program: Program, library: Path) -> Judgement:
    judged = _judged(program, library)
    if program.killed:
        killed = cause("killed", program=program.name, signal=_name(program.killed))
        judged = replace(judged, notes=(*judged.notes, killed))
    return replace(judged, objects=_objects(program))


def _name(number: int) -> str:
    with suppress(ValueError):  # a real-time signal has none
        return signal.Signals(number).name
    return str(number)


def _judged(program: Program, library: Path) -> Judgement:
    file, ours = program.file, _elf(library)
    if file is None and program.privileged:
        return Judgement(program, NOT, causes=(cause("privileged", file=program.path),))
    if file is None:
        return Judgement(program, UNKNOWN, causes=(cause("unreadable-program", file=program.path),))
    notes = _notes(program, file)
    if ours is not None and not file.runs_beside(ours):
        fill = {"program": file.processor, "library": ours.processor, "file": library}
        return Judgement(program, NOT, causes=(cause("architecture", **fill),))
    if file.static:
        return _static(program, file)
    picture = program.picture
    other_libc = _other_libc(program, file, ours)
    if other_libc is not None:
        return Judgement(program, NOT, causes=(other_libc,))
    if picture is None:
        found = _before_it_runs(program)
        return Judgement(program, NOT if found else UNKNOWN, causes=(found or cause("unseen"),))
    gone = next((name for name in picture.unread if is_named_so(name)), None)
    if gone is not None:
        why = cause("deleted", file=gone.removesuffix(" (deleted)"), pid=program.pid)
        return Judgement(program, UNKNOWN, causes=(why,), notes=notes)
    if picture.calls is None:
        return _by_order(program, picture, notes)
    return _by_calls(program, picture, picture.calls, notes)


def _static(program: Program, file: elf.Elf) -> Judgement:
    if file.is_hakmem:
        proof = f"{program.path} is linked statically, and its malloc is hakmem's"
        return Judgement(program, IN_FORCE, proof)
    if file.marked and file.stripped:
        return Judgement(program, UNKNOWN, causes=(cause("stripped"),))
    return Judgement(program, NOT, causes=(cause("go" if file.go else "static"),))


# ---- by what stands in its memory ----


def _by_calls(
    program: Program,
    picture: Picture,
    calls: tuple[Call, ...],
    notes: tuple[Cause, ...],
) -> Judgement:
    known = [call for call in calls if call.target is not None]
    targets = Counter(call.target for call in known if call.target is not None)
    good = {target: n for target, n in targets.items() if target.file.is_hakmem}
    program_file = picture.files[0] if picture.files else None
    hidden = program_file is not None and _defines_aside(program_file)
    proof = _proof(sum(good.values()), len(known), targets)
    if good and len(good) == len(targets) and not hidden:
        return Judgement(program, IN_FORCE, proof, notes=notes)
    if good:
        others = [target for target in targets if target not in good]
        if hidden and program_file is not None:
            others.insert(0, program_file)
        causes = tuple(_part(program_file, known, other) for other in others)
        return Judgement(program, IN_PART, proof, causes, notes)
    if not targets and not hidden:
        found = _before_it_runs(program)
        if found is None and program.ended and program.asks_for is not None:
            found = cause("refused", file=program.asks_for)  # it ended in the loader
        return Judgement(program, NOT if found else UNKNOWN, causes=(found or cause("unseen"),))
    winner = max(targets, key=lambda target: targets[target]) if targets else program_file
    assert winner is not None
    return Judgement(program, NOT, proof, (_elsewhere(program, picture, winner),), notes)


def _defines_aside(program: Loaded) -> bool:
    """The program has a malloc that it calls itself and shows nobody."""
    file = program.file
    return "malloc" in file.inside and "malloc" not in file.exported and not file.is_hakmem


def _proof(good: int, known: int, targets: Counter[Loaded]) -> str:
    names = ", ".join(sorted(target.name for target in targets))
    count = f"{good} of {known}" if 0 < good < known else f"all {known}"
    where = f"hakmem ({names})" if good else names
    what = f"the loader resolved {count} references to malloc, calloc, realloc and free"
    return f"{what} to {where}" if known else ""


def _allocator(file: Loaded) -> str:
    return file.file.allocator or "a malloc of its own"


def _part(program: Loaded | None, calls: list[Call], other: Loaded) -> Cause:
    if other is program:
        return cause("own", allocator=_allocator(other), file=other.name)
    callers = sorted({call.caller.name for call in calls if call.target is other})
    fill = {"allocator": _allocator(other), "file": other.name, "callers": ", ".join(callers)}
    return cause("bound", **fill)


def _elsewhere(program: Program, picture: Picture, winner: Loaded) -> Cause:
    """The calls lead to another malloc. It may be the C library's, because hakmem isn't there."""
    fill = {"allocator": _allocator(winner), "file": winner.name}
    if winner is picture.files[0]:
        return cause("own", **fill)
    here = any(file.file.is_hakmem for file in picture.files)
    foreign = winner.file.allocator not in elf.C_LIBRARIES
    if any(_same(program, name, winner.name) for name in program.preloads):
        return cause("preloaded", **fill)
    reason = _before_it_runs(program)
    if foreign and (here or reason is None or reason.id == "not-asked"):
        return cause("linked", **fill)
    if here:
        return cause("unknown-malloc", **fill)
    return reason or cause("refused", file=program.asks_for or "libhakmem.so")


# ---- by the order in which the loader looks, where memory may not be read ----


def _by_order(program: Program, picture: Picture, notes: tuple[Cause, ...]) -> Judgement:
    defining = [file for file in picture.files if "malloc" in file.file.exported]
    hakmem = [file for file in defining if file.file.is_hakmem]
    rivals = [
        file
        for file in defining
        if not file.file.is_hakmem and file.file.allocator not in elf.C_LIBRARIES
    ]
    if not hakmem and defining:
        winner = (rivals or defining)[0]
        return Judgement(program, NOT, "", (_elsewhere(program, picture, winner),), notes)
    if hakmem and not rivals:
        proof = f"{hakmem[0].name} is in its memory, and no other malloc but the C library's"
        return Judgement(program, IN_FORCE, proof, notes=notes)
    return Judgement(
        program,
        UNKNOWN,
        causes=(cause("memory", pid=program.pid, reason=rights.reason(program.pid)),),
        notes=notes,
    )


# ---- what would keep the loader from taking the library ----


def _same(program: Program, named: str, mapped: str) -> bool:
    """A name in LD_PRELOAD against the path that the kernel tells of what is mapped."""
    if "/" not in named:
        return named == Path(mapped).name
    with suppress(OSError):
        return (program.root / named.lstrip("/")).samefile(program.root / mapped.lstrip("/"))
    return False


def _before_it_runs(program: Program) -> Cause | None:
    if program.privileged:
        return cause("privileged", file=program.path)
    named = program.asks_for
    if named is None:
        command = shlex.join(program.command)
        if program.dropped_by is not None:
            return cause("dropped", wrapper=program.dropped_by.name, command=command)
        return cause("not-asked", command=command)
    if named.startswith("/"):
        return _library_at(program, named)
    # Somewhere in the loader's search path, or seen from where the program was started.
    return None if program.picture is None else cause("missing", file=named)


def _other_libc(program: Program, file: elf.Elf, ours: elf.Elf | None) -> Cause | None:
    """Such a program may end in the middle of taking the library in; its memory proves nothing."""
    named = program.asks_for
    library = (_elf(program.root / named.lstrip("/")) if named else None) or ours
    if library is None or file.musl == library.musl or file.is_hakmem:
        return None
    names = ("glibc", "musl")
    return cause("musl", program=names[file.musl], library=names[library.musl])


def _library_at(program: Program, named: str) -> Cause | None:
    path = program.root / named.lstrip("/")
    try:
        found = elf.read(path)
    except PermissionError:
        return cause("unreadable", file=named)
    except OSError:
        return cause("missing", file=named)
    except elf.NotElf:
        return cause("damaged", file=named)
    if not _may_read(path, program):
        return cause("unreadable", file=named)
    if program.file is not None and not program.file.runs_beside(found):
        fill = {"library": found.processor, "program": program.file.processor, "file": named}
        return cause("library-architecture", **fill)
    if os.statvfs(path).f_flag & os.ST_NOEXEC:
        return cause("noexec", file=named)
    return None


def _may_read(path: Path, program: Program) -> bool:
    """Whether the program's user may, which need not be this one. The path is not resolved: what
    its root is called here may be the name of another folder."""
    if program.user == 0:
        return True
    folders = (folder for folder in path.parents if folder.is_relative_to(program.root))
    for at, wanted in ((path, 4), *((folder, 1) for folder in folders)):
        status = at.stat()
        shift = 6 if status.st_uid == program.user else 3 if status.st_gid in program.groups else 0
        if not status.st_mode >> shift & wanted:
            return False
    return True


def _elf(path: Path) -> elf.Elf | None:
    try:
        return elf.read(path)
    except (OSError, elf.NotElf):
        return None


# ---- what else to know ----


# Python's modules that call any function of any library: ctypes and cffi.
LOOKS_UP = ("_ctypes.", "_cffi_backend.")


def _notes(program: Program, file: elf.Elf) -> tuple[Cause, ...]:
    files = [loaded.file for loaded in program.picture.files] if program.picture else [file]
    found = [name for name in dict.fromkeys(f.runtime for f in files) if name is not None]
    if "Python" in found and program.environment.get("PYTHONMALLOC") in ("malloc", "malloc_debug"):
        found.remove("Python")
    notes = [cause(name) for name in found]
    if file.go:
        notes.append(cause("Go"))
    named = [loaded.name for loaded in program.picture.files] if program.picture else []
    looks_up = next((name for name in named if Path(name).name.startswith(LOOKS_UP)), None)
    if looks_up is not None:
        notes.append(cause("libc-handle", file=looks_up))
    options = printable(program.environment.get("MALLOC_CONF", ""))
    if options:
        notes.append(cause("malloc-conf", options=options, advice=malloc_conf.advice(options)))
    if "malloc" not in file.inside and file.allocator == "hakmem":
        notes.append(cause("beside", file=program.path))
    return tuple(notes)


# Files whose allocator is known to serve something that their users know.
KNOWN = {"polars": "polars", "libarrow": "pyarrow", "duckdb": "duckdb"}


def _objects(program: Program) -> tuple[Cause, ...]:
    files = program.picture.files if program.picture else ()
    asked = {name for loaded in files for name in loaded.file.asks}
    found = []
    for loaded in files:
        id = next((id for part, id in KNOWN.items() if part in Path(loaded.name).name), "inner")
        if not _keeps_its_own(loaded, asked, is_program=loaded is files[0]):
            continue
        if id == "pyarrow" and program.environment.get("ARROW_DEFAULT_MEMORY_POOL") == "system":
            continue
        allocators = " and ".join(loaded.file.carries)
        found.append(cause(id, file=loaded.name, allocator=allocators))
    return tuple(found)


def _keeps_its_own(loaded: Loaded, asked: set[str], *, is_program: bool) -> bool:
    """Whether it has an allocator that works although malloc is hakmem's."""
    file = loaded.file
    if not file.carries or file.runtime is not None:  # Python 3.13 has mimalloc inside, unused
        return False
    if is_program and "malloc" in file.inside and not file.is_hakmem:
        return False  # it is the malloc of the program, which the verdict is about
    # Where its malloc gave way to hakmem's, it serves those alone that ask for it by name.
    gave_way = "malloc" in file.exported and not file.is_hakmem
    return not gave_way or bool(asked & file.exported.keys())
