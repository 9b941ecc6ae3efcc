"""The wheel, made from the source archive or taken from a release, and installed into a new
environment."""

import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.install.tree import SOURCE, check_commit, check_sheet, done, one
from tests.ran import ran

NEEDED_TO_BUILD = {
    *("CMakeLists.txt", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"),
    *("cmake", "command", "include", "look", "python", "replay", "share", "src", "yardstick"),
}
IN_FORCE = """
import os
maps = open("/proc/self/maps").read()
(library,) = {line.split(maxsplit=5)[5] for line in maps.splitlines() if "libhakmem" in line}
print(library, os.environ["HAKMEM_KEEP_BYTES"])
"""


@pytest.fixture(scope="session")
def wheel(made: Path | None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the tools of the environment that runs the tests, without the network."""
    if made is not None:
        return one(made, "*.whl")
    folder = tmp_path_factory.mktemp("wheel")
    pack = "import os, sys, scikit_build_core.build as b; print(b.build_sdist(sys.argv[1]))"
    done([sys.executable, "-c", pack, folder], cwd=SOURCE)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        top = {name.split("/")[1] for name in tar.getnames() if "/" in name}
    assert top <= NEEDED_TO_BUILD
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-build-isolation",
        "--no-deps",
        "--no-index",
    ]
    done([*build, "--wheel-dir", folder, archive], timeout=600)
    return one(folder, "*.whl")


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _environment(tmp_path_factory.mktemp("fresh") / "venv", wheel)


def _environment(folder: Path, wheel: Path) -> Path:
    """Fresh, but for what the command depends on: those parts are seen from the tests' own."""
    venv.create(folder, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
    done([*pip, "install", "--no-index", "--no-deps", wheel])
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "tests.pth").write_text(sysconfig.get_path("platlib") + "\n")
    return folder


def test_is_for_every_python_of_this_system(wheel: Path) -> None:
    assert wheel.name.split("-", 2)[2].startswith("py3-none-linux_")


def _files_below(folder: Path) -> list[str]:
    found = (p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    return [str(path) for path in found if "__pycache__" not in path.parts]


def test_holds_what_is_needed_and_nothing_else(wheel: Path) -> None:
    files = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    modules = {f"hakmem/{name}" for name in _files_below(SOURCE / "python" / "hakmem")}
    modules |= {"hakmem/options.def", "hakmem/commit"}
    yardstick = SOURCE / "yardstick"
    modules |= {
        f"hakmem_yardstick/{n}" for n in _files_below(yardstick / "python/hakmem_yardstick")
    }
    modules |= {f"hakmem_yardstick/sources/{name}" for name in _files_below(yardstick / "suite")}
    data = {name.split(".data/")[1] for name in files - modules}
    assert modules < files
    wanted = {
        "data/lib/libhakmem.so.0",
        "data/lib/hakmem/look",
        "data/lib/hakmem/replay",
        "scripts/hakmem",
    }
    assert wanted <= data
    assert {name for name in data - wanted if not name.startswith("data/share/")} == set()
    assert not any("/man3/" in name for name in data), "pages of a header that is not there"


@pytest.mark.parametrize("start", [["bin/hakmem"], ["bin/python", "-m", "hakmem"]])
def test_runs_python_on_hakmem(start: list[str], environment: Path) -> None:
    words = ["run", "-o", "keep_bytes=16M", "python", "-c", IN_FORCE]
    program = [environment / start[0], *start[1:], *words]
    printed = done(program, PATH=f"{environment}/bin:/usr/bin:/bin")
    assert printed == f"{environment}/lib/libhakmem.so.0 16M\n"


def test_the_python_part_starts(environment: Path) -> None:
    for start in ["bin/hakmem"], ["bin/python", "-m", "hakmem"]:
        assert "usage: hakmem" in done([environment / start[0], *start[1:], "--help"])


def test_pytest_finds_the_plug_in(environment: Path, tmp_path: Path) -> None:
    marked = (
        "import pytest\n@pytest.mark.limit_memory('1 MB')\ndef test_it():\n    bytes(2 << 20)\n"
    )
    (tmp_path / "test_it.py").write_text(marked)
    words = (environment / "bin/python", "-m", "pytest", tmp_path)
    ended = ran(environment / "bin/hakmem", "run", *words, cwd=tmp_path)
    assert "more than limit_memory permits (1.0 MiB)" in ended.stdout, ended


def test_reads_a_process(environment: Path) -> None:
    check_sheet(environment / "bin/hakmem", PATH=f"{environment}/bin:/usr/bin:/bin")


def test_names_its_commit(environment: Path, made: Path | None) -> None:
    check_commit(done([environment / "bin/hakmem", "--version"]), made)


def test_says_that_a_path_with_a_space_cannot_be_preloaded(wheel: Path, tmp_path: Path) -> None:
    folder = _environment(tmp_path / "with space", wheel)
    ended = ran(folder / "bin/hakmem", "run", "ls")
    assert ended.returncode == 125
    assert "space" in ended.stderr and ended.stderr.count("\n") == 1


def test_uninstalled_without_a_trace(wheel: Path, tmp_path: Path) -> None:
    folder = _environment(tmp_path / "venv", wheel)
    done([folder / "bin" / "python", "-m", "hakmem", "--help"])
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
    done([*pip, "uninstall", "--yes", "hakmem"])
    assert [p for p in folder.rglob("*") if "hakmem" in p.name] == []
