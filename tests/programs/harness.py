"""Runs a program's steps in a folder of its own, with or without the library in force.

A case is run in pairs, by `run.py`: once with the system's allocator and once with the library
preloaded. All runs happen under the same path (so that programs which print or store paths write
the same bytes) and are moved aside afterwards:

    out/<case>/input          made once, read by all runs
    out/<case>/work           the run in progress
    out/<case>/<run>/files    what the programs left in their working folder
    out/<case>/<run>/outputs  stdout, stderr and exit status of each step
    out/<case>/<run>/logs     kept for the reader, not compared
    out/<case>/<run>/scratch  for what is never compared: a server's files
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.programs.process import Child, Usage, describe, end_orphans, start
from tools.demo import inforce

SCRIPTS = Path(__file__).resolve().parent / "scripts"
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
STEP_SECONDS = 300
START_SECONDS = 60


class Failure(Exception):
    """A message for the person who reads the test's output."""


@dataclass(frozen=True)
class Case:
    """One program under test."""

    name: str
    needs: tuple[str, ...]  # programs in PATH, or paths; without them the case is not run
    prepare: Callable[[Path], None]  # writes the inputs into an empty folder
    steps: Callable[[Run], None]  # runs the programs
    # A short command in the same environment and the programs it starts, whose malloc must be the
    # library's according to the loader.
    proof: tuple[str, ...]
    proof_of: tuple[str, ...] = ()  # without it, the first of `needs`
    # Files that hold times, inodes or the order in which threads finished (patterns of fnmatch).
    may_differ: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    # Of Debian; the first one's version is the program's. Without it, one of the case's name.
    packages: tuple[str, ...] = ()
    wheels: tuple[str, ...] = ()  # Python packages, in the environment that packages.py makes
    group: str = "others"  # the heading under which docs/programs.md lists it
    what: str = ""  # what it does, for that list
    note: str = ""  # what is not compared, and why
    # Why results depend on the order of the blocks' addresses, as in a hardened heap: chance.
    by_address: str = ""
    # What a hardened heap rightly ends it for, and the options without which it runs to its end.
    misuse: str = ""
    without: tuple[str, ...] = ()
    own: str = ""  # the allocator that the program brings, which must be found to stay in force
    user: str | None = None  # for servers that refuse to run as root: who runs it then

    def __post_init__(self) -> None:
        object.__setattr__(self, "proof_of", self.proof_of or self.needs[:1])
        if not self.wheels:
            object.__setattr__(self, "packages", self.packages or (self.name,))


def nothing(folder: Path) -> None:
    """For programs that need no input beyond their script."""


def script(
    *words: str, file: str, seconds: float = STEP_SECONDS, with_input: bool = False
) -> Callable[[Run], None]:
    """Steps of a case that is one script, which may get the folder of its inputs."""

    def steps(run: Run) -> None:
        more = [str(run.input)] if with_input else []
        run.step("script", *words, str(SCRIPTS / file), *more, watch=True, seconds=seconds)

    return steps


class Run:
    """One run of a case."""

    def __init__(
        self, case: Case, folder: Path, name: str, library: Path | None,
        options: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.case = case
        self.name = name
        self.library = library
        self.options = options  # of the library: NAME=VALUE
        self.input = folder / "input"
        self.base = folder / "work"
        self.work = self.base / "files"
        self.outputs = self.base / "outputs"
        self.logs = self.base / "logs"
        self.scratch = self.base / "scratch"
        self.usage = Usage()
        self.seen_in: set[str] = set()  # programs seen running with the library mapped
        self._home = folder / name
        self._count = 0
        self._children: list[Child] = []
        for made in (self.work, self.outputs, self.logs, self.scratch):
            made.mkdir(parents=True)
            if case.user and os.geteuid() == 0:
                shutil.chown(made, case.user)

    def env(self) -> dict[str, str]:
        """The environment of every program of this run: nothing of the caller's but HAKMEM_*."""
        own = {k: v for k, v in os.environ.items() if k.startswith("HAKMEM_")}
        own |= {"PATH": PATH, "HOME": str(self.work), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        own |= self.case.env
        if self.library:
            own["LD_PRELOAD"] = str(self.library)
            own |= variables(self.options)
        return own

    def step(
        self, name: str, *argv: str, stdin: Path | None = None, watch: bool = False,
        seconds: float = STEP_SECONDS, compared: bool = True,
    ) -> str:  # fmt: skip
        """Runs one program to its end; `watch` demands that the library is seen in its mappings.

        Its stdout, stderr and exit status are kept, to be compared unless `compared` is false:
        what a program says about times is not. An exit status other than 0 ends the run: the
        steps after it would only add noise. Returns what it wrote to stdout.
        """
        self._count += 1
        stem = f"{self._count:02}-{name}"
        kept = self.outputs if compared else self.logs
        stdout, stderr = (kept / f"{stem}.{kind}" for kind in ("stdout", "stderr"))
        with stdout.open("wb") as out, stderr.open("wb") as err:
            child = start(
                argv, self.usage, cwd=self.work, env=self.env(), stdin=stdin or Path(os.devnull),
                stdout=out, stderr=err, user=self.case.user,
            )  # fmt: skip
        self._children.append(child)
        seen = self.library is None or not watch or self._watch(child, argv[0])
        try:
            status = child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.stop()
            raise Failure(
                f"run '{self.name}', step {name}: still running after {seconds:.0f} s\n"
                f"  {' '.join(argv)}"
            ) from None
        (kept / f"{stem}.exit").write_text(f"{describe(status)}\n")
        if status != 0:
            raise Failure(
                f"run '{self.name}', step {name}: {describe(status)}\n  {' '.join(argv)}\n"
                + tail(stderr)
            )
        if not seen:
            raise Failure(
                f"{argv[0]}: {self.library} was never seen in /proc/PID/maps while it ran"
            )
        return stdout.read_text(errors="replace")

    def _watch(self, child: Child, program: str) -> bool:
        """True as soon as the library is seen in the child's mappings, False if it ends before."""
        while self.library and child.poll() is None:
            if inforce.mapped(child.pid, self.library):
                self.seen_in.add(Path(program).name)
                return True
            time.sleep(0.002)
        return False

    @contextmanager
    def background(self, name: str, *argv: str) -> Iterator[Child]:
        """A program that runs beside the steps, and is ended with the block at the latest."""
        with (self.logs / f"{name}.log").open("ab") as log:
            child = start(
                argv, self.usage, cwd=self.work, env=self.env(), stdin=Path(os.devnull),
                stdout=log, stderr=log, user=self.case.user,
            )  # fmt: skip
        self._children.append(child)
        try:
            yield child
        finally:
            child.stop()

    @contextmanager
    def server(
        self, name: str, *argv: str, ready: Callable[[], bool], seconds: float = START_SECONDS
    ) -> Iterator[Child]:
        """A background program that answers, with the library seen in its mappings."""
        with self.background(name, *argv) as child:
            end = time.monotonic() + seconds
            while not ready():
                status = child.poll()
                if status is not None or time.monotonic() > end:
                    state = "does not answer" if status is None else f"ended: {describe(status)}"
                    raise Failure(f"run '{self.name}': {name} {state}\n{self.log(name)}")
                time.sleep(0.02)
            if self.library:
                if not inforce.mapped(child.pid, self.library):
                    raise Failure(f"{name} {child.pid}: {self.library} is not in /proc/PID/maps")
                self.seen_in.add(Path(argv[0]).name)
            yield child

    def finish(self, name: str, child: Child, seconds: float = 60) -> None:
        """Waits for a server that was told to end, and demands that it ended well."""
        try:
            status = child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"run '{self.name}': {name} did not shut down") from None
        if status != 0:
            raise Failure(f"run '{self.name}': {name}: {describe(status)}\n{self.log(name)}")

    def log(self, name: str) -> str:
        return tail(self.logs / f"{name}.log").replace("stderr", f"{name}.log")

    def close(self) -> None:
        """Ends what is left running and moves the results to out/<case>/<run>."""
        for child in self._children:
            child.stop()
        end_orphans(self.usage)
        shutil.rmtree(self._home, ignore_errors=True)
        self.base.rename(self._home)


def variables(options: Sequence[str]) -> dict[str, str]:
    """The environment that sets these options of the library: NAME=VALUE, as `hakmem run -o`."""
    pairs = (option.partition("=") for option in options)
    return {f"HAKMEM_{name.upper()}": value for name, _, value in pairs}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """True when something accepts connections there."""
    with socket.socket() as probe:
        probe.settimeout(5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def tail(file: Path, lines: int = 12) -> str:
    text = file.read_text(errors="replace").splitlines()[-lines:]
    return "\n".join(f"  stderr: {line}" for line in text) or "  nothing on stderr"
