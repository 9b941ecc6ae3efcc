"""Runs a subcommand of the built `hakmem` in a child of the test's own process, which has the
modules already: no shell and no Python start, which take longer than what most of them do. What the
shell script does before (`hakmem run`, --help, --version) is for tests/command, which starts it."""

from __future__ import annotations

import functools
import io
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from hakmem import cli
from tests.ran import SECONDS, clean_environment

PART = Path(cli.__file__).parent


def run(
    front: str | Path,
    *words: str,
    seconds: float,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """`front words`, without standard input."""
    library = _library(Path(front))
    if library is None or not words or words[0] not in cli.SUBCOMMANDS or "--help" in words:
        return subprocess.run(
            ["/bin/sh", str(front), *words],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
            env=environment,
            cwd=folder,
        )
    cli.module(words[0])
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            _be(["hakmem", str(front), library, *words], out, err, environment, folder)
        status = _end_of(child, words, seconds)
        said = []
        for file in out, err:
            file.seek(0)
            said.append(file.read().decode())
    return subprocess.CompletedProcess(words, os.waitstatus_to_exitcode(status), *said)


def answer(
    front: str | Path,
    *words: str,
    status: int = 0,
    seconds: float = SECONDS,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Of `front words` without an allocator's settings, where it ends with that status."""
    done = run(front, *words, seconds=seconds, environment=clean_environment(), folder=folder)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


@functools.cache
def _library(front: Path) -> str | None:
    """As `front` names it to Python. None where that would not start this Python with this part."""
    text = front.read_text(errors="replace")
    found = {
        name: match[2]
        for name in ("python", "part", "library")
        if (match := re.search(rf"^{name}=(['\"]?)([^'\"\s]*)\1(?: #.*)?$", text, re.MULTILINE))
    }
    here = str(front.parent)
    part, library = (found.get(name, "").replace("$here", here) for name in ("part", "library"))
    python = Path(found.get("python", "").replace("$here", here))
    same = part and Path(part).resolve() == PART and python.absolute() == Path(sys.executable)
    return library if same else None


def _be(
    words: list[str],
    out: IO[bytes],
    err: IO[bytes],
    environment: Mapping[str, str] | None,
    folder: Path | None,
) -> None:
    status = 255
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(0, closefd=False), "utf-8"),
            io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8"),
            io.TextIOWrapper(
                io.BufferedWriter(io.FileIO(2, "w", closefd=False)),
                "utf-8",
                "backslashreplace",
                line_buffering=True,
            ),
        )
        if environment is not None:
            os.environ.clear()
            os.environ.update(environment)
        if folder is not None:
            os.chdir(folder)
        sys.argv = words
        cli.main()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _end_of(child: int, words: Sequence[str], seconds: float) -> int:
    watched = os.pidfd_open(child)
    try:
        ended = select.select([watched], [], [], seconds)[0]
        if not ended:
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    finally:
        os.close(watched)
    if not ended:
        raise subprocess.TimeoutExpired(words, seconds)
    return status
