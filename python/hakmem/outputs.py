"""Files that a command writes, in a format that the end of the name says."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from hakmem import interrupts, profile_text
from hakmem.arguments import USAGE_ERROR
from hakmem.modules import PPROF, NoModule, need

CANNOT_WRITE = 5

Result = TypeVar("Result")
Writer = Callable[[Result], bytes | Iterable[bytes]]  # parts of what is large


class CannotWrite(Exception):
    """A line for the user."""

    status = CANNOT_WRITE


class WrongName(Exception):
    status = USAGE_ERROR


def outputs(
    names: Iterable[str], writers: Mapping[str, Writer[Result]]
) -> list[tuple[Path, Writer[Result]]]:
    """Before anything is waited for: what is wrong with a name or a folder, it says at once."""
    found = []
    for name in names:
        ending = next((end for end in writers if name.endswith(end)), None)
        if ending is None:
            raise WrongName(f"-o {name}: expected a name that ends in {', '.join(writers)}")
        if ending == ".pb.gz":
            try:
                need(PPROF)
            except NoModule as why:
                raise WrongName(f"-o {name}: {why}") from why
        path = Path(name)
        check(path)
        found.append((path, writers[ending]))
    return found


def is_stream(path: Path) -> bool:
    """A device, a pipe, or a descriptor by a name: no file to put another one in place of."""
    if str(path).startswith(("/dev/std", "/dev/fd/", "/proc/")):
        return True
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def check(path: Path) -> None:
    """Before there is anything to write. Raises CannotWrite."""
    if os.path.isdir(path):  # noqa: PTH112  that of pathlib fails at a name that is too long
        raise CannotWrite(f"{path}: {os.strerror(errno.EISDIR)}")
    if is_stream(path):
        if not os.access(path, os.W_OK):
            raise CannotWrite(f"{path}: no permission to write")
        return
    if not os.access(path.parent, os.W_OK | os.X_OK):
        there = path.parent.is_dir()
        raise CannotWrite(
            f"{path.parent}: {'no permission to write' if there else 'no such folder'}"
        )


def write(path: Path, content: bytes | Iterable[bytes], command: str) -> None:
    """And says so."""
    replace(path, content)
    print(f"hakmem {command}: {profile_text.printable(str(path))}", file=sys.stderr, flush=True)


def replace(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Raises CannotWrite."""
    if is_stream(path):
        try:
            with path.open("ab") as file:
                file.writelines([content] if isinstance(content, bytes) else content)
        except OSError as error:
            raise CannotWrite(f"{path}: {error.strerror}") from error
        return
    with replaced(path) as made, made.open("wb") as file:
        file.writelines([content] if isinstance(content, bytes) else content)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """What is to be written, beside it first: half of a file is never there. Raises CannotWrite,
    Interrupted."""
    made = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            with interrupts.in_order():
                yield made
                made.replace(path)
        except BaseException:
            with suppress(OSError):
                made.unlink()
            raise
    except OSError as error:
        raise CannotWrite(f"{path}: {error.strerror}") from error
