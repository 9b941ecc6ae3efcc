"""`hakmem bench`, `compare`, `replay` and `tune` install the libraries that they need, if they may,
or say what to do: after what is wrong with their arguments, and before they begin with anything."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

from hakmem import extras
from tests.ran import ran

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "hakmem"


def test_both_lists_are_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *project["optional-dependencies"]["bench"]]
    assert extras.REQUIREMENTS.read_text().split() == sorted(listed)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has pyelftools, as hakmem is installed with, and nothing else."""
    return made_bare(tmp_path_factory.mktemp("python") / "bare")


def made_bare(made: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    (site,) = made.glob("lib/python*/site-packages")
    import elftools

    (site / "elftools").symlink_to(Path(elftools.__file__).parent)
    return made / "bin" / "python"


def compare(python: Path, library: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(python, library, *COMPARE, **environment)


COMPARE = ("compare", "glibc", "hakmem", "--", "true")


def run(
    python: Path, library: Path, *words: str | Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    front = ROOT / "command" / "hakmem.in"  # a script, if not one that runs
    return ran(python, "-E", PACKAGE, front, library, *words, env={**os.environ, **environment})


RECORDING = b"hakmem recording 1\n"


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("replay", "none"), 2, "none: No such file or directory"),
        (("replay", "none", "text"), 2, "none: No such file or directory"),
        (("replay", "text"), 1, "text: not a recording of hakmem"),
        (("replay", "--with", "hackmem", "recording"), 2, "nothing is called hackmem"),
        (("replay", "--with", "mine=none.so", "recording"), 2, "no library at none.so"),
        (("replay", "-o", "a.txt", "recording"), 2, "expected a name that ends in .html"),
        (("replay", "-o", "none/a.html", "recording"), 5, "none: no such folder"),
        (("replay", "--rounds", "x", "recording"), 2, "expected a whole number"),
        (("tune",), 2, "expected a program after --"),
        (("tune", "--", "none"), 2, "none: no such program"),
        (("tune", "--cd", "none", "--", "true"), 2, "none: there is no such folder"),
        (("tune", "--stdin", "none", "--", "true"), 2, "none: cannot be read"),
        (("tune", "--with", "hackmem", "--", "true"), 2, "nothing is called hackmem"),
        (("tune", "--measures", "none", "--", "true"), 2, "there is no 'none'"),
        (("tune", "--figure", "(", "--", "true"), 2, "--figure '('"),
        (("tune", "--recording", "none", "--", "true"), 2, "none: No such file or directory"),
        (("tune", "--recording", "text", "--", "true"), 1, "not a recording of hakmem"),
        (("tune", "--check", "text"), 2, "no file of 'hakmem tune'"),
        (("tune", "--base", "glibc", "--", "true"), 2, "expected hakmem"),
        (("tune", "--measures", "figure", "--", "true"), 2, "needs --figure"),
        (("tune", "--figure", "rate", "--", "true"), 2, "has no group"),
        (("tune", "--ready", "true", "--", "true"), 2, "--ready is for --load"),
        (("tune", "--least", "x", "--", "true"), 2, "--least x"),
        (("tune", "--check", "/none/a"), 2, "No such file"),
        (("tune", "-o", "none/a", "--", "true"), 2, "-o none/a: none: no such folder"),
        (("tune", "--json", "none/a", "--", "true"), 2, "none: no such folder"),
        (("compare", "glibc", "hakmem"), 2, "expected a program after --"),
        (("compare", "glibc", "hackmem", "--", "true"), 2, "nothing is called hackmem"),
        (("compare", "glibc", "hakmem+huge", "--", "true"), 2, "nothing is called hakmem+huge"),
        (("compare", "glibc", "x=/no/lib.so", "--", "true"), 2, "no library at /no/lib.so"),
        (("compare", "glibc", "hakmem", "--", "none"), 2, "none: no such program"),
        (("compare", "--html", "none/a", "glibc", "hakmem", "--", "true"), 2, "no such folder"),
        (("compare", "--json", ".", "glibc", "hakmem", "--", "true"), 2, "Is a directory"),
        (("compare", "--cd", "none", "glibc", "hakmem", "--", "true"), 2, "no such folder"),
        (("compare", "--precision", "2", "glibc", "hakmem", "--", "true"), 2, "a part of 1"),
        (("compare", "--measures", "x", "glibc", "hakmem", "--", "true"), 2, "there is no 'x'"),
        (("bench", "--only", "none"), 2, "there is no such group"),
        (("bench", "--rows", "none"), 2, "no row is called so"),
        (("bench", "--vs", "hackmem"), 2, "nothing is called hackmem"),
        (("bench", "--lib", "mine=none.so"), 2, "no library at none.so"),
        (("bench", "--scale", "0"), 2, "expected a factor above 0"),
        (("bench", "--quick", "--full"), 2, "exclude each other"),
        (("bench", "--resume", "none"), 2, "none holds no session"),
        (("bench", "--resume"), 2, "name the folder"),
        (("bench", "--rounds", "0"), 2, "--rounds"),
        (("bench", "none"), 2, "--resume"),
        (("bench", "--none"), 2, "--none"),
        (("bench", "report", "none"), 2, "report none: No such file or directory"),
        (("bench", "report", "text"), 2, "report text: not results"),
    ],
)
def test_arguments_come_first(
    bare: Path,
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    status: int,
    says: str,
) -> None:
    """Nothing that they need is there, and nothing is said of it."""
    (tmp_path / "text").write_text("text\n")
    (tmp_path / "recording").write_bytes(RECORDING)
    monkeypatch.chdir(tmp_path)
    done = run(bare, library, *words, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (done.returncode, done.stdout) == (status, "") and says in done.stderr, done
    assert extras.PERMISSION not in done.stderr and "Traceback" not in done.stderr
    assert all(line.startswith(f"hakmem {words[0]}") for line in done.stderr.splitlines())
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    "words",
    [("replay", "recording"), ("tune", "--", "true"), COMPARE, ("bench", "--rows", "pair-64")],
)
def test_it_asks_before_it_installs(
    bare: Path,
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    """Where there is no terminal it says what permits it."""
    (tmp_path / "recording").write_bytes(RECORDING)
    monkeypatch.chdir(tmp_path)
    cache = tmp_path / "cache"
    done = run(bare, library, *words, XDG_CACHE_HOME=str(cache))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"hakmem {words[0]}: {bare} has no module ")
    assert "Set HAKMEM_INSTALL=yes" in done.stderr and "242 MB" in done.stderr
    assert f"into {cache}/hakmem/python-" in done.stderr and done.stderr.count("\n") == 1
    assert not cache.exists()


@pytest.mark.parametrize(("answer", "installs"), [("n", False), ("", False), ("y", True)])
def test_it_asks_at_a_terminal(
    bare: Path, library: Path, tmp_path: Path, answer: str, installs: bool
) -> None:
    terminal, other = pty.openpty()
    unreachable = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0"}
    with subprocess.Popen(
        [bare, "-E", PACKAGE, "hakmem", library, *COMPARE],
        env={**os.environ, **unreachable, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        stdin=other,
        stdout=subprocess.DEVNULL,
        stderr=other,
    ) as asking:
        os.close(other)
        os.write(terminal, f"{answer}\n".encode())
        said = b""
        with suppress(OSError):  # EIO at its end
            while more := os.read(terminal, 4096):
                said += more
        assert asking.wait(300) == 2
    os.close(terminal)
    text = said.decode()
    assert "242 MB" in text and "Install? [y/N]" in text
    assert ("pip failed" in text) == installs
    assert ("nothing is installed" in text) != installs


def test_a_yes_is_remembered(bare: Path, library: Path, tmp_path: Path) -> None:
    """The cache has what somebody permitted, for another version of Python, say."""
    cache = tmp_path / "cache" / "hakmem"
    cache.mkdir(parents=True)
    (cache / "install-permitted").touch()
    unreachable = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0"}
    done = compare(bare, library, XDG_CACHE_HOME=str(cache.parent), **unreachable)
    assert "pip failed" in done.stderr and extras.PERMISSION not in done.stderr


@pytest.fixture(scope="module")
def without_altair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has all but what pages with plots need, as of a distribution's packages."""
    bare = made_bare(tmp_path_factory.mktemp("python") / "without")
    (site,) = bare.parents[1].glob("lib/python*/site-packages")
    import numpy

    for one in Path(numpy.__file__).parents[1].iterdir():
        if not one.name.startswith(("altair", "elftools")):
            (site / one.name).symlink_to(one)
    return bare


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "-o", "a.html", "recording"),
        ("compare", "--html", "a.html", "glibc", "hakmem", "--", "touch", "began"),
        ("bench", "--rows", "pair-64", "--rounds", "1", "--out", "began"),
    ],
)
def test_what_the_output_needs_is_needed_first(
    without_altair: Path,
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    (tmp_path / "recording").write_bytes(RECORDING)
    monkeypatch.chdir(tmp_path)
    done = run(without_altair, library, *words, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "has no module altair. Set HAKMEM_INSTALL=yes" in done.stderr
    assert not (tmp_path / "began").exists()


def test_no_index_is_told_and_nothing_is_left(bare: Path, library: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    permitted = {extras.PERMISSION: "yes"}
    unreachable = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0"}
    done = compare(bare, library, XDG_CACHE_HOME=str(cache), **permitted, **unreachable)
    assert done.returncode == 2, done.stderr
    assert "hakmem: installing" in done.stderr
    assert "pip failed" in done.stderr and "try again" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((cache / "hakmem").iterdir()) == []


def test_a_cache_that_can_not_be_made_is_told(bare: Path, library: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    permitted = {extras.PERMISSION: "yes"}
    done = compare(bare, library, XDG_CACHE_HOME=str(tmp_path / "file"), **permitted)
    assert done.returncode == 2, done.stderr
    assert "Not a directory; set XDG_CACHE_HOME" in done.stderr


def test_an_environment_that_lacks_a_module_is_made_anew(library: Path, tmp_path: Path) -> None:
    version = f"python-{sys.version_info.major}.{sys.version_info.minor}"
    home = tmp_path / "cache" / "hakmem" / version
    home.parent.mkdir(parents=True)
    done = compare(made_bare(home), library, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 2, done.stderr
    assert "is removed: try once more" in done.stderr
    assert not home.exists()


@pytest.mark.parametrize(
    "words",
    [("bench", "--quick"), ("bench", "--list"), ("compare", "glibc", "hakmem", "--", "true")],
)
def test_without_the_benchmark_system(
    words: tuple[str, ...], library: Path, tmp_path: Path
) -> None:
    """An installation may leave it out; all else works, and these say how to get it."""
    package = tmp_path / "share" / "hakmem"
    shutil.copytree(PACKAGE, package)
    start = [sys.executable, "-E", str(package), "hakmem", str(library)]
    done = ran(*start, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"hakmem {words[0]}: its package hakmem_yardstick is not installed"
    )
    assert "cmake --install" in done.stderr and done.stderr.count("\n") == 1
    version = ran(*start, "--version")
    assert version.returncode == 0 and version.stdout.startswith("hakmem ")
