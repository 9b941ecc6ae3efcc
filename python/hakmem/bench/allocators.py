"""The allocators a row can run on, and where their libraries lie."""

import os
import sysconfig
from pathlib import Path

from hakmem.bench.model import OURS, SYSTEM, Allocator, Kind

_PEERS = {
    "mimalloc": "libmimalloc.so.2",
    "jemalloc": "libjemalloc.so.2",
    "tcmalloc": "libtcmalloc_minimal.so.4",
}
# What a Debian system can run beside ours, and the prototype's figures are compared with.
FOUR = (SYSTEM, *_PEERS)

_FLOORS = {"ring": "libfloor_ring.so", "nothing": "libfloor_nothing.so"}


class UnknownAllocator(Exception):
    pass


def _system_library(file_name: str) -> Path | None:
    folders = ["/usr/local/lib", "/usr/lib64", "/usr/lib"]
    multiarch = sysconfig.get_config_var("MULTIARCH")
    if multiarch:
        folders.insert(0, f"/usr/lib/{multiarch}")
    for folder in folders:
        path = Path(folder) / file_name
        if path.exists():
            return path
    return None


def _given(libs: list[str]) -> dict[str, Path]:
    """NAME=PATH of the command line; a bare PATH is ours."""
    given: dict[str, Path] = {}
    for text in libs:
        name, separator, path = text.partition("=")
        if not separator:
            name, path = OURS, text
        if not Path(path).is_file():
            raise UnknownAllocator(f"no library at {path}")
        given[name] = Path(path).resolve()
    return given


def choose(build: Path, libs: list[str], vs: list[str]) -> tuple[list[Allocator], list[str]]:
    """The allocators to run, in a fixed order, and the names of those not there.

    `build` holds our library and bench/ with the floors; `vs` names the peers
    and floors to run beside ours, all of them if empty.
    """
    given = _given(libs)
    found: list[Allocator] = [Allocator(SYSTEM, Kind.PEER, None)]
    missing: list[str] = []

    def add(name: str, kind: Kind, default: Path | None) -> None:
        path = given.pop(name, default)
        if path is not None and path.is_file():
            found.append(Allocator(name, kind, path.resolve()))
        else:
            missing.append(name)

    for name, file_name in _PEERS.items():
        add(name, Kind.PEER, _system_library(file_name))
    extra = [name for name in given if name != OURS and name not in _FLOORS]
    for name in extra:
        add(name, Kind.PEER, None)
    add(OURS, Kind.OURS, build / "libhakmem.so")
    for name, file_name in _FLOORS.items():
        add(name, Kind.FLOOR, build / "bench" / file_name)

    if vs:
        unknown = set(vs) - {a.name for a in found} - set(missing)
        if unknown:
            raise UnknownAllocator(f"--vs: nothing is called {', '.join(sorted(unknown))}")
        found = [a for a in found if a.name in vs or a.kind is Kind.OURS]
        missing = [name for name in missing if name in vs or name == OURS]
    return found, missing


_CONFIGURING = ("MALLOC_", "MIMALLOC_", "TCMALLOC_", "JEMALLOC_", "LD_PRELOAD", "GLIBC_TUNABLES")


def environment(allocator: Allocator) -> dict[str, str]:
    """Ours, less what would configure an allocator. HAKMEM_* stays: who sets it means it."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_CONFIGURING)}
    if allocator.library is not None:
        kept["LD_PRELOAD"] = str(allocator.library)
    return kept


def is_in_force(allocator: Allocator, reported: str) -> bool:
    """Whether the library that a child found malloc in is the one meant."""
    path = Path(reported)
    if allocator.library is None:
        return path.name.startswith(("libc.so", "libc-"))
    return path.exists() and path.samefile(allocator.library)
