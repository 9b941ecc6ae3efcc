"""Finds an entry point's fast path in the machine code and counts what it is made of."""

import heapq
import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import capstone
from capstone import x86
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection

# Decoded instructions from an entry on; capstone has no types.
Way = tuple[Any, ...]

# Explicit operands of these are addresses only: nothing is read or written.
NO_ACCESS = {x86.X86_INS_LEA, x86.X86_INS_NOP, x86.X86_INS_ENDBR64}
STACK_STORE = {x86.X86_INS_PUSH, x86.X86_INS_PUSHFQ}
STACK_LOAD = {x86.X86_INS_POP, x86.X86_INS_POPFQ, x86.X86_INS_LEAVE}


@dataclass(frozen=True)
class Counts:
    """What one call executes, the `ret` included; the return address it takes is no load."""

    instructions: int
    branches: int
    loads: int
    stores: int


@dataclass(frozen=True)
class FastPath:
    """Counts, and how many accesses are a load and a store by one instruction."""

    counts: Counts
    updates: int


class NoFastPath(Exception):
    """Every way from the entry to a `ret` has something on it that a fast path may not have."""


class Library:
    """The code of a shared library and the functions that it exports."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            elf: Any = ELFFile(file)
            if elf["e_machine"] != "EM_X86_64":
                raise SystemExit(f"{path}: golden counts are kept for x86-64 only")
            self.exports: dict[str, tuple[int, int]] = {}
            for symbol in elf.get_section_by_name(".dynsym").iter_symbols():
                if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_value"]:
                    self.exports[symbol.name] = (symbol["st_value"], symbol["st_size"])
            # Where a jump through a word that the loader fills in leads, if to ours.
            self.words = _words(elf)
            self._segments = [
                (segment["p_vaddr"], segment.data())
                for segment in elf.iter_segments("PT_LOAD")
                if segment["p_flags"] & 1
            ]
            comment = elf.get_section_by_name(".comment")
            self.compiler = _compiler(comment.data() if comment else b"")
        self._decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self._decoder.detail = True

    def target(self, insn: Any) -> int:
        """Where a jump goes; of an indirect one to another library only that it leaves."""
        operand = insn.operands[0]
        if operand.type == x86.X86_OP_IMM:
            return int(operand.imm)
        if operand.type == x86.X86_OP_MEM and operand.mem.base == x86.X86_REG_RIP:
            word = insn.address + insn.size + operand.mem.disp
            return self.exports.get(self.words.get(word, ""), (0, 0))[0]
        return 0

    def aliases(self, name: str) -> list[str]:
        """All exported names of the code that this name stands for, itself included."""
        return [other for other, place in self.exports.items() if place == self.exports[name]]

    def function(self, name: str) -> dict[int, Any]:
        """The instructions of an exported function by address."""
        start, size = self.exports[name]
        for base, data in self._segments:
            if base <= start < base + len(data):
                code = data[start - base : start - base + size]
                return {insn.address: insn for insn in self._decoder.disasm(code, start)}
        raise NoFastPath(f"{name} is not in the code")


def fast_path(library: Library, name: str) -> FastPath:
    """Counts the fast path of an exported function.

    Of all straight ways from the entry to a `ret` it is the one with the fewest conditional jumps
    taken (compilers put the likely side behind the jump), then the shortest. A way that calls,
    locks, loops, or leaves for anything but another exported function isn't straight.
    """
    insns = _straight_way(library, name)
    accesses = [_accesses(insn) for insn in insns]
    return FastPath(
        Counts(
            instructions=len(insns),
            branches=sum(map(_is_conditional, insns)),
            loads=sum(load for load, _ in accesses),
            stores=sum(store for _, store in accesses),
        ),
        updates=sum(1 for load, store in accesses if load and store),
    )


def _straight_way(library: Library, name: str) -> Way:
    """Best first: each address is met by its best way, so none is looked at twice."""
    order = itertools.count()  # decides between equals; instructions cannot be compared
    starts = {start: export for export, (start, _) in library.exports.items()}
    code = library.function(name)
    refused: list[str] = []
    met: set[int] = set()
    ways: list[tuple[int, int, int, int, Way]]
    ways = [(0, 0, next(order), library.exports[name][0], ())]
    while ways:
        taken, length, _, at, way = heapq.heappop(ways)
        if at not in code and at in starts and not _is_conditional(way[-1]):
            code |= library.function(starts[at])
        if at in met:
            continue
        met.add(at)
        if at not in code:
            refused.append(f"leaves the function for {at:#x}")
            continue
        insn = code[at]
        way = (*way, insn)
        if reason := _unfit(library, insn, way):
            refused.append(f"{reason} at {at:#x}")
            continue
        if insn.group(capstone.CS_GRP_RET):
            return way
        jumps = bool(insn.group(capstone.CS_GRP_JUMP))
        if not jumps or _is_conditional(insn):
            heapq.heappush(ways, (taken, length + 1, next(order), at + insn.size, way))
        if jumps:
            taken += _is_conditional(insn)
            heapq.heappush(ways, (taken, length + 1, next(order), library.target(insn), way))
    raise NoFastPath(f"{name}: no straight way to a ret: {', '.join(refused)}")


def _unfit(library: Library, insn: Any, way: Way) -> str | None:
    """Why this instruction, the last of its way, may not be on a fast path."""
    if x86.X86_PREFIX_LOCK in insn.prefix:
        return "lock"
    if insn.id == x86.X86_INS_XCHG and any(_accesses(insn)):
        return "lock (xchg with memory)"
    if insn.prefix[0] in (x86.X86_PREFIX_REP, x86.X86_PREFIX_REPNE) and any(_accesses(insn)):
        return "repeated string instruction"
    if insn.group(capstone.CS_GRP_CALL) or insn.group(capstone.CS_GRP_INT):
        return "call"
    if insn.group(capstone.CS_GRP_JUMP) and library.target(insn) in {step.address for step in way}:
        return "loop"
    return None


def _is_conditional(insn: Any) -> bool:
    return bool(insn.group(capstone.CS_GRP_JUMP)) and insn.id != x86.X86_INS_JMP


def _is_locked_exchange(insn: Any) -> bool:
    """`xchg` with memory locks without saying so."""
    return insn.id == x86.X86_INS_XCHG and any(_accesses(insn))


def _accesses(insn: Any) -> tuple[int, int]:
    """Loads and stores of one instruction; one that reads and writes its operand counts as both."""
    loads = int(insn.id in STACK_LOAD)
    stores = int(insn.id in STACK_STORE)
    if insn.id in NO_ACCESS:
        return 0, 0
    for position, operand in enumerate(insn.operands):
        if operand.type != x86.X86_OP_MEM:
            continue
        if position == 0 and insn.mnemonic.startswith("mov"):
            stores += 1  # the decoder takes some vector stores for loads
        else:
            loads += bool(operand.access & capstone.CS_AC_READ)
            stores += bool(operand.access & capstone.CS_AC_WRITE)
    return loads, stores


def _words(elf: Any) -> dict[int, str]:
    """The words that the loader sets to a function's address, by their place."""
    words: dict[int, str] = {}
    for section in elf.iter_sections():
        if isinstance(section, RelocationSection):
            symbols = elf.get_section(section["sh_link"])
            for relocation in section.iter_relocations():
                if symbol := relocation["r_info_sym"]:
                    words[relocation["r_offset"]] = symbols.get_symbol(symbol).name
    return words


def _compiler(comment: bytes) -> str:
    """Family and major version, such as "gcc 12": another one makes other code of the same text."""
    text = comment.decode(errors="replace")
    # The C library's start files are gcc's in every program: clang is asked for first.
    for family, pattern in ("clang", r"clang version (\d+)"), ("gcc", r"GCC: .*? (\d+)\.\d+"):
        if found := re.search(pattern, text):
            return f"{family} {found[1]}"
    return "unknown compiler"
