"""The library beside preloaded ones that define a function of libc which it calls: each of theirs
opens a library at its first call and allocates at each, from inside the allocator."""

import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tests.ran import clean_environment

SOURCE = Path(__file__).parent / "loaded" / "interposer.c"
PROGRAM = Path(__file__).parent / "programs" / "interposed.c"
HANGS_AFTER = 120  # seconds; a run takes one, at most, also where others work

# What is not interposed, and why.
LEFT_OUT = {
    "__cxa_finalize": "the C runtime's, of which each object calls its own",
    "__sigsetjmp": "it returns twice, and the second time into the frame of what called it",
}
# Allocating comes back to these by itself, so their interposers must not allocate in a call that
# comes out of their own; all others need not look.
GUARDED = {"__errno_location", "memcpy", "memset"}

SETTINGS = {
    "hardened": {"HAKMEM_PRESET": "hardened"},
    "profile": {"HAKMEM_PROFILE": "on", "HAKMEM_PROFILE_RATE": "4K"},
    "guards": {"HAKMEM_GUARDS_A_SECOND": "1000"},
    "record": {"HAKMEM_RECORD": "FOLDER"},
}
# Those that other paths call with these settings than without.
WITH_SETTINGS = {
    *("_dl_find_object", "getauxval", "memcpy", "memset", "pthread_setspecific", "sigaction"),
    "strlen",
}


def functions(library: Path) -> list[str]:
    """Those of libc that the library calls: its undefined symbols, without C++'s and variables."""
    with library.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(symbols, SymbolTableSection)
        return sorted(
            symbol.name
            for symbol in symbols.iter_symbols()
            if symbol["st_shndx"] == "SHN_UNDEF"
            and symbol["st_info"]["type"] == "STT_FUNC"
            and symbol.name not in LEFT_OUT
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "function" in metafunc.fixturenames:
        library = metafunc.config.getoption("--lib")
        found = functions(library) if library is not None else []
        if "setting" in metafunc.fixturenames:
            found = [function for function in found if function in WITH_SETTINGS]
        metafunc.parametrize("function", found)


def run(
    program: Sequence[str], preload: Sequence[Path], settings: dict[str, str]
) -> tuple[int | str, str]:
    """Status, or that it hangs, and what it has printed. Children of it end with it."""
    environment = clean_environment() | settings | {"LD_PRELOAD": " ".join(map(str, preload))}
    process = subprocess.Popen(
        program,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=HANGS_AFTER)
        return process.returncode, said
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        return "hangs", said


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("interposers")


@pytest.fixture(scope="session")
def compiler(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--compiler"))


@pytest.fixture(scope="session")
def program(compiler: str, folder: Path, request: pytest.FixtureRequest) -> list[str]:
    built = folder / "interposed"
    command = [compiler, "-O1", "-fno-builtin", "-Wall", "-Wextra", "-Werror", str(PROGRAM)]
    subprocess.run([*command, "-pthread", "-o", str(built)], check=True)
    return [*shlex.split(request.config.getoption("--runner")), str(built)]


@pytest.fixture
def theirs(function: str, compiler: str, folder: Path) -> Path:
    library = folder / f"{function}.so"
    if not library.exists():
        command = [compiler, "-O1", "-fno-builtin", "-shared", "-fPIC"]
        command += ["-Wall", "-Wextra", "-Werror"]
        macros = [f'-DINTERPOSED="{function}"', f"-DGUARDED={int(function in GUARDED)}"]
        subprocess.run([*command, *macros, SOURCE, "-o", library], check=True)
    return library


def both_orders(program: Sequence[str], theirs: Path, ours: Path, settings: dict[str, str]) -> None:
    for first, second in ((theirs, ours), (ours, theirs)):
        status, said = run(program, [first, second], settings)
        assert status == 0 and "malloc is hakmem's" in said, (first.name, status, said)
        assert "hakmem: free(0x" in said, (first.name, said)


def test_runs_to_its_end(theirs: Path, library: Path, program: list[str]) -> None:
    status, said = run(program, [theirs], {})
    assert status == 0, ("without hakmem", status, said)
    both_orders(program, theirs, library, {})


@pytest.mark.parametrize("setting", SETTINGS)
def test_with_settings(
    setting: str, theirs: Path, library: Path, program: list[str], folder: Path
) -> None:
    settings = {
        name: value.replace("FOLDER", str(folder)) for name, value in SETTINGS[setting].items()
    }
    both_orders(program, theirs, library, settings)


def test_functions_are_found(library: Path) -> None:
    assert {"pthread_create", "memcpy"} <= set(functions(library)), "the imports were not read"
