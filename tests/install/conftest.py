"""Where hakmem is installed for these tests: as `cmake --install` lays it out, or from the Debian
packages."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.install.tree import SOURCE, Installed, done


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", type=Path, help="the build tree")
    parser.addoption("--of", choices=["prefix", "packages"], help="what is looked at")


@pytest.fixture(scope="session")
def build(request: pytest.FixtureRequest) -> Path:
    path: Path = request.config.getoption("--build")
    return path.resolve(strict=True)


@pytest.fixture(scope="session")
def installed(
    request: pytest.FixtureRequest, build: Path, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    root = tmp_path_factory.mktemp("root")
    if request.config.getoption("--of") == "prefix":
        # Installed for one place and then moved to another: nothing may know the first.
        done(["cmake", "--install", build, "--prefix", "/opt/first"], DESTDIR=str(root))
        shutil.move(root / "opt" / "first", root / "moved")
        return Installed(root / "moved")
    done([SOURCE / "tools" / "deb", "--without-lintian"], timeout=900)
    packages = [p for p in (SOURCE / "build" / "deb").glob("*.deb") if "dbgsym" not in p.name]
    assert len(packages) == 3, packages
    for package in packages:
        done(["dpkg-deb", "--extract", package, root])
    return Installed(root / "usr")
