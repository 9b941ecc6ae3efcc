"""Every form of new and delete comes from one allocator, whatever other one the program is linked
with, and whichever forms it has itself."""

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.nightly import points
from tests.ran import ran

PROGRAMS = Path(__file__).parent / "programs"
COMPILERS = ("g++", "clang++")
OTHERS = {
    "jemalloc": "libjemalloc.so.2",
    "tcmalloc": "libtcmalloc_minimal.so.4",
    "mimalloc": "libmimalloc.so.2",
}
# Bits of programs/forms.h.
NEW, NEW_ARRAY, NEW_ALIGNED, NEW_NOTHROW = 1 << 0, 1 << 1, 1 << 2, 1 << 4
DELETE, DELETE_ARRAY, DELETE_ALIGNED, DELETE_ARRAY_SIZED = 1 << 8, 1 << 9, 1 << 10, 1 << 13
REPLACED = {
    "none": 0,
    "one": NEW | DELETE,
    "several": NEW_ARRAY | DELETE_ARRAY | DELETE_ARRAY_SIZED | NEW_ALIGNED | DELETE_ALIGNED,
    "nothrow": NEW_NOTHROW | NEW_ALIGNED | DELETE_ALIGNED,
    "all": (1 << 20) - 1,
}
SETTINGS = {
    "hardened": {"HAKMEM_PRESET": "hardened"},
    "functions": {"HAKMEM_CHECK_FUNCTIONS": "on"},
    "sizes": {"HAKMEM_CHECK_SIZES": "on"},
    "profile": {"HAKMEM_PROFILE": "on", "HAKMEM_PROFILE_RATE": "4K"},
}

Objects = Callable[[str, str], list[Path]]


def _compiled(compiler: str, source: str, to: Path, *flags: str) -> Path:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    if not to.exists():
        command = [compiler, "-O1", "-Wno-deprecated-declarations", "-fPIC", "-c"]
        command += ["-std=c++17", "-fsized-deallocation", *flags, str(PROGRAMS / source)]
        subprocess.run([*command, "-o", str(to)], check=True)
    return to


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Objects:
    """Each source is compiled once."""
    folder = tmp_path_factory.mktemp("objects")

    def of(compiler: str, replaced: str) -> list[Path]:
        forms = _compiled(compiler, "forms.cc", folder / f"forms-{compiler}.o")
        own = folder / f"{replaced}-{compiler}.o"
        return [forms, _compiled(compiler, "replaced.cc", own, f"-DREPLACED={REPLACED[replaced]}u")]

    return of


def _other(name: str) -> list[str]:
    if name == "none":
        return []
    found = Path("/usr/lib", f"{os.uname().machine}-linux-gnu", OTHERS[name])
    if not found.exists():
        pytest.skip(f"{OTHERS[name]} is not installed")
    return ["-Wl,--no-as-needed", str(found)]


def _link(compiler: str, to: Path, *parts: str | Path) -> Path:
    command = [compiler, "-pthread", *map(str, parts), "-o", str(to)]
    done = ran(*command)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return to


def _run(command: list[Path], settings: dict[str, str]) -> None:
    dropped = ("HAKMEM_", "MALLOC_", "GLIBC_TUNABLES", "LD_", "ASAN_OPTIONS")
    env = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    env |= {"HAKMEM_HARD_LIMIT_BYTES": "256M"} | settings
    done = ran(*command, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 wrong\n", "")


def always(replaced: str, other: str, compiler: str = "g++") -> bool:
    """All forms beside one allocator, and all allocators without forms of the program's."""
    return compiler == "g++" and (other == "jemalloc" or replaced == "none")


@pytest.mark.parametrize(
    ("replaced", "other", "compiler"),
    points(
        (
            (replaced, other, compiler)
            for replaced, other, compiler in itertools.product(
                REPLACED, ["none", *OTHERS], COMPILERS
            )
            if compiler == "g++" or replaced in ("none", "all")
        ),
        lambda *one: always(*one) or one == ("all", "jemalloc", "clang++"),
    ),
)
def test_preloaded(
    replaced: str, other: str, compiler: str, objects: Objects, library: Path, tmp_path: Path
) -> None:
    program = _link(compiler, tmp_path / "program", *objects(compiler, replaced), *_other(other))
    _run([program], {"LD_PRELOAD": str(library)})


@pytest.mark.parametrize("setting", SETTINGS)
def test_preloaded_with(setting: str, objects: Objects, library: Path, tmp_path: Path) -> None:
    other = _other("jemalloc")
    program = _link("g++", tmp_path / "program", *objects("g++", "none"), *other)
    _run([program], {"LD_PRELOAD": str(library)} | SETTINGS[setting])


@pytest.mark.parametrize(
    ("replaced", "other"), points(itertools.product(REPLACED, ["none", *OTHERS]), always)
)
def test_linked_before_the_other(
    replaced: str, other: str, objects: Objects, library: Path, tmp_path: Path
) -> None:
    ours = [str(library), f"-Wl,-rpath,{library.parent}"]
    program = _link("g++", tmp_path / "program", *objects("g++", replaced), *ours, *_other(other))
    _run([program], {})


@pytest.mark.parametrize("other", ["none", *OTHERS])
@pytest.mark.parametrize("form", ["object", "archive"])
def test_inside_a_program_that_is_linked_with_the_other(
    form: str, other: str, objects: Objects, archive: Path, tmp_path: Path
) -> None:
    ours = archive.with_name("hakmem.o") if form == "object" else archive
    needs = ["-Wl,-u,malloc", "-Wl,-u,malloc_object_size"]
    own = objects("g++", "none")
    _run([_link("g++", tmp_path / "program", *own, *needs, ours, *_other(other))], {})


@pytest.mark.parametrize("form", ["object", "archive"])
@pytest.mark.parametrize("replaced", REPLACED)
def test_static(replaced: str, form: str, objects: Objects, archive: Path, tmp_path: Path) -> None:
    ours = archive.with_name("hakmem.o") if form == "object" else archive
    needs = ["-Wl,-u,malloc_object_size", "-Wl,-u,_ZSt17__throw_bad_allocv", "-static"]
    program = _link("g++", tmp_path / "program", *needs, *objects("g++", replaced), ours)
    _run([program], {})


def test_part_in_cxx_of_a_program_in_c(library: Path, tmp_path: Path) -> None:
    """new throws what it should, though the library was loaded before any C++ runtime."""
    source = str(PROGRAMS / "plugin.cc")
    part = _link("g++", tmp_path / "plugin.so", "-shared", "-fPIC", "-O1", source)
    program = _link("gcc", tmp_path / "program", str(PROGRAMS / "loads_plugin.c"), "-ldl")
    _run([program, part], {"LD_PRELOAD": str(library)})
