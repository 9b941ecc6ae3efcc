"""Runs the kinds of misuse on hakmem and on other allocators (tests/misuse/matrix.py).

Gets the others as `hakmem bench` does, and builds variants of three: mimalloc's secure builds, the
light configuration of hardened_malloc, and snmalloc with its checks.

  .venv/bin/python yardstick/tools/kinds.py --build build/release --out build/kinds
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "yardstick/python"))

from hakmem_yardstick.allocators import pick
from hakmem_yardstick.peers import cache, crates
from hakmem_yardstick.peers.catalogue import CRATES
from tests.misuse import matrix

PEERS = ["glibc", "scudo", "hardened_malloc", "mimalloc3", "jemalloc", "jemalloc-new", "snmalloc"]
VARIANTS = [
    # name, of which crate, what its recipe has, what it has instead
    ("hardened_malloc light", "hardened_malloc", "config/default.mk", "config/light.mk"),
    ("mimalloc3 secure", "mimalloc3", "-DNDEBUG", "-DNDEBUG -DMI_SECURE=4"),
    ("mimalloc3 secure, full", "mimalloc3", "-DNDEBUG", "-DNDEBUG -DMI_SECURE=5"),
    ("snmalloc checks", "snmalloc", "snmallocshim", "snmallocshim-checks"),
]
SCUDO_CHECKS = (
    "zero_contents=true:dealloc_type_mismatch=true:delete_size_mismatch=true:"
    "quarantine_size_kb=1024:thread_local_quarantine_size_kb=256:quarantine_max_chunk_size=65536"
)
# Freed memory goes back to the kernel as soon as hakmem can do that.
KEEPS_NOTHING = {"HAKMEM_KEEP_BYTES": "0"}
GLIBC_DEBUG = "libc_malloc_debug.so.0"


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def variant(
    build: Path, origins: list[str], name: str, of: str, old: str, new: str
) -> matrix.Allocator:
    crate = next(one for one in CRATES if one.name == of)
    recipe = (crates.RECIPES / of).read_text()
    if old not in recipe:
        raise SystemExit(f"the recipe of {of} has no {old}")
    own = replace(crate, name=name.replace(" ", "-").replace(",", ""))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / own.name).write_text(recipe.replace(old, new))
        library, origin = crates.find(own, cache.folder(build), say, Path(folder))
    origins.append(f"{name}: {crate.version}, {origin}, with {new} for {old}")
    shows = {"MIMALLOC_SHOW_ERRORS": "1"} if of == "mimalloc3" else {}
    return matrix.Allocator(name, library, shows)


def allocators(build: Path, origins: list[str]) -> list[matrix.Allocator]:
    """Of `origins`, a line each is added: the version, and where it is from."""
    found, missing = pick(build, [], PEERS, say=say)
    for lacking in missing:
        say(f"{lacking.name} is left out: {lacking.why}")
    all_of_them = []
    for peer in found:
        if peer.name == "hakmem":
            continue
        origins.append(f"{peer.name}: {peer.version}, {peer.origin}")
        all_of_them.append(matrix.Allocator(peer.name, peer.library, peer.environment))
        if peer.name == "glibc":
            tuned = {"GLIBC_TUNABLES": "glibc.malloc.check=3:glibc.malloc.perturb=165"}
            all_of_them.append(matrix.Allocator("glibc, check", Path(GLIBC_DEBUG), tuned))
            origins.append(f"glibc, check: {GLIBC_DEBUG} with {tuned}")
        if peer.name == "scudo":
            options = {"SCUDO_OPTIONS": SCUDO_CHECKS}
            all_of_them.append(matrix.Allocator("scudo, options", peer.library, options))
            origins.append(f"scudo, options: with {SCUDO_CHECKS}")
    return [*all_of_them, *(variant(build, origins, *one) for one in VARIANTS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--out", type=Path, default=Path("build/kinds"))
    parser.add_argument("--only", default="", help="kinds with this in their name")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--patience", type=float, default=20, help="seconds, for a run that hangs")
    arguments = parser.parse_args()
    program = (arguments.build / "tests/misuse/misuse_kinds").resolve()
    ours = matrix.of_hakmem((arguments.build / "libhakmem.so").resolve())
    chosen = [kind for kind in matrix.kinds(program) if arguments.only in kind.name]
    checks = ours[1].environment
    all_of_ours = [
        *ours,
        matrix.Allocator("hakmem, keeps nothing", ours[0].library, {**checks, **KEEPS_NOTHING}),
        # With assertions; it checks the size of every sized delete.
        matrix.Allocator(
            "hakmem-debug", (arguments.build / "libhakmem-debug.so").resolve(), checks
        ),
    ]
    origins = [f"{one.name}: with {dict(one.environment)}" for one in all_of_ours[1:]]
    everyone = [*all_of_ours, *allocators(arguments.build, origins)]
    found = matrix.run_all(
        program, chosen, everyone, arguments.runs, arguments.jobs, arguments.patience
    )
    matrix.write(found, [one.name for one in ours], arguments.out, origins)


if __name__ == "__main__":
    main()
