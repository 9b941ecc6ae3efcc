"""What an ELF file says about allocators: what it defines, what it calls, who can load it.

pyelftools reads the headers. Symbols and relocations, of which large programs have hundreds of
thousands, are read as plain tables.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment

FAMILY = ("malloc", "calloc", "realloc", "free")
# A function that only this allocator has, and the name of the allocator. The C libraries come last:
# a program may contain one together with another allocator.
ALLOCATORS = {
    "hakmem_malloc": "hakmem",
    "__asan_init": "AddressSanitizer",
    "__tsan_init": "ThreadSanitizer",
    "mallctl": "jemalloc",
    "je_mallctl": "jemalloc",
    "_rjem_mallctl": "jemalloc",
    "tc_malloc": "tcmalloc",
    "TCMalloc_Internal_GetStats": "tcmalloc",
    "mi_malloc": "mimalloc",
    "rpmalloc": "rpmalloc",
    "sn_malloc": "snmalloc",
    "gnu_get_libc_version": "glibc",
    "__libc_start_main": "musl",
}
C_LIBRARIES = ("glibc", "musl")
# Functions with which a file may get blocks from an allocator without a call of malloc. (jemalloc's
# are missing: hakmem has them.)
BY_NAME = (
    "je_malloc",
    "_rjem_malloc",
    "mi_malloc",
    "mi_heap_malloc",
    "tc_malloc",
    "rpmalloc",
    "sn_malloc",
)
# Texts that only the allocator itself contains: messages and names of settings. They are what is
# left of it if its symbols are stripped. (rpmalloc has none.)
TRACES = {
    b"<jemalloc>: ": "jemalloc",
    b"mimalloc: error: ": "mimalloc",
    b"TCMALLOC_RELEASE_RATE": "tcmalloc",
    b"Failed to initialise snmalloc": "snmalloc",
}
# Runtimes with a separate heap next to malloc, by a function that only they export.
RUNTIMES = {
    "_Py_DecRefShared": "Python-free-threaded",  # without the GIL
    "pypy_main_startup": "PyPy",
    "PyObject_Malloc": "Python",
    "JNI_CreateJavaVM": "Java",
    "node_module_register": "Node.js",
    "luaJIT_setmode": "LuaJIT",
}
MACHINES = {
    "EM_X86_64": "x86-64",
    "EM_386": "x86",
    "EM_AARCH64": "AArch64",
    "EM_ARM": "ARM",
    "EM_RISCV": "RISC-V",
    "EM_PPC64": "PowerPC",
    "EM_S390": "S/390",
}
# A section that every program has that is linked with hakmem; strip does not remove it.
MARK = "hakmem_fork"

SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")
UNDEFINED = 0
# A function of the dynamic loader, which can be started as a program: ld.so PROGRAM.
LOADER = "__tls_get_addr"
WANTED = tuple(dict.fromkeys((*FAMILY, *ALLOCATORS, *BY_NAME, *RUNTIMES, LOADER)))


class NotElf(Exception):
    """The file is not in the ELF format: a script, a text, an empty file."""


@dataclass(frozen=True)
class Slot:
    """The place in which a file keeps the address of a function that the loader found for it."""

    function: str
    address: int  # relative to where the file is loaded


@dataclass(frozen=True)
class Elf:
    bits: int
    machine: str
    interpreter: str | None
    needed: tuple[str, ...]
    first: int  # the address, as the file counts, of its first byte in memory
    # The names of WANTED that the file defines, with addresses as in `first`: those that other
    # files find here, and all of them. (In a stripped file these are the same.)
    exported: Mapping[str, int]
    inside: Mapping[str, int]
    asks: frozenset[str]  # the names of BY_NAME that it calls in other files
    carries: tuple[str, ...]  # allocators that it contains, without hakmem and the C libraries
    slots: tuple[Slot, ...]
    marked: bool
    go: bool
    stripped: bool

    @property
    def processor(self) -> str:
        return f"{self.machine}, {self.bits} bits"

    @property
    def musl(self) -> bool:
        names = (self.interpreter or "", *self.needed)
        return any(name == "libc.so" or "musl" in name for name in names)

    @property
    def static(self) -> bool:
        return self.interpreter is None and LOADER not in self.exported

    @property
    def is_hakmem(self) -> bool:
        """Whether malloc, where this file defines it, is hakmem's."""
        return "malloc" in self.inside and self.inside["malloc"] == self.inside.get("hakmem_malloc")

    @property
    def allocator(self) -> str | None:
        return next((name for mark, name in ALLOCATORS.items() if mark in self.inside), None)

    @property
    def runtime(self) -> str | None:
        return next((name for mark, name in RUNTIMES.items() if mark in self.exported), None)

    def runs_beside(self, other: Elf) -> bool:
        return (self.bits, self.machine) == (other.bits, other.machine)


def read(path: Path) -> Elf:
    """The file's facts. Raises OSError, or NotElf."""
    with path.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            raise NotElf(path)
    # Through /proc/PID one name may mean two files at two times, so the status identifies a file.
    status = path.stat()
    return _read(path, status.st_dev, status.st_ino, status.st_mtime_ns)


@functools.lru_cache(maxsize=4096)
def _read(path: Path, _device: int, _inode: int, _changed: int) -> Elf:
    with path.open("rb") as file:
        try:
            return _facts(ELFFile(file))
        # Wrong offsets and lengths in a file lead to errors of the system and of Python as well.
        except (ELFError, struct.error, LookupError, ValueError, OSError, MemoryError) as error:
            raise NotElf(path) from error


def _facts(elf: ELFFile) -> Elf:
    interpreter, needed, first = None, [], 0
    for segment in elf.iter_segments():
        if isinstance(segment, InterpSegment):
            interpreter = str(segment.get_interp_name())
        elif isinstance(segment, DynamicSegment):
            needed = [tag.needed for tag in segment.iter_tags("DT_NEEDED")]  # type: ignore[attr-defined]
        elif segment["p_type"] == "PT_LOAD" and segment["p_offset"] == 0:
            first = segment["p_vaddr"]
    machine = str(elf["e_machine"])
    plain = elf.elfclass == 64 and elf.little_endian
    exported = dict(_defined(elf, ".dynsym")) if plain else {}
    inside = exported | (dict(_defined(elf, ".symtab")) if plain else {})
    return Elf(
        bits=elf.elfclass,
        machine=MACHINES.get(machine, machine.removeprefix("EM_")),
        interpreter=interpreter,
        needed=tuple(needed),
        first=first,
        exported=exported,
        inside=inside,
        asks=frozenset(_asked(elf)) if plain else frozenset(),
        carries=_carried(elf, inside),
        slots=tuple(_slots(elf)) if plain else (),
        marked=elf.get_section_by_name(MARK) is not None,
        go=any(elf.get_section_by_name(name) for name in (".go.buildinfo", ".note.go.buildid")),
        stripped=elf.get_section_by_name(".symtab") is None,
    )


def _wanted(names: bytes) -> dict[int, str]:
    """The offsets of these names in a table of strings; the end of a longer name counts, too."""
    found = {}
    for name in WANTED:
        bytes_, at = name.encode() + b"\0", -1
        while (at := names.find(bytes_, at + 1)) >= 0:
            found[at] = name
    return found


def _symbols(elf: ELFFile, section: str) -> Iterator[tuple[int, str, int, int]]:
    """Index, name, section and value of each wanted symbol."""
    table = elf.get_section_by_name(section)
    if table is None or table["sh_type"] == "SHT_NOBITS":
        return
    wanted = _wanted(elf.get_section(table["sh_link"]).data())
    for index, (name, _, _, where, value, _) in enumerate(SYMBOL.iter_unpack(table.data())):
        if name in wanted:
            yield index, wanted[name], where, value


def _defined(elf: ELFFile, section: str) -> Iterator[tuple[str, int]]:
    return ((n, value) for _, n, where, value in _symbols(elf, section) if where != UNDEFINED)


def _asked(elf: ELFFile) -> Iterator[str]:
    symbols = _symbols(elf, ".dynsym")
    return (name for _, name, where, _ in symbols if where == UNDEFINED and name in BY_NAME)


def _carried(elf: ELFFile, inside: Mapping[str, int]) -> tuple[str, ...]:
    """By symbols and by texts: a file may contain several allocators, some of them stripped."""
    no_peers = ("hakmem", *C_LIBRARIES)
    ours = "malloc" in inside and inside["malloc"] == inside.get("hakmem_malloc")
    marks = [mark for mark in ALLOCATORS if mark in inside and not (ours and mark == "mallctl")]
    named = [name for mark in marks if (name := ALLOCATORS[mark]) not in no_peers]
    section = elf.get_section_by_name(".rodata")
    constants = b"" if section is None or section["sh_type"] == "SHT_NOBITS" else section.data()
    traced = [name for trace, name in TRACES.items() if trace in constants]
    return tuple(dict.fromkeys((*named, *traced)))


def _slots(elf: ELFFile) -> Iterator[Slot]:
    functions = {i: name for i, name, *_ in _symbols(elf, ".dynsym") if name in FAMILY}
    if not functions:
        return
    for section in elf.iter_sections("SHT_RELA"):
        # Not those of a file that is still to be linked, or of a static program's own resolvers.
        if not section["sh_flags"] & 2 or section.data_size % RELOCATION.size:
            continue
        for address, info, addend in RELOCATION.iter_unpack(section.data()):
            if info >> 32 in functions and addend == 0:
                yield Slot(functions[info >> 32], address)
