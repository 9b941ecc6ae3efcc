"""Allocators, measures and parts by the words of a command line, as `hakmem compare`, `replay` and
`tune` take them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from hakmem import outputs
from hakmem.arguments import WrongUse
from hakmem.outputs import CannotWrite
from hakmem_yardstick import allocators
from hakmem_yardstick.allocators import UnknownAllocator, pick
from hakmem_yardstick.model import OURS, Allocator


def chosen(words: Sequence[str], library: Path) -> list[Allocator]:
    """NAME, NAME=PATH, or NAME+VAR=VALUE+VAR=VALUE each. Raises WrongUse."""
    found: list[Allocator] = []
    for word in words:
        allocator = _chosen(word, library)
        times = 1 + sum(a.name.partition("#")[0] == allocator.name for a in found)
        # The same one twice: how much do runs differ by themselves?
        found.append(replace(allocator, name=f"{word}#{times}") if times > 1 else allocator)
    return found


def known(words: Sequence[str]) -> None:
    """Before anything is fetched, built or proved. Raises WrongUse."""
    try:
        for word in words:
            name, libs = _given(word)
            allocators.known(libs, [name])
    except UnknownAllocator as error:
        raise _wrong(error) from None


def _given(word: str) -> tuple[str, list[str]]:
    """The name, and a library of that name if there is one."""
    name, equals, path = word.partition("=")
    if equals and "+" not in name:
        return name, [f"{name}={Path(path).expanduser()}"]
    return word, []


def _wrong(error: UnknownAllocator) -> WrongUse:
    return WrongUse(str(error).replace("with --lib NAME=PATH", "as NAME=PATH"))


def _chosen(word: str, library: Path) -> Allocator:
    word, libs = _given(word)
    if not libs and library.is_file():
        libs = [f"{OURS}={library.resolve()}"]
    try:
        found, missing = pick(library.parent, libs, [word], say=_tell)
    except UnknownAllocator as error:
        raise _wrong(error) from None
    if missing:
        raise WrongUse(f"{word}: {missing[0].why}")
    return found[0]


def measures(text: str, known: Collection[str]) -> tuple[str, ...]:
    """Raises WrongUse."""
    names = tuple(dict.fromkeys(text.split(",")))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise WrongUse(f"--measures: there is no {unknown[0]!r}, only {', '.join(known)}")
    return names


def writable(option: str, path: Path | None) -> None:
    """Raises WrongUse."""
    try:
        if path is not None:
            outputs.check(path)
    except CannotWrite as why:
        raise WrongUse(f"{option} {path}: {why}") from None


def part(option: str, text: str) -> float:
    """As in "1%" or "0.01". Raises WrongUse."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise WrongUse(f"{option} {text}: expected a part of 1, as in 1% or 0.01")
    return value


def player(library: Path) -> Path:
    """The program that makes the calls of a recording."""
    return library.resolve().parent / "hakmem" / "replay"


def libraries(those: Sequence[Allocator]) -> list[Path]:
    """The files that are preloaded."""
    return [one.library for one in those if one.library is not None]


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
