"""Each function of hakmem, and each option, under a filter that kills for what docs/contract.md
does not list: all is done, or refused with the answer that is documented, in processes of one
thread and of several."""

from __future__ import annotations

import errno
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hakmem.table import CHANGEABLE, table
from tests.ran import clean_environment, ran
from tests.watch.watched import Command

ROOT = Path(__file__).parents[2]

CONTRACT = ROOT / "docs/contract.md"
OWN = ROOT / "tests/limits/sandboxes/own"
SKIPPED = 77
THREADS = ("0", "1")
# C++ has other names of the same functions.
FORMS = ("_Z", "__alloc_token_", "__size_returning_new")


def documented() -> dict[str, str]:
    """What needs more rules than all have after the start, and which."""
    needs: dict[str, str] = {}
    block = ""
    for line in CONTRACT.read_text().splitlines():
        if line.startswith("# rules: "):
            block = line.split()[2]
        elif line.startswith("# for: "):
            needs |= dict.fromkeys(line.split()[2:], block)
    return needs


def rules(*more: str) -> str:
    return f"{CONTRACT}#{'+'.join(['after-start', *more])},{OWN}"


@dataclass(frozen=True)
class Every:
    program: Path
    library: Path
    folder: Path

    def start(self, *words: str) -> subprocess.Popen[str]:
        """What it says comes by its descriptor 9."""
        script = 'exec 9>&1 >&2 && exec "$@"'
        environment = clean_environment()
        return subprocess.Popen(
            ["/bin/sh", "-c", script, "sh", self.program, *words],
            cwd=self.folder,
            env=environment | {"LD_PRELOAD": str(self.library)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words: str) -> list[list[str]]:
        with self.start(*words) as process:
            said, errors = process.communicate()
        if process.returncode == SKIPPED:
            pytest.skip(errors)
        lines = said.splitlines()
        assert process.returncode == 0, f"{process.returncode} after {lines[-1:]}: {errors}"
        return [line.split() for line in lines]

    def names(self, kind: str) -> list[str]:
        return [name for its_kind, name in self("list") if its_kind == kind]


@pytest.fixture
def every(programs: Path, library: Path, tmp_path: Path) -> Every:
    return Every(programs / "limits_every", library, tmp_path)


def test_each_has_a_case(every: Every, library: Path) -> None:
    words = ["nm", "-D", "--defined-only", str(library)]
    exported = ran(*words, check=True).stdout
    names = {line.split()[2].partition("@")[0] for line in exported.splitlines()}
    functions = {name for name in names if not name.startswith(FORMS)}
    declared = set(re.findall(r"\b(hakmem_\w+)\(", (ROOT / "include/hakmem/hakmem.h").read_text()))
    assert set(every.names("function")) == functions
    assert declared & names <= functions
    assert {name for name in declared if not name.isupper()} - functions <= {
        "hakmem_mallinfo",  # a struct's name, too
    }
    assert set(every.names("option")) == {option.name for option in table()}
    assert set(documented()) <= functions | set(CHANGEABLE)


@pytest.mark.parametrize("threads", THREADS)
def test_all_functions(every: Every, threads: str) -> None:
    names = [name for name in every.names("function") if name not in documented()]
    said = every(rules(), threads, *names)
    assert said[-1] == ["done"]
    assert {line[0] for line in said[1:-1]} == set(names)
    refused = {"hakmem_profile_start", "hakmem_profile_stop"}
    assert all(line[2] == "0" for line in said if line[0] in refused)


@pytest.mark.parametrize("threads", THREADS)
def test_all_options(every: Every, threads: str) -> None:
    names = [name for name in every.names("option") if name not in documented()]
    said = every(rules(), threads, *names)
    assert said[-1] == ["done"]
    answers = {name: {int(line[2]) for line in said if line[0] == name} for name in names}
    for name, given in answers.items():
        most = {0, errno.EINVAL} if name in CHANGEABLE else {errno.EPERM, errno.EINVAL}
        assert given <= most, name
        assert given & {0, errno.EPERM}, name


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(("name", "block"), documented().items())
def test_what_needs_more(every: Every, threads: str, name: str, block: str) -> None:
    said = every(rules(block), threads, name)
    assert said[-1] == ["done"] and len(said) > 5
    if name == "profile_rss":
        assert list(every.folder.glob("*.rss-1.heap")), "it was written"
    with pytest.raises(AssertionError, match=r"^-31 after"):  # SIGSYS: it is named for a reason
        every(rules(), threads, name)


# ---- from outside ----


@contextmanager
def serving(every: Every, threads: str, *blocks: str) -> Iterator[subprocess.Popen[str]]:
    with every.start(rules(*blocks), threads, "serve") as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        try:
            if ready == "" and process.wait() == SKIPPED:
                pytest.skip("this kernel gives no filters")
            assert ready == "ready\n"
            yield process
        finally:
            process.kill()


def values(name: str) -> tuple[str, ...]:
    (option,) = (option for option in table() if option.name == name)
    if option.type == "SWITCH":
        return ("on", "off")
    some = "1M" if option.type == "BYTES" else "1"
    return (some, "auto") if option.may_be_auto else (some, "0", option.value.replace(" * ", " "))


@pytest.mark.parametrize("threads", THREADS)
def test_set_and_purge_from_outside(every: Every, command: Command, threads: str) -> None:
    settings = [f"{name}={value}" for name in CHANGEABLE for value in values(name)]
    needs = documented()

    def order(process: subprocess.Popen[str], *words: str) -> None:
        """Until it is done: on a busy machine the process obeys later."""
        allowed = (0, 2) if words[-1].endswith("=0") else (0,)
        while True:
            done = command(words[0], process.pid, *words[1:])
            assert process.poll() is None, f"{words}: it ended with {process.poll()}"
            if done.returncode != 4:
                break
        assert done.returncode in allowed, (words, done.stderr)
        assert done.returncode == 0 or "the value is not allowed" in done.stderr

    for block in ("", *sorted(set(needs.values()))):
        with serving(every, threads, *([block] if block else [])) as process:
            for setting in settings:
                if needs.get(setting.partition("=")[0], "") == block:
                    order(process, "set", setting)
            order(process, "purge")
            assert process.poll() is None
