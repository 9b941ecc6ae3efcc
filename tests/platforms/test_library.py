"""The shared library as a file: what it exports, and what it needs from the loader."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from tests.platforms import names
from tests.ran import ran

# A pointer and a flag or two: of about 1600 bytes that glibc keeps for all late libraries.
MOST_TLS_BYTES = 64
THREAD_RELOCATIONS = {"x86_64": {18}, "aarch64": {1030}}  # R_X86_64_TPOFF64, R_AARCH64_TLS_TPREL
DF_TEXTREL, DF_STATIC_TLS = 0x4, 0x10
DF_1_NOW, DF_1_NODELETE = 0x1, 0x8


@pytest.fixture(scope="module")
def elf(library: Path) -> Iterator[Any]:
    with library.open("rb") as file:
        yield ELFFile(file)


def _exported(elf: Any) -> dict[str, Any]:
    return {
        symbol.name: symbol
        for symbol in elf.get_section_by_name(".dynsym").iter_symbols()
        if symbol["st_shndx"] != "SHN_UNDEF" and symbol.name
    }


def _tags(elf: Any) -> dict[str, Any]:
    return {tag.entry.d_tag: tag.entry.d_val for tag in _dynamic(elf)}


def _dynamic(elf: Any) -> list[Any]:
    return list(elf.get_section_by_name(".dynamic").iter_tags())


def _relocations(elf: Any) -> list[tuple[int, str]]:
    """Kind and symbol of each."""
    symbols = elf.get_section_by_name(".dynsym")
    return [
        (entry["r_info_type"], symbols.get_symbol(entry["r_info_sym"]).name)
        for section in elf.iter_sections()
        if section["sh_type"] == "SHT_RELA"
        and section["sh_flags"] & 2  # of the file that is loaded
        for entry in section.iter_relocations()
    ]


def test_exports_what_is_meant_and_nothing_else(elf: Any) -> None:
    found = set(_exported(elf))
    assert names.required() - found == set(), "missing"
    assert found - names.allowed() == set(), "not meant for the world"


def test_two_names_of_one_function(elf: Any) -> None:
    exported = _exported(elf)
    for name in names.FAMILY & set(exported):
        if f"hakmem_{name}" in exported:
            assert exported[name]["st_value"] == exported[f"hakmem_{name}"]["st_value"], name


def test_needs_libc_alone(elf: Any) -> None:
    needed = {tag.needed for tag in _dynamic(elf) if tag.entry.d_tag == "DT_NEEDED"}
    assert "libc.so.6" in needed
    assert {name for name in needed if not name.startswith(("libc.so.", "ld-linux"))} == set()


def test_has_no_versions_of_its_own(elf: Any) -> None:
    """A version on malloc would keep a program from finding another's, or ours."""
    assert "DT_VERDEF" not in _tags(elf)


def test_needs_no_newer_libc_than_2_35(elf: Any) -> None:
    """It is 2.35 for _dl_find_object, by which the compiler's unwinder finds tables; else 2.34."""
    needed = elf.get_section_by_name(".gnu.version_r")
    versions = {version.name for _, versions in needed.iter_versions() for version in versions}
    numbers = {tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in versions}
    assert max(numbers) <= (2, 35), versions
    newer = {
        symbol.name
        for number, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols())
        if _version(elf, number) == "GLIBC_2.35"
    }
    assert newer <= {"_dl_find_object"}, newer


def _version(elf: Any, number: int) -> str:
    """Of the symbol with this number, as "GLIBC_2.35"; empty where it has none."""
    index = elf.get_section_by_name(".gnu.version").get_symbol(number)["ndx"]
    if not isinstance(index, int):
        return ""
    _, version = elf.get_section_by_name(".gnu.version_r").get_version(index)
    return str(version.name)


def test_code_is_the_same_in_every_process(elf: Any) -> None:
    assert "DT_TEXTREL" not in _tags(elf) and not _tags(elf).get("DT_FLAGS", 0) & DF_TEXTREL
    for segment in elf.iter_segments("PT_LOAD"):
        assert segment["p_flags"] & 3 != 3, "a segment that may be written and executed"
    assert next(elf.iter_segments("PT_GNU_STACK"))["p_flags"] & 1 == 0, "an executable stack"


def test_one_constructor_that_need_not_run_first(elf: Any) -> None:
    """It makes the start come before main; the first call may come before it. No resolvers."""
    kinds = {symbol["st_info"]["type"] for symbol in _exported(elf).values()}
    assert kinds == {"STT_FUNC"}, "STT_LOOS would be an IFUNC"
    assert _tags(elf).get("DT_INIT_ARRAYSZ", 0) <= 16, "one entry is the C compiler's own"
    assert _tags(elf).get("DT_FINI_ARRAYSZ", 0) <= 8, "a destructor: it would come before frees"
    constructors = {
        symbol.name
        for symbol in elf.get_section_by_name(".symtab").iter_symbols()
        if symbol["st_shndx"] != "SHN_UNDEF" and symbol.name.startswith("_GLOBAL__sub_I")
    }
    assert constructors == set()
    names_of_entries = {
        symbol.name
        for symbol in elf.get_section_by_name(".symtab").iter_symbols()
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_value"] in _init_array(elf)
    }
    assert names_of_entries == {"frame_dummy", "start_when_loaded"}


def _init_array(elf: Any) -> set[int]:
    """The functions that the loader calls; each entry is relocated, to what its addend says."""
    section = elf.get_section_by_name(".init_array")
    start, end = section["sh_addr"], section["sh_addr"] + section["sh_size"]
    return {
        entry["r_addend"]
        for entry in elf.get_section_by_name(".rela.dyn").iter_relocations()
        if start <= entry["r_offset"] < end
    }


def test_thread_local_memory_is_little_and_at_a_fixed_place(elf: Any) -> None:
    """Any other way of finding it may call malloc."""
    tls = list(elf.iter_segments("PT_TLS"))
    size = sum(segment["p_memsz"] for segment in tls)
    print(f"{size} bytes of thread-local memory")
    assert len(tls) == 1 and 0 < size <= MOST_TLS_BYTES
    assert _tags(elf).get("DT_FLAGS", 0) & DF_STATIC_TLS
    machine = "x86_64" if elf["e_machine"] == "EM_X86_64" else "aarch64"
    kinds = {kind for kind, _ in _relocations(elf)}
    dynamic = {16, 17, 36, 37} if machine == "x86_64" else {1028, 1029, 1031}
    assert kinds & THREAD_RELOCATIONS[machine] and not kinds & dynamic


# Found by name although they are its own.
MEANT_TO_BE_REPLACED = names.NEW | names.DELETE  # forms that a program has come before ours
OF_THE_UNWINDER = {"malloc", "free"}  # for tables that a program registers, never in a backtrace
NEVER_CALLED = {"hakmem_malloc", "hakmem_mallopt"}  # they keep the parts of the archive together


def test_calls_itself_directly(elf: Any) -> None:
    """Else another library's functions might come between."""
    own = set(_exported(elf))
    found = {name for _, name in _relocations(elf) if name in own}
    assert found - MEANT_TO_BE_REPLACED - OF_THE_UNWINDER - NEVER_CALLED == set()


def test_is_never_unloaded_and_never_bound_late(elf: Any) -> None:
    flags = _tags(elf).get("DT_FLAGS_1", 0)
    assert flags & DF_1_NODELETE and flags & DF_1_NOW


def test_only_the_process_s_start_has_anything_called_at_its_end(archive: Path) -> None:
    """Once, behind the first cache, where libc may allocate (life.c), and only for learn_log."""
    listed = ran("nm", "-A", "-u", archive, check=True).stdout.splitlines()
    of_libc = ("__cxa_atexit", "atexit")
    users = {line.split(":")[1] for line in listed if line.split()[-1] in of_libc}
    assert users == {"os_linux.c.o"}
    source = Path(__file__).parents[2] / "src"
    callers = {p.name for p in source.rglob("*.c") if "os_at_end(" in p.read_text()}
    assert callers == {"os_linux.c", "life.c"}


def test_archive_keeps_its_names_to_itself(archive: Path) -> None:
    listed = ran("nm", "-g", "--defined-only", archive, check=True)
    found = {line.split()[2] for line in listed.stdout.splitlines() if len(line.split()) == 3}
    assert names.required() - found == set(), "missing"
    others = {name for name in found - names.allowed() if not name.startswith("hakmem__")}
    assert others == set(), "names that a program may have too"
