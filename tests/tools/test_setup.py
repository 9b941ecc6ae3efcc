"""tools/setup on machines that are not available here: the real script, with stand-ins for all
programs that it finds in PATH."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ran import ran

ROOT = Path(__file__).parents[2]
PLAIN = (
    "awk bash cat cut dirname echo env head mkdir sed sha256sum sort tail touch tr uname wc xargs"
)
COMPILERS = "gcc g++ make cmake ninja readelf python3"
SAYS_WHERE = 'case "$1" in -print-file-name=*) echo "/usr/lib/${1#*=}" ;; esac'
# Writes down what it would install, and the script that would.
SUDO = """
case "$1 $2" in
    "apt-get update") echo "Hit:1 of the lists"; touch "$TOP/lists" ;;
    "bash -euc") printf %s "$3" >"$TOP/script"; shift 4; echo "$*" >"$TOP/installed"; INSTALL ;;
    "-n true") NO_PASSWORD ;;
    "-v ") PASSWORD ;;
esac
"""
SUDO_REFUSES = """
echo "We trust you have received the usual lecture." >&2
echo "This incident has been reported." >&2
echo "sudo: alice is not in the sudoers file." >&2
exit 1"""


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str


class Machine:
    def __init__(self, top: Path) -> None:
        self.top = top
        self.bin = top / "bin"
        (top / "repo" / "tools").mkdir(parents=True)
        self.bin.mkdir()
        for name in ("tools/setup", "tools/step", "pyproject.toml"):
            shutil.copy(ROOT / name, top / "repo" / name)
        for name in PLAIN.split():
            real = shutil.which(name)
            assert real is not None, name
            (self.bin / name).symlink_to(real)
        self.add("id", "echo 1000")
        # An environment that is there: making one takes seconds, and is Python's business.
        self.write(top / "repo" / ".venv" / "bin" / "python", 'echo "$*" >>"$TOP/pip"')

    def write(self, path: Path, body: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def add(self, names: str, body: str = "") -> None:
        for name in names.split():
            self.write(self.bin / name, body)

    def debian(
        self, *, install: str = ":", no_password: str = "exit 0", password: str = ""
    ) -> None:
        """Bare, with sudo."""
        self.add("apt-get dpkg-query")
        self.add("apt-cache", '[ ! -e "$TOP/lists" ] || echo "  Depends: clang-14"')
        words = {"INSTALL": install, "NO_PASSWORD": no_password, " PASSWORD": f" {password}"}
        body = SUDO
        for word, meaning in words.items():
            body = body.replace(word, meaning)
        self.add("sudo", body)

    def __call__(self, *words: str, terminal: bool = False) -> Said:
        ours, theirs = pty.openpty()
        try:
            done = ran(
                self.top / "repo" / "tools" / "setup",
                *words,
                env={"PATH": str(self.bin), "TOP": str(self.top), "HOME": str(self.top)},
                stdin=theirs if terminal else subprocess.DEVNULL,
            )
        finally:
            os.close(ours)
            os.close(theirs)
        return Said(done.returncode, done.stdout, done.stderr)

    def installed(self) -> set[str]:
        return set((self.top / "installed").read_text().split())

    def pip(self) -> str:
        return (self.top / "pip").read_text()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def with_build(machine: Machine) -> None:
    machine.add(COMPILERS)
    machine.add("gcc g++", SAYS_WHERE)


def test_what_is_there_is_left_alone(machine: Machine) -> None:
    machine.debian()
    with_build(machine)
    said = machine("build")
    assert (said.status, said.err) == (0, "")
    assert not (machine.top / "installed").exists()
    assert "pyelftools==" in machine.pip() and "rich" not in machine.pip()
    assert machine("build") == Said(0, "", "")


def test_each_purpose_has_its_packages(machine: Machine) -> None:
    machine.debian()
    of = {}
    for purpose in ("build", "demo", "test"):
        assert machine(purpose).status == 0
        of[purpose] = machine.installed()
    assert {"gcc", "g++", "cmake", "ninja-build", "libc6-dev"} <= of["build"]
    assert of["demo"] - of["build"] == {"redis-server", "redis-tools"}
    assert {"clang", "cargo", "gcc-aarch64-linux-gnu", "zsh", "libclang-rt-14-dev"} <= of["test"]
    assert of["demo"] < of["test"]
    assert machine("all").status == 1


def test_a_browser_that_is_there_will_do(machine: Machine) -> None:
    machine.debian()
    assert machine().status == 0
    assert "chromium-headless-shell" in machine.installed()
    machine.add("chromium")
    assert machine().status == 0
    assert "chromium-headless-shell" not in machine.installed()


def test_where_no_browser_is_packaged_none_is_wanted(machine: Machine) -> None:
    machine.debian()
    machine.add("apt-cache")
    assert machine().status == 0
    assert "chromium-headless-shell" not in machine.installed()


def test_all_is_wanted_where_nothing_is_said(machine: Machine) -> None:
    machine.debian()
    assert machine().status == 0
    assert "shellcheck" in machine.installed()
    assert "mypy==" in machine.pip() and "pyelftools==" in machine.pip()
    assert machine("demo").out.count("complete") == 0  # it is part of that


def test_a_line_for_each_step_and_the_rest_in_the_log(machine: Machine) -> None:
    machine.debian(install="echo Unpacking")
    said = machine("demo")
    steps = [line for line in said.out.splitlines() if line.startswith("setup: ")]
    assert [line.split(":")[1].split()[0] for line in steps] == [
        "reading", "installing", "installing", "complete",
    ]  # fmt: skip
    assert said.out.count("build/steps.log") == 1
    assert "Hit:1" not in said.out and "Unpacking" not in said.out
    log = (machine.top / "repo" / "build" / "steps.log").read_text()
    assert "Hit:1" in log and "Unpacking" in log


def test_a_server_is_not_started(machine: Machine) -> None:
    machine.debian()
    machine("demo")
    script = (machine.top / "script").read_text()
    assert script.index("exit 101") < script.index("apt-get") < script.index("redis-server")


def test_what_a_failing_step_printed_is_shown(machine: Machine) -> None:
    machine.debian(install='echo "E: Unable to locate package spin"; exit 100')
    said = machine("test")
    assert said.status == 1
    assert "E: Unable to locate package spin" in said.err
    assert "Hit:1" not in said.err
    assert "failed with status 100" in said.err and "apt-get install" in said.err


def test_old_lists_will_do(machine: Machine) -> None:
    machine.debian()
    sudo = machine.bin / "sudo"
    sudo.write_text(sudo.read_text().replace('touch "$TOP/lists"', "exit 100"))
    said = machine("demo")
    assert said.status == 0
    assert "going on with the old" in said.out
    assert "redis-server" in machine.installed()


def test_clangs_runtime_is_not_named_before_its_version_is_known(machine: Machine) -> None:
    """With neither clang nor lists of packages."""
    machine.debian(no_password="exit 1")
    said = machine("test")
    assert said.status == 1
    assert "clang-tidy" in said.err and "libclang-rt" not in said.err


# ---- who may not install ----


def test_without_rights_it_says_so_in_a_line(machine: Machine) -> None:
    machine.debian(no_password=SUDO_REFUSES, password=SUDO_REFUSES)
    said = machine("demo", terminal=True)
    assert said.status == 1
    first, second = said.err.splitlines()
    assert first == (
        "setup: packages are missing, and sudo refuses (alice is not in the sudoers file.); "
        "as root, run:"
    )
    assert second.startswith("  apt-get update && apt-get install -y --no-install-recommends ")
    assert "redis-server" in second


def test_nobody_is_asked_for_a_password_without_a_terminal(machine: Machine) -> None:
    machine.debian(no_password=SUDO_REFUSES, password='touch "$TOP/asked"')
    said = machine("demo")
    assert (said.status, len(said.err.splitlines())) == (1, 2)
    assert "there is no terminal" in said.err
    assert not (machine.top / "asked").exists()


def test_who_may_type_a_password_goes_on(machine: Machine) -> None:
    machine.debian(no_password=SUDO_REFUSES, password='touch "$TOP/asked"')
    assert machine("demo", terminal=True).status == 0
    assert (machine.top / "asked").exists()
    assert "redis-server" in machine.installed()


def test_without_sudo_it_says_so(machine: Machine) -> None:
    machine.debian()
    (machine.bin / "sudo").unlink()
    said = machine("build")
    assert said.status == 1
    assert said.err.startswith("setup: packages are missing, and there is no sudo; as root, run:\n")


# ---- other systems ----


@pytest.mark.parametrize(
    ("manager", "line"),
    [
        ("dnf", "dnf install binutils cmake gcc gcc-c++ glibc-static"),
        ("pacman", "pacman -S binutils cmake gcc glibc make ninja python redis"),
        ("apk", "apk add binutils cmake g++ gcc libstdc++-dev make musl-dev"),
    ],
)
def test_other_systems_are_told_in_their_words(machine: Machine, manager: str, line: str) -> None:
    machine.add(manager)
    said = machine("demo")
    assert said.status == 1
    lines = said.err.splitlines()
    assert lines[0].startswith("setup: there is no apt-get here, and this is missing: gcc g++ ")
    assert lines[1].startswith(f"  as root: {line}") and len(lines) == 2
    assert "ninja-build" in lines[1] or manager != "dnf"


def test_what_has_no_name_there_is_named_as_a_command(machine: Machine) -> None:
    machine.add("dnf")
    with_build(machine)
    machine.add("redis-server redis-benchmark")
    lines = machine("test").err.splitlines()
    assert lines[1].startswith("  whatever packages bring: git setarch musl-gcc ")
    unknown = Machine(machine.top / "another")
    assert unknown("build").err.splitlines()[1].startswith("  whatever packages bring: gcc g++ ")


def test_where_all_is_there_no_apt_is_needed(machine: Machine) -> None:
    with_build(machine)
    assert machine("build").status == 0
    assert not (machine.top / "installed").exists()
