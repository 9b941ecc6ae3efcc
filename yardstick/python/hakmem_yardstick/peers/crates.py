"""Peers built from the sources that Rust crates carry.

Cargo fetches a crate in its pinned version; a recipe, a few lines of shell in recipes/, makes of
its C or C++ sources the shared library that the allocator's authors would preload. The result is
kept by all that decides it: version, recipe, compiler, processor. Offline, what was built or
fetched before is used.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hakmem.folders import Folder
from hakmem_yardstick.estimate import Preparation
from hakmem_yardstick.peers.cache import Say, Unobtainable, call, place, wiped_environment
from hakmem_yardstick.peers.catalogue import Crate

RECIPES = Path(__file__).resolve().parent / "recipes"
_FETCH_PATIENCE, _BUILD_PATIENCE = 300, 1800  # seconds
_FETCH_SECONDS = 15.0  # that it usually takes, about
_LINES_SHOWN = 6


@dataclass(frozen=True)
class Compiler:
    c: str
    cxx: str
    version: str
    """"gcc 12.2.0"."""


def find(crate: Crate, cache: Path, say: Say, recipes: Path = RECIPES) -> tuple[Path, str]:
    """The library, built if it isn't there, and its origin. Raises Unobtainable."""
    compiler = _compiler(crate.clang)
    recipe = (recipes / crate.name).read_text()
    library = _place(crate, cache, recipe, compiler)
    kept = library.parent
    if not library.is_file():
        source = _fetched(crate, cache, say)
        say(f"{crate.name} {crate.version}: building with {compiler.version}, ~{crate.seconds} s")
        _build(crate, recipe, source, compiler, kept)
    version = crate.crate_version.split("+")[0]
    return library, f"crate {crate.crate} {version}, built with {compiler.version}"


def preparation(crate: Crate, cache: Path, recipes: Path = RECIPES) -> Preparation | None:
    """What `find` has yet to do."""
    recipe = (recipes / crate.name).read_text()
    try:
        if _place(crate, cache, recipe, _compiler(crate.clang)).is_file():
            return None
    except Unobtainable:
        return None  # it will be left out at once
    if _sources(crate, cache).is_dir():
        return Preparation(f"building {crate.name}", crate.seconds)
    return Preparation(f"fetching and building {crate.name}", _FETCH_SECONDS + crate.seconds)


def _place(crate: Crate, cache: Path, recipe: str, compiler: Compiler) -> Path:
    """Where its library is once it is built."""
    what = (crate.crate, crate.crate_version, crate.checksum, recipe, compiler.version)
    key = hashlib.sha256("\0".join((*what, os.uname().machine)).encode()).hexdigest()[:12]
    return cache / "built" / f"{crate.name}-{key}" / f"lib{crate.name}.so"


def _sources(crate: Crate, cache: Path) -> Path:
    return cache / "sources" / f"{crate.crate}-{crate.crate_version}"


@functools.cache
def _compiler(clang_first: bool) -> Compiler:
    pairs = [("gcc", "g++"), ("clang", "clang++"), ("cc", "c++")]
    if clang_first:
        pairs.insert(0, ("clang", "clang++"))
    for c, cxx in pairs:
        if shutil.which(c) and shutil.which(cxx):
            said = subprocess.run([c, "--version"], capture_output=True, text=True).stdout
            return Compiler(c, cxx, f"{c} {version_of(said)}")
    raise Unobtainable("there is no C and C++ compiler; install gcc and g++, then try again")


def version_of(said: str) -> str:
    """Of "gcc (Debian 12.2.0-14) 12.2.0", and "gcc (GCC) 13.2.1 20231011 (Red Hat 13.2.1-7)"."""
    outside = re.sub(r"\([^)]*\)", "", said.partition("\n")[0])
    return next((word for word in outside.split() if word[0].isdigit()), "of unknown version")


def _fetched(crate: Crate, cache: Path, say: Say) -> Path:
    """The crate's folder, whose checksum cargo has compared with the index and we with ours."""
    kept = _sources(crate, cache)
    if kept.is_dir():
        return kept
    if shutil.which("cargo") is None:
        raise Unobtainable("there is no cargo to fetch its sources; install cargo, then try again")
    say(f"{crate.name} {crate.version}: fetching crate {crate.crate} {crate.crate_version}")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with Folder("fetch-", kept.parent) as project:
        (project / "Cargo.toml").write_text(
            '[package]\nname = "peer"\nversion = "0.0.0"\nedition = "2018"\n[workspace]\n'
            f'[dependencies]\n{crate.crate} = "={crate.crate_version}"\n'
        )
        (project / "src").mkdir()
        (project / "src/lib.rs").touch()
        _vendor(crate, project)
        made = project / "vendor" / crate.crate
        checksum = json.loads((made / ".cargo-checksum.json").read_text())["package"]
        if checksum != crate.checksum:
            raise Unobtainable(
                f"crate {crate.crate} {crate.crate_version} has checksum {checksum}, "
                f"not the {crate.checksum} that it is pinned to"
            )
        place(made, kept)
    return kept


def _vendor(crate: Crate, project: Path) -> None:
    """Also without a network, where cargo has it already. Raises Unobtainable."""
    patience = {"CARGO_NET_RETRY": "1", "CARGO_HTTP_TIMEOUT": "20"}
    refusal = ""
    for options in ([], ["--offline"]):
        try:
            line = ["cargo", "vendor", "--quiet", *options, "vendor"]
            call(line, project, _FETCH_PATIENCE, patience)
            return
        except Unobtainable as error:
            refusal = str(error)
    raise Unobtainable(f"cargo could not fetch {crate.crate}: {refusal}")


def _build(crate: Crate, recipe: str, source: Path, compiler: Compiler, kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    log = kept.parent / f"{kept.name}.log"
    with Folder("build-", kept.parent) as folder:
        made, work = folder / "made", folder / "work"
        made.mkdir()
        work.mkdir()
        library = made / f"lib{crate.name}.so"
        variables = {
            "SOURCE": source,
            "BUILD": work,
            "OUT": library,
            "CC": compiler.c,
            "CXX": compiler.cxx,
            "CRATE_VERSION": crate.crate_version,
            "JOBS": len(os.sched_getaffinity(0)),
        }
        environment = wiped_environment() | {name: str(v) for name, v in variables.items()}
        with log.open("w") as output:
            try:
                done = subprocess.run(
                    ["sh", "-eux", "-c", recipe],
                    cwd=work,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=_BUILD_PATIENCE,
                )
            except subprocess.TimeoutExpired:
                raise Unobtainable(f"building took over {_BUILD_PATIENCE} s; see {log}") from None
        if done.returncode != 0 or not library.is_file():
            raise Unobtainable(f"building failed, see {log}: {_end_of(log)}")
        shutil.copy(log, made / "log")
        place(made, kept)
        log.unlink()


def _end_of(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return "\n".join(lines[-_LINES_SHOWN:])
