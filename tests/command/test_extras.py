"""`hakmem bench` and `compare` install the libraries that they need, or say what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hakmem import extras

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "hakmem"


def test_both_lists_are_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *project["optional-dependencies"]["bench"]]
    assert extras.REQUIREMENTS.read_text().split() == sorted(listed)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A Python that has pyelftools, as hakmem is installed with, and nothing else."""
    made = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    (site,) = made.glob("lib/python*/site-packages")
    import elftools

    (site / "elftools").symlink_to(Path(elftools.__file__).parent)
    return made / "bin" / "python"


def compare(python: Path, library: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    words = [str(python), "-E", str(PACKAGE), "hakmem", str(library)]
    words += ["compare", "glibc", "hakmem", "--", "true"]
    given = {**os.environ, **environment}
    return subprocess.run(words, env=given, capture_output=True, text=True, timeout=300)


def test_no_index_is_told_and_nothing_is_left(bare: Path, library: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    unreachable = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0"}
    done = compare(bare, library, XDG_CACHE_HOME=str(cache), **unreachable)
    assert done.returncode == 2, done.stderr
    assert "installing what is needed into" in done.stderr
    assert "pip failed" in done.stderr and "try again" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((cache / "hakmem").iterdir()) == []


def test_a_cache_that_can_not_be_made_is_told(bare: Path, library: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = compare(bare, library, XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.returncode == 2, done.stderr
    assert "Not a directory; set XDG_CACHE_HOME" in done.stderr


def test_an_environment_that_lacks_a_module_is_made_anew(
    bare: Path, library: Path, tmp_path: Path
) -> None:
    version = f"python-{sys.version_info.major}.{sys.version_info.minor}"
    home = tmp_path / "cache" / "hakmem" / version
    home.parent.mkdir(parents=True)
    bare.parent.parent.rename(home)
    done = compare(home / "bin" / "python", library, XDG_CACHE_HOME=str(tmp_path / "cache"))
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
    done = subprocess.run([*start, *words], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"hakmem {words[0]}: its package hakmem_yardstick is not installed"
    )
    assert "cmake --install" in done.stderr and done.stderr.count("\n") == 1
    version = subprocess.run([*start, "--version"], capture_output=True, text=True)
    assert version.returncode == 0 and version.stdout.startswith("hakmem ")
