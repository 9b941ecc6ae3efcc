"""Where hakmem is installed for these tests: as `cmake --install` lays it out, or from the Debian
packages; made here, or taken from a release (--made)."""

import shutil
from pathlib import Path

import pytest

from tests.install.tree import SOURCE, Installed, done, one
from tools.dist import archives


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--of", choices=["prefix", "packages"], help="what is looked at")
    parser.addoption("--made", type=Path, help="a release, as `make dist` makes it")


@pytest.fixture(scope="session")
def made(request: pytest.FixtureRequest) -> Path | None:
    path: Path | None = request.config.getoption("--made")
    return path and path.resolve(strict=True)


@pytest.fixture(scope="session")
def installed(
    request: pytest.FixtureRequest, made: Path | None, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    root = tmp_path_factory.mktemp("root")
    if request.config.getoption("--of") == "prefix":
        if made is not None:
            return Installed(archives.unpack(one(made, "*-linux-x86_64.tar.gz"), root / "unpacked"))
        # Installed for one place and then moved to another: nothing may know the first.
        build: Path = request.config.getoption("--build").resolve(strict=True)
        done(["cmake", "--install", build, "--prefix", "/opt/first"], DESTDIR=str(root))
        shutil.move(root / "opt" / "first", root / "moved")
        return Installed(root / "moved")
    if made is None:
        done([SOURCE / "tools" / "deb", "--without-lintian"], timeout=900)
    found = (made or SOURCE / "build" / "deb").glob("*.deb")
    packages = [package for package in found if "dbgsym" not in package.name]
    assert len(packages) == 4, packages
    for package in packages:
        done(["dpkg-deb", "--extract", package, root])
    return Installed(root / "usr")
