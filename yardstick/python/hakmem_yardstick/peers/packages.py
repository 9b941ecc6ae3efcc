"""Libraries of the distribution: where they lie, and Debian's packages unpacked without root."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from hakmem.folders import Folder
from hakmem_yardstick.estimate import Preparation
from hakmem_yardstick.model import Allocator, Kind
from hakmem_yardstick.peers.cache import Say, Unobtainable, call, place
from hakmem_yardstick.peers.catalogue import ARCHITECTURE, Package

Step = Callable[[Package, Path, Say], Allocator]

_ROOT = Path("/")
_FOLDERS = ("usr/local/lib", "usr/lib/{machine}-linux-gnu", "usr/lib64", "usr/lib", "lib")
_PATIENCE = 120  # seconds, for a package to come
_FETCH_SECONDS = 10.0  # that it usually takes, about


def find(package: Package, cache: Path, say: Say) -> Allocator:
    """What is installed, or else Debian's package unpacked in the cache; the other way round for
    one that shall be fresh. Raises Unobtainable."""
    steps: list[Step] = [installed, _unpacked, _downloaded]
    if package.fresh:
        steps.append(steps.pop(0))
    whys = []
    for step in steps:
        try:
            return step(package, cache, say)
        except Unobtainable as error:
            whys.append(str(error))
    raise Unobtainable(f"{', and '.join(filter(None, whys))}; install {package.debian} or its like")


def preparation(package: Package, cache: Path) -> Preparation | None:
    """What `find` has yet to do."""
    unpacked = _in(cache / "packages" / package.debian, package) is not None
    if unpacked or (not package.fresh and _in(_ROOT, package) is not None):
        return None
    return Preparation(f"downloading {package.name}", _FETCH_SECONDS)


def installed(package: Package, _cache: Path = _ROOT, _say: Say = print) -> Allocator:
    """Raises Unobtainable."""
    library = _in(_ROOT, package)
    if library is None:
        raise Unobtainable("not installed")
    origin = _owner(library) or f"the system's {library}"
    note = package.old if package.debian not in origin else ""
    return Allocator(package.name, Kind.PEER, library, _upstream(origin), origin, note)


def _unpacked(package: Package, cache: Path, _say: Say) -> Allocator:
    folder = cache / "packages" / package.debian
    library = _in(folder, package)
    if library is None:
        raise Unobtainable("")  # no reason by itself: it will be downloaded
    origin = f"Debian {package.debian} {(folder / 'version').read_text().strip()}"
    return Allocator(package.name, Kind.PEER, library, _upstream(origin), origin)


def _downloaded(package: Package, cache: Path, say: Say) -> Allocator:
    folder = cache / "packages" / package.debian
    say(f"{package.name}: downloading Debian's {package.debian}")
    _unpack(package.debian, folder)
    if _in(folder, package) is None:
        raise Unobtainable(f"{package.debian} has no {' or '.join(package.files)}")
    return _unpacked(package, cache, say)


def _upstream(origin: str) -> str:
    """The authors' part of a Debian version: 1:14.0.6-12 is 14.0.6. Empty for what is none."""
    match = re.fullmatch(r"Debian \S+ (?:\d+:)?([\d.]+).*", origin)
    return match[1] if match else ""


def _in(root: Path, package: Package) -> Path | None:
    machine = os.uname().machine
    for pattern in package.files:
        name = pattern.replace(ARCHITECTURE, machine)
        if "/" in name:
            found = sorted(root.glob(name), key=_by_number)
            if found:
                return found[-1].resolve()
            continue
        folders = [root / folder.replace(ARCHITECTURE, machine) for folder in _FOLDERS]
        for folder in folders:
            if (folder / name).is_file():
                return (folder / name).resolve()
        if root == _ROOT and (listed := _by_loader(name)):
            return listed
    return None


def _by_number(path: Path) -> list[int]:
    """So that version 19 comes after 9."""
    return [int(digits) for digits in re.findall(r"\d+", str(path))]


def _by_loader(name: str) -> Path | None:
    """Where the loader's own table has it: distributions differ in their folders."""
    ldconfig = shutil.which("ldconfig", path=f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin")
    if ldconfig is None:
        return None
    table = subprocess.run([ldconfig, "-p"], capture_output=True, text=True).stdout
    for line in table.splitlines():
        left, arrow, path = line.partition(" => ")
        is_native = "x86-64" in left if os.uname().machine == "x86_64" else True
        if arrow and left.split()[0] == name and is_native and Path(path).is_file():
            return Path(path).resolve()
    return None


def _owner(library: Path) -> str | None:
    """The installed Debian package that a library belongs to, and its version."""
    if shutil.which("dpkg-query") is None:
        return None
    for path in (library, Path(str(library).removeprefix("/usr"))):
        search = subprocess.run(
            ["dpkg-query", "--search", str(path)], capture_output=True, text=True
        )
        if search.returncode == 0:
            owner = search.stdout.split(": ")[0].split(",")[0]
            show = ["dpkg-query", "--show", "--showformat", "${Package} ${Version}", owner]
            return "Debian " + subprocess.run(show, capture_output=True, text=True).stdout
    return None


def _unpack(package: str, to: Path) -> None:
    """Downloads a package and unpacks it; nothing is installed, so no root is needed."""
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise Unobtainable(f"{package} can't be downloaded: there is no {tool} here")
    to.parent.mkdir(parents=True, exist_ok=True)
    with Folder("unpack-", to.parent) as folder:
        call(["apt-get", "download", "-q", package], folder, _PATIENCE)
        files = list(folder.glob("*.deb"))
        if len(files) != 1:
            raise Unobtainable(f"apt-get downloaded {len(files)} files for {package}")
        made = folder / "made"
        call(["dpkg-deb", "--extract", str(files[0]), str(made)], folder, _PATIENCE)
        version = call(["dpkg-deb", "--field", str(files[0]), "Version"], folder, _PATIENCE)
        (made / "version").write_text(version)
        place(made, to)
