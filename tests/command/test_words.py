"""What a user types, and what the command says: near words, a file that is not there, help as wide
as the terminal, former names, and the last line, which says what to do next."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from tests.command.command import SECONDS, Built, clean_environment

NOWHERE = "/nowhere/at-all"
READERS = [
    ["profile", NOWHERE],
    ["profile", "--diff", NOWHERE, NOWHERE],
    ["leaks", NOWHERE],
    ["trace", NOWHERE],
    ["sheet", NOWHERE],
]


@pytest.mark.parametrize(
    ("word", "near"),
    [("shet", "sheet"), ("recrod", "record"), ("rnu", "run"), ("options-", "options")],
)
def test_a_near_word_is_suggested(built: Built, word: str, near: str) -> None:
    done = built(word)
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        f"hakmem: there is no command '{word}'; did you mean '{near}'? see 'hakmem --help'\n"
    )


def test_no_word_is_near(built: Built) -> None:
    said = "hakmem: there is no command 'xyzzy'; see 'hakmem --help'\n"
    assert built("xyzzy").err == said


@pytest.mark.parametrize("words", READERS, ids=lambda words: "-".join(words[:2]))
def test_a_file_that_is_not_there(built: Built, words: list[str]) -> None:
    done = built(*words)
    assert (done.status, done.out) == (2, ""), done
    assert NOWHERE in done.err and done.err.count("\n") == 1


def test_former_names(built: Built) -> None:
    done = built("stat", "--json")
    assert done.status == 0 and done.out.startswith("[")
    assert done.err == "hakmem: 'stat' is now 'top --once'\n"
    for name in "-o", "--option", "--set":
        assert built("run", name, "keep_bytes=4M", "sh", "-c", "echo $HAKMEM_KEEP_BYTES").out == (
            "4M\n"
        )


def on_terminal(built: Built, *words: str, columns: int = 80, **more: str) -> str:
    """What it prints there, standard error included."""
    shown, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = clean_environment() | {"TERM": "xterm"} | more
    with subprocess.Popen(
        ["/bin/sh", built.front, *words], stdin=end, stdout=end, stderr=end, env=environment
    ) as process:
        os.close(end)
        said = b""
        while True:
            try:
                part = os.read(shown, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            said += part
        process.wait(SECONDS)
    os.close(shown)
    return said.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [50, 72, 120, 300])
def test_help_is_as_wide_as_the_terminal(built: Built, columns: int) -> None:
    fixed = built("purge", "--help").out
    said = on_terminal(built, "purge", "--help", columns=columns)
    longest = max(map(len, said.splitlines()))
    assert longest <= min(columns, 120)
    assert longest > min(columns, 110) - 16
    assert said.split() == fixed.split()


def test_help_of_a_terminal_of_no_size(built: Built) -> None:
    assert on_terminal(built, "purge", "--help", columns=0) == built("purge", "--help").out


def test_the_last_line_says_what_next(built: Built, tmp_path: Path) -> None:
    for words in (
        ["options", "keep_bytes"],
        ["doctor", "--", "true"],
        ["record", "-o", str(tmp_path / "x.recording"), "--", "true"],
    ):
        said = on_terminal(built, *words).splitlines()
        assert said[-1].startswith("\x1b[2mnext: "), (words, said)
        said = on_terminal(built, *words, NO_COLOR="1").splitlines()
        assert said[-1].startswith("next: "), (words, said)
        done = built(*words)
        assert "next: " not in done.out + done.err, words
