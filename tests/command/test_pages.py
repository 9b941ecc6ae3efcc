"""The committed manual pages and completions: made from the command as it is, and working."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command.command import Built, clean_environment

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "share/man/man1").glob("*.1"))
BASH = ROOT / "share/bash-completion/completions/hakmem"
ZSH = ROOT / "share/zsh/site-functions"
SECONDS = 60


def test_they_are_what_the_command_says() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/pages.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_manual_pages(page: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    command = ["groff", "-man", "-ww", "-Tutf8", "-P-cbou", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (0, "")
    for section in "NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "SEE ALSO":
        assert f"\n{section}\n" in done.stdout
    assert {page.stem for page in PAGES} == {
        "hakmem", "hakmem-run", "hakmem-doctor", "hakmem-options"
    }  # fmt: skip


def typed(
    shell: list[str], setup: str, line: str, expected: str, environment: dict[str, str]
) -> str:
    """What a terminal shows once a line and a tab were typed, up to what is expected."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(shell[0], shell, environment)
    seen = ""
    try:
        # The word comes in two parts: else the terminal's echo would be taken for the answer.
        for text, until in ((f"{setup}; echo rea''dy\n", "ready"), (f"{line}\t", expected)):
            os.write(terminal, text.encode())
            seen = ""
            end = time.monotonic() + SECONDS
            while until not in seen and time.monotonic() < end:
                if select.select([terminal], [], [], 1)[0]:
                    seen += os.read(terminal, 65536).decode(errors="replace")
    finally:
        os.close(terminal)  # which hangs up
        os.waitpid(pid, 0)
    return seen


CASES = [
    ("hakmem opt", "options "),
    ("hakmem options big_c", "big_cache_bytes"),
    ("hakmem run -o big_c", "big_cache_bytes="),
    ("hakmem run to-c", "to-complete"),
    ("hakmem doctor --sec", "seconds"),
]


@pytest.mark.parametrize(("line", "expected"), CASES)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(shell: str, line: str, expected: str, built: Built, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    program = tmp_path / "to-complete"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = f"{built.front.parent}:{tmp_path}:{os.environ['PATH']}"
    environment = clean_environment() | {"PATH": path, "TERM": "dumb", "HOME": str(tmp_path)}
    command, setup = {
        "bash": (["bash", "--norc", "--noprofile", "-i"], f"source {BASH}"),
        "zsh": (["zsh", "-f", "-i"], f"fpath=({ZSH} $fpath); autoload -U compinit; compinit -u -D"),
    }[shell]
    seen = typed(command, setup, line, expected, environment)
    assert expected in seen, seen
