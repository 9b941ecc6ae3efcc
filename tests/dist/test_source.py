"""The source tarball has the same bytes from every clone, contains all that is committed, and is
enough to build."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.install.tree import done
from tools.dist import archives


@pytest.fixture(scope="module")
def head(clone: Path) -> str:
    return subprocess.check_output(["git", "-C", clone, "rev-parse", "HEAD"], text=True).strip()


@pytest.fixture(scope="module")
def tarball(clone: Path, head: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("source") / "hakmem.tar.gz"
    archives.source(clone, head, "hakmem-0", file)
    return file


def test_same_bytes_from_another_clone(
    clone: Path, head: str, tarball: Path, tmp_path: Path
) -> None:
    """Whose settings differ."""
    another = tmp_path / "another"
    done(["git", "clone", "--quiet", "--shared", "--no-checkout", clone, another])
    for setting in ("tar.umask=0077", "core.abbrev=7", "core.autocrlf=true"):
        done(["git", "-C", another, "config", *setting.split("=")])
    before = os.umask(0o077)
    try:
        archives.source(another, head, "hakmem-0", tmp_path / "again.tar.gz")
    finally:
        os.umask(before)
    assert (tmp_path / "again.tar.gz").read_bytes() == tarball.read_bytes()


def test_has_what_is_committed(clone: Path, head: str, tarball: Path) -> None:
    listed = done(["git", "-C", clone, "ls-tree", "-r", "-z", "--format=%(objectmode) %(path)", head])
    # Links (120000) are in it as links.
    committed = {
        f"hakmem-0/{entry[7:]}" for entry in listed.split("\0") if entry and entry[:6] != "120000"
    }
    held = dict(archives.members(tarball))
    assert set(held) == committed
    assert held.pop("hakmem-0/cmake/commit") == f"commit {head}\n".encode()
    for name, data in held.items():
        path = name.removeprefix("hakmem-0/")
        if path.startswith(("src/", "include/", "cmake/")):
            shown = subprocess.check_output(["git", "-C", clone, "show", f"{head}:{path}"])
            assert data == shown, path


def test_builds_what_it_lists(head: str, tarball: Path, tmp_path: Path) -> None:
    """As far as it goes without a compiler's work, which other tests do: a plan in which no file is
    missing, and the commit."""
    source = archives.unpack(tarball, tmp_path / "unpacked")
    build = tmp_path / "build"
    done(["cmake", "-G", "Ninja", "-S", source, "-B", build])
    plan = done(["ninja", "-C", build, "-n"])
    assert "libhakmem.so" in plan and "libhakmem.a" in plan
    done(["cmake", "--build", build, "--target", "hakmem_commit"])
    assert (build / "commit").read_text() == f"commit {head[:12]}\n"
