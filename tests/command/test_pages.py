"""The committed manual pages and completions are made from the current command, and work."""

from __future__ import annotations

import os
import pty
import select
import shutil
import sys
import time
from pathlib import Path

import pytest

from tests.command.command import Built, clean_environment
from tests.ran import ran

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "share/man/man1").glob("*.1"))
BASH = ROOT / "share/bash-completion/completions/hakmem"
ZSH = ROOT / "share/zsh/site-functions"
PACKAGE = Path("/usr/share/bash-completion/bash_completion")
SECONDS = 300


def test_they_are_what_the_command_says() -> None:
    done = ran(sys.executable, str(ROOT / "tools/pages.py"), "--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_manual_pages(page: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    command = ["groff", "-man", "-ww", "-Tutf8", "-P-cbou", str(page)]
    done = ran(*command)
    assert (done.returncode, done.stderr) == (0, "")
    for section in "NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "SEE ALSO":
        assert f"\n{section}\n" in done.stdout
    assert {page.stem for page in PAGES} == {
        "hakmem", "hakmem-run", "hakmem-doctor", "hakmem-top", "hakmem-exporter",
        "hakmem-sheet", "hakmem-profile", "hakmem-leaks", "hakmem-purge", "hakmem-set",
        "hakmem-options", "hakmem-bench", "hakmem-compare", "hakmem-record", "hakmem-trace",
        "hakmem-replay", "hakmem-tune", "hakmem-why", "hakmem-mark",
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


# What is told each shell before; to-complete completes two words by itself, which bash asks for
# where it has bash-completion. One of them is a file too, and begins as an option of hakmem's does.
SHELLS = {
    "bash": f"source {BASH}; bind 'set show-all-if-ambiguous on'",
    "bash-completion": f"source {PACKAGE}; source {BASH}; bind 'set show-all-if-ambiguous on'; "
    "_it() { COMPREPLY=($(compgen -W '--of-the-program big_one' -- $2)); }; "
    "complete -F _it to-complete",
    "zsh": f"fpath=({ZSH} $fpath); autoload -U compinit; compinit -u -D; "
    "_it() { compadd -- --of-the-program big_one; }; compdef _it to-complete",
}
CASES = [
    ("hakmem opt", "options "),
    ("hakmem --v", "version "),
    ("hakmem options keep_b", "keep_bytes "),
    ("hakmem options stack_bytes keep_b", "keep_bytes "),
    ("hakmem options --j", "json "),
    ("hakmem run --set keep_b\t1M", "keep_bytes=1M"),
    ("hakmem run --set=keep_b\t1M", "keep_bytes=1M"),
    ("hakmem run --set scavenger=off --set keep_b\t1M", "keep_bytes=1M"),
    ("hakmem run --se", "set"),
    ("hakmem run --prof", "profile "),
    ("hakmem run --profile to-c", "to-complete "),
    ("hakmem run to-c", "to-complete "),
    ("hakmem run bin/to-c", "to-complete "),
    ("hakmem run -- to-c", "to-complete "),
    ("hakmem run --set keep_bytes=1M --set=scavenger=off to-c", "to-complete "),
    ("hakmem run to-complete big_o", "big_one "),
    ("hakmem run --set keep_bytes=1M -- to-complete -o big_", "big_one "),
    ("hakmem doctor --sec", "seconds"),
    ("hakmem doctor PID", "PID "),
    ("hakmem doctor --json PID", "PID "),
    ("hakmem doctor -- to-c", "to-complete "),
    ("hakmem doctor --seconds 3 -- to-c", "to-complete "),
    ("hakmem doctor -- to-complete --json big_", "big_one "),
    ("hakmem prof", "profile "),
    ("hakmem profile --by pe", "peak "),
    ("hakmem profile -o sess", "session/"),
    ("hakmem profile --text sess", "session/"),
    ("hakmem ben", "bench "),
    ("hakmem bench --qu", "quick "),
    ("hakmem bench --only thr", "threads "),
    ("hakmem bench --quick --out sess", "session/"),
    ("hakmem bench --resume sess", "session/"),
    ("hakmem comp", "compare "),
    ("hakmem compare hakmem snm", "snmalloc "),
    ("hakmem compare hakmem glibc -- to-c", "to-complete "),
    ("hakmem compare hakmem glibc -- to-complete big_", "big_one "),
]
OF_THE_PROGRAM = [
    ("hakmem run to-complete --", "--of-the-program "),
    ("hakmem run -- to-complete --", "--of-the-program "),
    ("hakmem run -- to-complete x --", "--of-the-program "),
    ("hakmem run --set keep_bytes=1M -- to-complete --", "--of-the-program "),
    ("hakmem run --set keep_bytes=1M to-complete x --", "--of-the-program "),
    ("hakmem doctor -- to-complete --", "--of-the-program "),
    ("hakmem doctor --seconds=3 -- to-complete -- --", "--of-the-program "),
]


@pytest.mark.parametrize(
    ("shell", "line", "expected"),
    [(shell, *case) for shell in SHELLS for case in CASES]
    + [(shell, *case) for shell in ("bash-completion", "zsh") for case in OF_THE_PROGRAM],
)
def test_completion(shell: str, line: str, expected: str, built: Built, tmp_path: Path) -> None:
    if not (PACKAGE.exists() if shell == "bash-completion" else shutil.which(shell)):
        pytest.skip(f"{shell} is not installed")
    program = tmp_path / "bin/to-complete"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "big_one").touch()
    (tmp_path / "session").mkdir()
    line, expected = (text.replace("PID", str(os.getpid())) for text in (line, expected))
    path = f"{built.front.parent}:{program.parent}:{os.environ['PATH']}"
    environment = clean_environment() | {"PATH": path, "TERM": "dumb", "HOME": str(tmp_path)}
    command = ["zsh", "-f", "-i"] if shell == "zsh" else ["bash", "--norc", "--noprofile", "-i"]
    seen = typed(command, f"cd; {SHELLS[shell]}", line, expected, environment)
    assert expected in seen, seen
