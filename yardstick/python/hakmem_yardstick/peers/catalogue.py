"""Every peer by name, and for each that is built here the version that it is pinned to.

A baseline is repeated with these versions. If a version is raised, measure the baseline again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hakmem_yardstick.model import SYSTEM

ARCHITECTURE = "{machine}"
"""Stands for it in names of files: x86_64, aarch64."""


@dataclass(frozen=True)
class Package:
    """A library that distributions have; its version is theirs."""

    name: str
    debian: str
    """The package that has it, to be unpacked where it isn't installed."""
    files: tuple[str, ...]
    """Names or patterns of the library, in the loader's folders or by a path from the root."""
    fresh: bool = False
    """Debian's package comes before what is installed, which may be years older."""
    old: str = ""
    """Said of the library where it isn't from that package."""


@dataclass(frozen=True)
class Crate:
    """An allocator built here from the C or C++ sources that a Rust crate carries."""

    name: str
    version: str
    crate: str
    crate_version: str
    checksum: str
    """Of the crate, by which the registry's index knows it."""
    seconds: int
    """That building it takes on two cores, about."""
    clang: bool = False
    """Its authors build it with clang; done here where there is one."""
    note: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What its authors tell users to set."""


PACKAGES = (
    Package("mimalloc2", "libmimalloc2.0", ("libmimalloc.so.2", "libmimalloc.so.2.0")),
    Package("jemalloc", "libjemalloc2", ("libjemalloc.so.2",)),
    Package("tcmalloc", "libtcmalloc-minimal4", ("libtcmalloc_minimal.so.4",)),
    Package(
        "scudo",
        "libclang-rt-19-dev",
        (
            "usr/lib*/llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-{machine}.so",
            "usr/lib*/clang/*/lib/linux/libclang_rt.scudo_standalone-{machine}.so",
            "usr/lib*/clang/*/lib/{machine}-*/libclang_rt.scudo_standalone.so",
        ),
        fresh=True,
        old="older than LLVM 19, which could not be had",
    ),
)

# fmt: off
CRATES = (
    Crate("mimalloc3", "3.3.2", "libmimalloc-sys", "0.1.49",
          "6a45a52f43e1c16f667ccfe4dd8c85b7f7c204fd5e3bf46c5b0db9a5c3c0b8e9", seconds=6),
    Crate("jemalloc-new", "5.3.1", "tikv-jemalloc-sys",
          "0.7.1+5.3.1-0-g81034ce1f1373e37dc865038e1bc8eeecf559ce8",
          "1a2825c78386b4ae0314074867860ba9577875de945f05992c38815cbec327f0", seconds=65),
    Crate("snmalloc", "0.7.6", "snmalloc-sys", "0.7.6",
          "f09c93c55f9a2b8dab75738a83c771231c5f408af65b8657433fe5bc93cc76cb", seconds=20),
    Crate("rpmalloc", "1.4.3+b097fd0", "rpmalloc-sys", "0.2.3+b097fd0",
          "8d4b7d5e225a53887ee57fcec492eaf114b8e290f7072d035adc6ddd6810b67b", seconds=5, clang=True,
          note="old: 1.4.3 and some commits, the newest crate there is"),
    Crate("hardened_malloc", "2026071503", "hardened-malloc-sys", "16.0.2026071503",
          "8a634cdd17eb2cea9e8ab0977f9b7401a5882db9fadb594d080bc67f230b6ec2", seconds=5,
          note="made to be safe, not fast: its default configuration"),
    Crate("tcmalloc-google", "of June 2025", "libtcmalloc-sys", "0.1.14",
          "33e204268a3b09862788a2894346c768b95b2cb29cba42c5e2bb9ea7f48fa317", seconds=120,
          note="its authors link it statically; preloaded it may be slower than it can be",
          # Without it the C library has registered with the kernel first, and tcmalloc falls back
          # from caches of each processor to those of each thread.
          environment={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}),
)
# fmt: on

PEERS = (
    SYSTEM,
    "mimalloc3",
    "jemalloc",
    "tcmalloc",
    "snmalloc",
    "rpmalloc",
    "mimalloc2",
    "jemalloc-new",
    "tcmalloc-google",
    "scudo",
    "hardened_malloc",
)
"""In the order of tables: what a quick run has, then a standard run, then a full one."""

MODES = {
    "quick": (SYSTEM, "mimalloc3", "tcmalloc"),
    "standard": (SYSTEM, "mimalloc3", "jemalloc", "tcmalloc", "snmalloc"),
    "full": PEERS,
}
