"""The quick tests, and how the result of one is read."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GIB = 1 << 30
MOST_DATA = 12 * GIB  # a mutant may ask for memory without end; api_hardened maps 8
MOST_OUTPUT = GIB


@dataclass(frozen=True)
class Stage:
    """Tests that are built together, as regular expressions for names of ctest's. The first that
    fails ends a mutant."""

    preset: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Test:
    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    folder: str
    skips: int | None


@dataclass(frozen=True)
class Ran:
    passed: bool
    seconds: float
    how: str


def tests_of(stage: Stage, build: Path) -> list[Test]:
    """Once they are built: before that ctest does not know their commands."""
    known = {each["name"]: each for each in _listed(build)}
    return [_test(known[name], build) for name in _names(stage, build)]


def targets_of(stage: Stage, build: Path) -> list[str]:
    """What ninja has to build: the files in the build folder that CMake's lists of tests name, but
    for those that CMake has written itself."""
    names = set(_names(stage, build))
    found = set()
    for path in build.rglob("CTestTestfile.cmake"):
        for line in path.read_text().splitlines():
            about = re.match(r"(?:add_test|set_tests_properties)\((\S+) ", line)
            if about and about[1].strip("[]=") in names:
                line = line.split(" WORKING_DIRECTORY ")[0].split(" _BACKTRACE_TRIPLES ")[0]
                found.update(re.findall(rf'{re.escape(str(build))}/([^":;]+)', line))
    # A test that is given a folder wants all that is built in it.
    wanted = {f"{name}/all" if (build / name).is_dir() else name for name in found}
    return sorted(wanted & _known(build))


def _known(build: Path) -> set[str]:
    said = subprocess.run(
        ["ninja", "-t", "targets", "all"], cwd=build, check=True, capture_output=True, text=True
    ).stdout
    return {line.rsplit(": ", 1)[0] for line in said.splitlines()}


def _listed(build: Path) -> list[dict[str, Any]]:
    said = subprocess.run(
        ["ctest", "--show-only=json-v1"], cwd=build, check=True, capture_output=True
    ).stdout
    listed: list[dict[str, Any]] = json.loads(said)["tests"]
    return listed


def _names(stage: Stage, build: Path) -> list[str]:
    all_names = [each["name"] for each in _listed(build)]
    chosen: dict[str, None] = {}
    for pattern in stage.tests:
        matching = [name for name in all_names if re.fullmatch(pattern, name)]
        assert matching, f"{pattern}: no such test"
        chosen.update(dict.fromkeys(matching))
    return list(chosen)


def _test(listed: dict[str, Any], build: Path) -> Test:
    values = {each["name"]: each["value"] for each in listed["properties"]}
    return Test(
        listed["name"],
        tuple(listed["command"]),
        dict(line.split("=", 1) for line in values.get("ENVIRONMENT", [])),
        values.get("WORKING_DIRECTORY", str(build)),
        values.get("SKIP_RETURN_CODE"),
    )


def run(test: Test, limit: float, output: Path) -> Ran:
    """Ends whatever the test leaves behind. `limit`: seconds, after which it is said to hang."""
    begun = time.monotonic()
    with output.open("wb") as said:
        process = subprocess.Popen(
            test.command,
            cwd=test.folder,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **test.environment},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_limits,
        )
        try:
            code = process.wait(limit)
            how = f"status {code}" if code >= 0 else signal.Signals(-code).name
        except subprocess.TimeoutExpired:
            code, how = 1, "hangs"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return Ran(code in (0, test.skips), time.monotonic() - begun, how)


def _limits() -> None:
    for which, most in (
        (resource.RLIMIT_DATA, MOST_DATA),
        (resource.RLIMIT_FSIZE, MOST_OUTPUT),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(which, (most, most))
    Path("/proc/self/oom_score_adj").write_text("1000")  # these first, if memory is short
