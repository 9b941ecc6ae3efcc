"""What the built library uses of libc and of the loader, and what not: nothing that ends with the
program or starts before it (traps 21, 30, 32). tests/platforms/test_libc.py has what it calls."""

import re
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from tests.ran import ran

# Called once, behind the first cache, where libc may allocate (life.c), and only for learn_log.
AT_THE_START = {"__cxa_atexit", "atexit"}


@pytest.fixture(scope="module")
def elf(library: Path) -> ELFFile:
    return ELFFile(library.open("rb"))


def test_only_the_process_s_start_has_anything_called_at_its_end(build: Path) -> None:
    command = ["nm", "-A", "-u", str(build / "libhakmem.a")]
    listed = ran(*command, check=True).stdout
    users = {line.split(":")[1] for line in listed.splitlines() if line.split()[-1] in AT_THE_START}
    assert users == {"os_linux.c.o"}
    source = Path(__file__).parents[2] / "src"
    callers = {p.name for p in source.rglob("*.c") if "os_at_end(" in p.read_text()}
    assert callers == {"os_linux.c", "life.c"}


def test_nothing_but_libc_is_needed(elf: ELFFile) -> None:
    dynamic = elf.get_section_by_name(".dynamic")
    assert isinstance(dynamic, DynamicSection)
    needed = [str(vars(tag)["needed"]) for tag in dynamic.iter_tags("DT_NEEDED")]
    assert all(re.fullmatch(r"libc\.(so|musl).*|ld-linux.*|ld-musl.*", n) for n in needed), needed


def test_one_constructor_and_no_destructor_of_ours(elf: ELFFile) -> None:
    """One entry each is the compiler's own, which every shared object has."""
    for name, most in ((".init_array", 2), (".fini_array", 1)):
        section = elf.get_section_by_name(name)
        entries = 0 if section is None else section["sh_size"] // (elf.elfclass // 8)
        assert entries <= most, f"{name} has {entries} entries"


def test_no_resolver_runs_before_the_loader_is_done(elf: ELFFile) -> None:
    symbols = elf.get_section_by_name(".dynsym")
    assert isinstance(symbols, SymbolTableSection)
    types = {s["st_info"]["type"] for s in symbols.iter_symbols()}
    assert "STT_GNU_IFUNC" not in types and "STT_LOOS" not in types
    relocations = [
        r["r_info_type"]
        for section in elf.iter_sections()
        if isinstance(section, RelocationSection)
        for r in section.iter_relocations()
    ]
    assert relocations, "the relocations were not read"
    if elf["e_machine"] == "EM_X86_64":
        assert 37 not in relocations  # R_X86_64_IRELATIVE
        assert not {16, 17} & set(relocations)  # dynamic thread-local memory, which libc allocates


def test_thread_local_memory_is_little(elf: ELFFile) -> None:
    """Libc keeps some 1.6 KiB for all libraries that come late."""
    sizes = [s["p_memsz"] for s in elf.iter_segments() if s["p_type"] == "PT_TLS"]
    print(f"\nthread-local memory: {sizes} bytes")
    symbols = elf.get_section_by_name(".symtab")
    # With assertions a thread counts the locks that it holds.
    counts = isinstance(symbols, SymbolTableSection) and bool(
        symbols.get_symbol_by_name("assertion_failed")
    )
    assert len(sizes) == 1 and sizes[0] <= (128 if counts else 64)
