"""The allocators a row can run on: chosen by name, found or built, proved to be active.

NAME                     one of the catalogue: glibc, mimalloc3, ...
NAME=PATH                in `libs`: any other library, or another build of one with a name
NAME+VAR=VALUE           with a setting; more may follow. For hakmem VAR is an option's name
"""

from __future__ import annotations

import difflib
import os
import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from hakmem.extras import PERMISSION
from hakmem.variants import split
from hakmem_yardstick.estimate import Preparation
from hakmem_yardstick.model import OURS, SYSTEM, Allocator, Kind, Missing
from hakmem_yardstick.peers import cache, crates, packages
from hakmem_yardstick.peers.cache import Say, Unobtainable
from hakmem_yardstick.peers.catalogue import CRATES, MODES, PACKAGES, PEERS
from hakmem_yardstick.peers.proof import prove

# What a Debian system has as libraries beside ours: no more is needed to run on them.
FOUR = (SYSTEM, "mimalloc2", "jemalloc", "tcmalloc")

_PACKAGES = {package.name: package for package in PACKAGES}
_CRATES = {crate.name: crate for crate in CRATES}


class UnknownAllocator(Exception):
    """The command line names what there is not; the message says what there is."""


def names() -> list[str]:
    """All that can be chosen."""
    return [*PEERS, OURS]


def choose(
    build: Path,
    libs: Sequence[str] = (),
    vs: Sequence[str] = (),
    mode: str = "standard",
    *,
    say: Say = lambda _: None,
) -> tuple[list[Allocator], list[Missing]]:
    """Ours and those to compare it with: the names `vs`, else the mode's, and all of `libs`.

    `build` holds our library. Takes minutes where something must be built; `say` is called with a
    line for each that takes time.
    """
    found, missing = pick(build, libs, _wanted(_given(libs), vs, mode), say=say)
    return sorted(found, key=lambda a: a.kind is Kind.OURS), missing


def _wanted(given: dict[str, Path], vs: Sequence[str], mode: str) -> list[str]:
    extra = [name for name in given if name not in names()]
    if vs:
        wanted = [*vs, *(name for name in extra if name not in vs)]
    else:
        wanted = [*MODES[mode], *extra, *(name for name in given if name in PEERS)]
    return wanted if OURS in wanted else [*wanted, OURS]


def preparations(
    build: Path, libs: Sequence[str] = (), vs: Sequence[str] = (), mode: str = "standard"
) -> list[Preparation]:
    """What `choose` will have to fetch and build, which need not succeed."""
    given, kept = _given(libs), cache.folder(build)
    bases = dict.fromkeys(split(name)[0] for name in _wanted(given, vs, mode))
    found: list[Preparation | None] = []
    for base in bases:
        _known(base, base, given)
        if base in _CRATES and base not in given:
            found.append(crates.preparation(_CRATES[base], kept))
        if base in _PACKAGES and base not in given:
            found.append(packages.preparation(_PACKAGES[base], kept))
    return [one for one in found if one is not None]


def pick(
    build: Path,
    libs: Sequence[str],
    wanted: Iterable[str],
    *,
    say: Say = lambda _: None,
) -> tuple[list[Allocator], list[Missing]]:
    """Those named and no others, in the order of their names."""
    parsed = {name: split(name) for name in wanted}  # each once
    known(libs, parsed)
    given = _given(libs)
    found: list[Allocator] = []
    missing: list[Missing] = []
    bare: dict[str, Allocator] = {}
    for name, (base, settings) in parsed.items():
        try:
            if base not in bare:
                bare[base] = _get(base, build, given, say)
            allocator = replace(
                bare[base],
                name=name,
                environment={**bare[base].environment, **_variables(base, settings)},
            )
            found.append(_proved(allocator))
        except Unobtainable as error:
            missing.append(Missing(name, str(error)))
    return found, missing


def known(libs: Sequence[str], wanted: Iterable[str]) -> None:
    """Raises UnknownAllocator."""
    given = _given(libs)
    for name in wanted:
        _known(name, split(name)[0], given)


def installed(build: Path, wanted: Iterable[str]) -> tuple[list[Allocator], list[str]]:
    """Those of the names that are here already; nothing is fetched, built or proved."""
    found: list[Allocator] = []
    missing: list[str] = []
    for name in wanted:
        _known(name, name, {})
        try:
            found.append(_in_place(name, build) or packages.installed(_PACKAGES[name]))
        except (KeyError, Unobtainable):
            missing.append(name)
    return found, missing


def environment(allocator: Allocator) -> dict[str, str]:
    """Ours, less all that would configure an allocator: a yardstick takes settings only from the
    allocator's name."""
    kept = {name: v for name, v in os.environ.items() if not name.startswith(_CONFIGURING)}
    kept.update(allocator.environment)
    if allocator.library is not None:
        kept["LD_PRELOAD"] = str(allocator.library)
    return kept


_CONFIGURING = (
    "HAKMEM_",
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
    "MALLOC_",
    "MIMALLOC_",
    "JEMALLOC_",
    "JE_MALLOC_",
    "_RJEM_MALLOC_",
    "TCMALLOC_",
    "PERFTOOLS_",
    "HEAPPROFILE",
    "HEAPCHECK",
    "SCUDO_",
    "SNMALLOC_",
)


_THE_COMMAND_S_OWN = ("HAKMEM_COMPLAIN", PERMISSION)


def configured_outside() -> list[str]:
    """Variables set around us that `environment` leaves out, to be told to whoever set them."""
    found = (name for name, value in os.environ.items() if value and name.startswith(_CONFIGURING))
    return sorted(name for name in found if name not in _THE_COMMAND_S_OWN)


def _given(libs: Sequence[str]) -> dict[str, Path]:
    """NAME=PATH of the command line; a bare PATH is ours."""
    given: dict[str, Path] = {}
    for text in libs:
        name, separator, path = text.partition("=")
        if not separator:
            name, path = OURS, text
        if not re.fullmatch(r"[\w.-]+", name):
            raise UnknownAllocator(f"{name!r} can't be a name: letters, digits, '-', '_' and '.'")
        if name == SYSTEM:
            raise UnknownAllocator(f"{SYSTEM} is the C library's own malloc: it has no library")
        if not Path(path).is_file():
            raise UnknownAllocator(f"no library at {path}")
        given[name] = Path(path).resolve()
    return given


def _known(name: str, base: str, given: dict[str, Path]) -> None:
    everything = [*names(), *(other for other in given if other not in names())]
    if base in everything:
        return
    near = difflib.get_close_matches(base, everything, 2)
    meant = f" (meant: {' or '.join(near)}?)" if near else ""
    raise UnknownAllocator(
        f"nothing is called {base}{meant}; there is {', '.join(everything)}, "
        "each also as NAME+VAR=VALUE; any other with --lib NAME=PATH"
    )


def _variables(base: str, settings: dict[str, str]) -> dict[str, str]:
    if base != OURS:
        return settings
    return {
        f"HAKMEM_{name.removeprefix('HAKMEM_').upper()}": value for name, value in settings.items()
    }


def _get(base: str, build: Path, given: dict[str, Path], say: Say) -> Allocator:
    """As it is without settings, not yet proved. Raises Unobtainable."""
    kept = cache.folder(build)
    kind = Kind.OURS if base == OURS else Kind.PEER
    if base in given:
        return Allocator(base, kind, given[base], origin=str(given[base]))
    here = _in_place(base, build)
    if here is not None:
        return here
    if base in _CRATES:
        crate = _CRATES[base]
        library, origin = crates.find(crate, kept, say)
        return Allocator(
            base, kind, library, crate.version, origin, crate.note, dict(crate.environment)
        )
    return packages.find(_PACKAGES[base], kept, say)


def _in_place(base: str, build: Path) -> Allocator | None:
    """The C library, and ours. None: a peer from elsewhere."""
    if base == SYSTEM:
        return Allocator(SYSTEM, Kind.PEER, None, platform.libc_ver()[1], "the system's")
    if base != OURS:
        return None
    library = build / "libhakmem.so"
    if not library.is_file():
        raise Unobtainable(f"not built: there is no {library}")
    return Allocator(base, Kind.OURS, library.resolve(), origin="this project")


def _proved(allocator: Allocator) -> Allocator:
    """With its own word for its version, where it has one. Raises Unobtainable."""
    proof = prove(allocator, environment(allocator))
    if proof.failure:
        raise Unobtainable(proof.failure)
    return replace(allocator, version=allocator.version or proof.version)
