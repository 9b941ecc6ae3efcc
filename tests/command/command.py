"""Runs the command, and builds the programs that it is used on."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import inside, ran

SOURCES = Path(__file__).parent / "programs"
SECONDS = 300
GO_CACHE = Path(__file__).parents[2] / "build" / "go"


def clean_environment() -> dict[str, str]:
    """Nor with what would steer Python."""
    return ran.clean_environment("PYTHON") | {"LC_ALL": "C"}


def go_program(main: str, folder: Path) -> Path:
    """What Go's library is compiled to is kept, and not in the home, which need not be there."""
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    (folder / "main.go").write_text(main)
    environment = clean_environment() | {"CGO_ENABLED": "0", "GOCACHE": str(GO_CACHE)}
    words = ["go", "build", "-o", "program", "main.go"]
    subprocess.run(words, env=environment, cwd=folder, check=True, timeout=600)
    return folder / "program"


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Answer:
    """What `hakmem doctor --json` says."""

    status: int
    verdict: str
    causes: list[str]  # of the installation and of all programs
    programs: list[dict[str, Any]]
    err: str

    @property
    def text(self) -> str:
        return json.dumps(self.programs)


def is_in_force(answer: Answer) -> None:
    assert (answer.status, answer.verdict, answer.causes) == (0, "in force", []), answer


def is_not(answer: Answer, *causes: str) -> None:
    assert (answer.status, answer.verdict) == (1, "not in force"), answer
    assert answer.causes == [*causes], answer


@dataclass(frozen=True)
class Built:
    front: Path
    library: Path
    archive: Path

    def __call__(self, *words: str | Path, by: Sequence[str] = (), **variables: str) -> Done:
        environment = clean_environment() | variables
        if not by and words:
            done = inside.run(
                self.front, *map(str, words), seconds=SECONDS, environment=environment
            )
            return Done(done.returncode, done.stdout, done.stderr)
        done = ran.ran(*by, str(self.front), *map(str, words), env=environment)
        return Done(done.returncode, done.stdout, done.stderr)

    def doctor(self, *words: str | Path, by: Sequence[str] = (), **variables: str) -> Answer:
        done = self("doctor", "--json", *words, by=by, **variables)
        assert done.out, f"no answer, exit status {done.status}: {done.err}"
        answer = json.loads(done.out)
        causes = [*answer["causes"], *(c for p in answer["programs"] for c in p["causes"])]
        ids = [cause["id"] for cause in causes]
        return Answer(done.status, answer["verdict"], ids, answer["programs"], done.err)


class Programs:
    """Programs of tests/command/programs, each compiled once in each way that is asked for."""

    def __init__(self, folder: Path, built: Built) -> None:
        self.folder = folder
        self.built = built

    def make(self, name: str, *words: str | Path, by: str = "gcc", source: str = "blocks") -> Path:
        compiler = shutil.which(by)
        if compiler is None:
            pytest.skip(f"{by} is not installed")
        out = self.folder / name
        if not out.exists():
            flags = ["-O1", "-fno-builtin", "-pthread"]
            files = [SOURCES / f"{source}.c", *words]
            command = [compiler, *flags, "-o", str(out), *map(str, files)]
            done = ran.ran(*command)
            assert done.returncode == 0, done.stderr
        return out

    @property
    def blocks(self) -> Path:
        return self.make("blocks")


@contextmanager
def waiting(
    command: Sequence[str | Path], environment: Mapping[str, str] | None = None
) -> Iterator[int]:
    """The PID of a program that has said that it is ready, and waits."""
    process = subprocess.Popen(
        list(map(str, command)),
        env=clean_environment() | dict(environment or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("ready"), f"{command}: {line!r}"
        yield int(line.split()[1]) if len(line.split()) > 1 else process.pid
    finally:
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def library_of(package_file: str) -> Path:
    """A library of Debian's, by the name that programs know it by."""
    done = ran.ran("/sbin/ldconfig", "-p")
    for line in done.stdout.splitlines():
        if line.split()[:1] == [package_file]:
            return Path(line.split()[-1])
    pytest.skip(f"{package_file} is not installed")


def link_target(path: Path) -> str | None:
    try:
        return str(path.readlink())
    except OSError:
        return None
