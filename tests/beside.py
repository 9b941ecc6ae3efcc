"""Other allocators on this machine, to compare hakmem's figures with."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

OURS, SYSTEM = "hakmem", "glibc"
# What a Debian system has as libraries.
_FILES = {
    "mimalloc2": "libmimalloc.so.2",
    "jemalloc": "libjemalloc.so.2",
    "tcmalloc": "libtcmalloc_minimal.so.4",
}
OTHERS = (SYSTEM, *_FILES)
_FOLDERS = ("/usr/local/lib", f"/usr/lib/{os.uname().machine}-linux-gnu", "/usr/lib64", "/usr/lib")
_CONFIGURING = (
    *("HAKMEM_", "LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_", "MIMALLOC_", "JE_MALLOC_", "TCMALLOC_"),
)


@dataclass(frozen=True)
class Allocator:
    name: str
    library: Path | None
    """To preload; None for the system's."""

    def environment(self) -> dict[str, str]:
        """Ours, with it and without what would configure an allocator."""
        kept = {name: v for name, v in os.environ.items() if not name.startswith(_CONFIGURING)}
        return kept | ({"LD_PRELOAD": str(self.library)} if self.library is not None else {})


def installed(names: Iterable[str]) -> tuple[list[Allocator], list[str]]:
    """Those of the names that are here, and the others."""
    found: list[Allocator] = []
    missing: list[str] = []
    for name in names:
        places = [Path(folder, _FILES[name]) for folder in _FOLDERS] if name in _FILES else []
        library = next((place.resolve() for place in places if place.is_file()), None)
        if library is None and name != SYSTEM:
            missing.append(name)
        else:
            found.append(Allocator(name, library))
    return found, missing
