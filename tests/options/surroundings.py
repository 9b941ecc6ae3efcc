"""Runs a program with options from everywhere: the environment, files, a separate /etc."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.ran import clean_environment, ran

SYSTEM_FILE = "/etc/hakmem.conf"


@dataclass(frozen=True)
class Outcome:
    values: dict[str, int | None]  # None: there is no such option
    privileged: bool
    complaints: list[str]


def run_apart(command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """In a folder that goes afterwards: the option stats_file has files written there."""
    with TemporaryDirectory() as folder:
        return ran(*command, env=clean_environment() | variables, cwd=folder)


def complaints_in(text: str) -> list[str]:
    """Lines about options. What was learned (test_learn.py), statistics (../watch/test_own.py) and
    that nothing is recorded, since the folder is not there (../record), are none."""
    lines = (line for line in text.splitlines() if line.startswith("hakmem: "))
    return [
        line for line in lines if not line.startswith(("hakmem: learned: ", "hakmem: record: "))
    ]


def ask(program: Path | list[str], *names: str, **variables: str) -> Outcome:
    """What is in force of these options in a program, or in one that a command runs."""
    command = [*(program if isinstance(program, list) else [str(program)]), *names]
    done = run_apart(command, variables)
    assert done.returncode == 0, f"{command}: exit status {done.returncode}\n{done.stderr}"
    lines = done.stdout.splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if line != "privileged")
    values = {name: None if value == "none" else int(value) for name, value in pairs}
    return Outcome(values, "privileged" in lines, complaints_in(done.stderr))


def other_etc(folder: Path, text: str | None) -> list[str]:
    """A command that runs another one where /etc/hakmem.conf has this text, or is a directory."""
    etc = folder / "etc"
    etc.mkdir()
    etc.chmod(0o755)
    if Path("/etc/ld.so.cache").exists():
        shutil.copy("/etc/ld.so.cache", etc)
    if text is None:
        (etc / "hakmem.conf").mkdir()
    else:
        (etc / "hakmem.conf").write_text(text)
    apart = ["unshare", "-m" if os.geteuid() == 0 else "-rm"]
    command = [*apart, "sh", "-c", 'mount --bind "$0" /etc && exec "$@"', str(etc)]
    try:
        done = ran(*command, "true")
    except FileNotFoundError:
        pytest.skip("unshare is not installed")
    if done.returncode:
        pytest.skip(f"no /etc of one's own here: {done.stderr.strip()}")
    return command
