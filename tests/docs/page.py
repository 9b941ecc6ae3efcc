"""What a page of the documentation has users do: its blocks, and the marks before them.

A mark is a comment of HTML, which nobody sees who reads the page. README.md lists them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(r"^( *)(`{3,})([\w-]*)\s*$")
MARK = re.compile(r"^\s*<!--\s*(needs|exit|file|prepare)\b:?(.*)$")


class Malformed(Exception):
    """A line for the page's author."""


@dataclass
class Block:
    """Commands for a shell, or, where `file` is set, the text of a file."""

    line: int
    text: str
    needs: list[str] = field(default_factory=list)
    exit: int = 0
    file: str | None = None
    expected: str | None = None
    hidden: bool = False


def blocks(page: Path) -> list[Block]:
    lines = page.read_text().splitlines()
    found: list[Block] = []
    marks: dict[str, str] = {}
    output_of: Block | None = None  # the commands that a block of output may follow
    at = 0
    while at < len(lines):
        line, number = lines[at], at + 1
        if mark := MARK.match(line):
            at, text = _comment(page, lines, at)
            name, words = mark[1], text[text.index(mark[1]) + len(mark[1]) :].removeprefix(":")
            if name == "prepare":
                needs = marks.get("needs", "").split()
                found.append(Block(number, words.strip("\n"), needs, hidden=True))
                marks = {}
            else:
                marks[name] = words.strip()
        elif fence := FENCE.match(line):
            at, text = _fenced(page, lines, at, fence)
            needs = marks.get("needs", "").split()
            if fence[3] == "sh":
                output_of = Block(number, text, needs, int(marks.get("exit", "0")))
                found.append(output_of)
            elif "file" in marks:
                found.append(Block(number, text, needs, file=marks["file"]))
            elif fence[3] == "text" and output_of is not None:
                output_of.expected, output_of = text, None
            marks = {}
        elif line.startswith("#"):
            output_of = None
        elif line.strip() and marks:
            raise Malformed(f"{page}:{number}: {', '.join(marks)} belongs right before a block")
        at += 1
    return found


def _comment(page: Path, lines: list[str], at: int) -> tuple[int, str]:
    """The comment that begins on a line: its last line, and what is in it."""
    for end in range(at, len(lines)):
        if "-->" in lines[end]:
            text = "\n".join(lines[at : end + 1])
            return end, text[text.index("<!--") + 4 : text.rindex("-->")]
    raise Malformed(f"{page}:{at + 1}: this comment has no end")


def _fenced(page: Path, lines: list[str], at: int, fence: re.Match[str]) -> tuple[int, str]:
    indent = len(fence[1])
    for end in range(at + 1, len(lines)):
        if lines[end].strip() == fence[2]:
            return end, "\n".join(line[indent:] for line in lines[at + 1 : end])
    raise Malformed(f"{page}:{at + 1}: this block has no end")


def agrees(expected: str, output: str) -> bool:
    """Whether an output is the one that the page shows; `…` stands for anything within a line, and
    as a line of its own for any lines."""
    pattern = ""
    for line in expected.strip("\n").splitlines():
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.rstrip().split("…")) + r"[ \t]*\n"
    return re.fullmatch(pattern, output.rstrip("\n") + "\n") is not None
