"""Runs a program's steps in a folder of its own, with or without the library in force.

A case is run twice, by `run.py`: once with the system's allocator and once with the library
preloaded. Both runs happen under the same path (so that programs which print or store paths write
the same bytes) and are moved aside afterwards:

    out/<case>/input          made once, read by both runs
    out/<case>/work           the run in progress
    out/<case>/<run>/files    what the programs left in their working folder
    out/<case>/<run>/outputs  stdout, stderr and exit status of each step
    out/<case>/<run>/logs     kept for the reader, not compared
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tools.demo import inforce

PATH = "/usr/local/bin:/usr/bin:/bin"
STEP_SECONDS = 120


class Failure(Exception):
    """A message for the person who reads the test's output."""


@dataclass(frozen=True)
class Case:
    """One program under test."""

    name: str
    needs: tuple[str, ...]  # programs looked up in PATH; when one is missing the test is skipped
    prepare: Callable[[Path], None]  # writes the inputs into an empty folder
    steps: Callable[[Run], None]  # runs the programs
    # A short command in the same environment and the programs it starts, whose malloc must be the
    # library's according to the loader.
    proof: tuple[str, ...]
    proof_of: tuple[str, ...]
    # Files that hold times, inodes or the order in which threads finished (patterns of fnmatch).
    may_differ: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


class Run:
    """One of the two runs of a case."""

    def __init__(self, case: Case, folder: Path, name: str, library: Path | None) -> None:
        self.case = case
        self.name = name
        self.library = library
        self.input = folder / "input"
        self.base = folder / "work"
        self.work = self.base / "files"
        self.outputs = self.base / "outputs"
        self.logs = self.base / "logs"
        self.seen_in: set[str] = set()  # programs seen running with the library mapped
        self._home = folder / name
        self._count = 0
        self._children: list[subprocess.Popen[bytes]] = []
        for made in (self.work, self.outputs, self.logs):
            made.mkdir(parents=True)

    def env(self) -> dict[str, str]:
        """The environment of every program of this run: nothing of the caller's but HAKMEM_*."""
        own = {k: v for k, v in os.environ.items() if k.startswith("HAKMEM_")}
        own |= {"PATH": PATH, "HOME": str(self.work), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        own |= self.case.env
        if self.library:
            own["LD_PRELOAD"] = str(self.library)
        return own

    def step(self, name: str, *argv: str, stdin: Path | None = None, watch: bool = False) -> None:
        """Runs one program to its end; `watch` demands that the library is seen in its mappings.

        Its stdout, stderr and exit status are kept to be compared. An exit status other than 0
        ends the run: the steps after it would only add noise.
        """
        self._count += 1
        stem = f"{self._count:02}-{name}"
        stdout, stderr = (self.outputs / f"{stem}.{kind}" for kind in ("stdout", "stderr"))
        with (
            (stdin or Path(os.devnull)).open("rb") as source,
            stdout.open("wb") as out,
            stderr.open("wb") as err,
        ):
            child = subprocess.Popen(
                argv, cwd=self.work, env=self.env(), stdin=source, stdout=out, stderr=err,
                start_new_session=True,
            )  # fmt: skip
        self._children.append(child)
        seen = self.library is None or not watch or self._watch(child, argv[0])
        try:
            status = child.wait(STEP_SECONDS)
        except subprocess.TimeoutExpired:
            stop(child)
            raise Failure(
                f"run '{self.name}', step {name}: still running after {STEP_SECONDS} s\n"
                f"  {' '.join(argv)}"
            ) from None
        (self.outputs / f"{stem}.exit").write_text(f"{describe(status)}\n")
        if status != 0:
            raise Failure(
                f"run '{self.name}', step {name}: {describe(status)}\n  {' '.join(argv)}\n"
                + tail(stderr)
            )
        if not seen:
            raise Failure(
                f"{argv[0]}: {self.library} was never seen in /proc/PID/maps while it ran"
            )

    def _watch(self, child: subprocess.Popen[bytes], program: str) -> bool:
        """True as soon as the library is seen in the child's mappings, False if it ends before."""
        while self.library and child.poll() is None:
            if inforce.mapped(child.pid, self.library):
                self.seen_in.add(Path(program).name)
                return True
            time.sleep(0.002)
        return False

    @contextmanager
    def background(self, name: str, *argv: str) -> Iterator[subprocess.Popen[bytes]]:
        """A program that runs beside the steps, and is ended with the block at the latest."""
        with (self.logs / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                argv, cwd=self.work, env=self.env(), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._children.append(child)
        try:
            yield child
        finally:
            stop(child)

    def close(self) -> None:
        """Ends what is left running and moves the results to out/<case>/<run>."""
        for child in self._children:
            stop(child)
        shutil.rmtree(self._home, ignore_errors=True)
        self.base.rename(self._home)


def stop(child: subprocess.Popen[bytes]) -> None:
    """Ends a child and what it started (each child leads a session of its own)."""
    if child.poll() is None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(child.pid, number)
                child.wait(5)
                return
            except ProcessLookupError:
                return
            except subprocess.TimeoutExpired:
                continue


def describe(status: int) -> str:
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"


def tail(file: Path, lines: int = 12) -> str:
    text = file.read_text(errors="replace").splitlines()[-lines:]
    return "\n".join(f"  stderr: {line}" for line in text) or "  nothing on stderr"
