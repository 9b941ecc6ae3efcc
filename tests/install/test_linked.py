"""Programs that are built with an installed hakmem in every documented way. Each proves by hakmem's
statistics that its malloc is hakmem's (beside.c: that it is not)."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.install.tree import HERE, Installed, done
from tests.platforms import names

PROGRAMS = HERE / "programs"


def _compiler(source: str) -> str:
    return "g++" if source.endswith(".cc") else "gcc"


@pytest.fixture(scope="module")
def objects(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The programs as compiled, each once, for any link."""
    folder = tmp_path_factory.mktemp("objects")
    flags = ["-O1", "-fPIE", "-pthread", *installed.pkg_config("--cflags")]
    made = {path.name: folder / f"{path.name}.o" for path in PROGRAMS.glob("*.c*")}
    for source, to in made.items():
        done([_compiler(source), *flags, "-c", PROGRAMS / source, "-o", to])
    return made


def _link(source: str, files: Sequence[object], folder: Path) -> Path:
    program = folder / "program"
    done([_compiler(source), "-pthread", *files, "-o", program])
    return program


def test_cmake_package(installed: Installed, tmp_path: Path) -> None:
    configure = ["cmake", "-G", "Ninja", "-S", HERE / "project", "-B", tmp_path]
    done([*configure, f"-DCMAKE_PREFIX_PATH={installed.prefix}"])
    done(["cmake", "--build", tmp_path])
    programs = sorted((tmp_path / "programs").iterdir())
    assert len(programs) == 18
    printed = {program.name: done([program]) for program in programs}
    library = (installed.libraries / "libhakmem.so").resolve()
    assert printed.pop("hakmem_dynamic_unaware").strip() == str(library)
    assert set(printed.values()) == {""}


@pytest.mark.parametrize("asked", ["0.2", "1", "0.1 COMPONENTS nonsense"])
def test_cmake_package_that_there_is_not(asked: str, installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(user C)\n"
        f"find_package(hakmem {asked} QUIET)\nmessage(STATUS found=${{hakmem_FOUND}})\n"
    )
    configure = ["cmake", "-S", tmp_path, "-B", tmp_path / "build"]
    assert "found=0" in done([*configure, f"-DCMAKE_PREFIX_PATH={installed.prefix}"])


@pytest.mark.parametrize("source", ["words.c", "objects.cc", "unaware.c"])
def test_pkg_config(
    source: str, installed: Installed, objects: dict[str, Path], tmp_path: Path
) -> None:
    libs = installed.pkg_config("--libs")
    # The linker drops what seems not to be needed; gcc asks for that by itself on some systems.
    program = _link(source, ["-Wl,--as-needed", objects[source], *libs], tmp_path)
    printed = done([program], LD_LIBRARY_PATH=str(installed.libraries))
    if source == "unaware.c":
        assert Path(printed.strip()).parent == installed.libraries


@pytest.mark.parametrize("source", ["words.c", "objects.cc", "bare.cc"])
def test_pkg_config_static(
    source: str, installed: Installed, objects: dict[str, Path], tmp_path: Path
) -> None:
    libs = installed.pkg_config("--static", "--libs")
    done([_link(source, ["-static", objects[source], *libs], tmp_path)])


def test_pkg_config_static_takes_malloc_in_unasked(
    installed: Installed, objects: dict[str, Path], tmp_path: Path
) -> None:
    files = ["-static", objects["unaware.c"], *installed.pkg_config("--static", "--libs")]
    program = _link("unaware.c", files, tmp_path)
    symbols = done(["nm", program])
    assert " hakmem_malloc\n" in symbols and " _int_malloc\n" not in symbols


@pytest.mark.parametrize("way", ["dynamic", "static", "static-pie"])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("source", ["words.c", "objects.cc"])
def test_object(
    source: str,
    first: bool,
    way: str,
    installed: Installed,
    objects: dict[str, Path],
    tmp_path: Path,
) -> None:
    """hakmem.o before the program's object or behind it and its libraries."""
    ours, theirs = installed.libraries / "hakmem.o", objects[source]
    flags = ["-Wl,-u,_ZSt17__throw_bad_allocv"] if source.endswith(".cc") else []
    flags += [f"-{way}"] if way != "dynamic" else []
    ordered = [ours, theirs, "-lm"] if first else [theirs, "-lm", ours]
    program = _link(source, [*flags, *ordered], tmp_path)
    done([program])
    assert " _int_malloc\n" not in done(["nm", program])


def test_beside_another_malloc(
    installed: Installed, objects: dict[str, Path], tmp_path: Path
) -> None:
    libs = [f"-L{installed.libraries}", "-lhakmem-names"]
    done([_link("beside.c", [objects["beside.c"], *libs], tmp_path)])


def test_names_for_others(installed: Installed) -> None:
    """Whatever form is taken, it defines what the header and malloc's family say."""
    shared = done(["nm", "-D", "--defined-only", installed.libraries / "libhakmem.so"])
    whole = done(["nm", "-g", "--defined-only", installed.libraries / "hakmem.o"])
    alone = done(["nm", "-g", "--defined-only", installed.libraries / "libhakmem-names.a"])
    for listed in shared, whole:
        found = {line.split()[-1] for line in listed.splitlines() if len(line.split()) == 3}
        assert names.required() <= found - names.OF_COMPILERS <= names.allowed()
    found = {line.split()[-1] for line in alone.splitlines() if len(line.split()) == 3}
    assert found == names.declared()


def test_versions_of_the_shared_library(installed: Installed) -> None:
    link = installed.libraries / "libhakmem.so"
    version = (HERE.parents[1] / "CMakeLists.txt").read_text().split("VERSION ")[2].split()[0]
    assert link.readlink() == Path("libhakmem.so.0")
    assert (installed.libraries / link.readlink()).readlink() == Path(f"libhakmem.so.{version}")
    assert "[libhakmem.so.0]" in done(["readelf", "-d", link])
    assert installed.pkg_config("--modversion") == [version]
