"""Mutants: lines of src/, changed by the rules of universalmutator, in a random order by a seed."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

PACKAGE = "universalmutator==1.14.1"
RULES = ("universal.rules", "c_like.rules", "c.rules")  # what its command uses for C
MADE = "/* Made by "  # how a table made by a script begins
CONDITION = r"^\s*#\s*(if|ifdef|ifndef|elif|else|endif|undef|error|pragma)\b"
ASSERTION = re.compile(r"\b(_Static_assert|static_assert|assert|ASSERT|lock_held)\s*\(")
STRING_OR_COMMENT = re.compile(
    r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*.*?\*/""", re.DOTALL
)


@dataclass(frozen=True)
class Mutant:
    file: str  # below the root
    line: int
    old: str
    new: str  # one line, or two
    nth: int = 1  # of the lines in the file with this text

    @property
    def name(self) -> str:
        """The same as long as the line itself is, wherever it moves."""
        which = f" ({self.nth})" if self.nth > 1 else ""
        return f"{self.file}: {brief(self.old)}{which} => {brief(self.new)}"

    def applied(self, source: str) -> str:
        lines = source.splitlines(keepends=True)
        assert brief(without_comments(source).splitlines()[self.line - 1]) == brief(self.old)
        lines[self.line - 1] = self.new
        return "".join(lines)


def brief(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def without_comments(source: str) -> str:
    """Each line in its place. The package leaves every line with a comment out."""

    def blank(found: re.Match[str]) -> str:
        text = found[0]
        return "\n" * text.count("\n") if text.startswith("/") else text

    return STRING_OR_COMMENT.sub(blank, source)


def assertions(lines: Sequence[str]) -> set[int]:
    """The numbers of lines that belong to an assertion: a test of one needs no other test."""
    inside, depth = set(), 0
    for number, line in enumerate(lines, 1):
        begins = ASSERTION.search(line) if depth == 0 else None
        if begins or depth > 0:
            inside.add(number)
            rest = line[begins.start() :] if begins else line
            depth += rest.count("(") - rest.count(")")
    return inside


def sources(root: Path) -> Iterator[Path]:
    for path in sorted(root.glob("src/*/*.[ch]")):
        if not path.read_text().startswith(MADE):
            yield path


def mutants_of(path: Path, root: Path) -> Iterator[Mutant]:
    from universalmutator import mutator

    lines = without_comments(path.read_text()).splitlines(keepends=True)
    left_out = assertions(lines)
    with contextlib.redirect_stdout(io.StringIO()):  # it talks
        made = mutator.mutants_regexp(
            lines, ruleFiles=list(RULES), ignorePatterns=[CONDITION], ignoreStringOnly=True
        )
    before: Counter[str] = Counter()
    nth = []
    for line in lines:
        before[brief(line)] += 1
        nth.append(before[brief(line)])
    names = set()
    for line, new, *_ in made:
        old = lines[line - 1]
        mutant = Mutant(str(path.relative_to(root)), line, old, new, nth[line - 1])
        if line not in left_out and brief(new) != brief(old) and mutant.name not in names:
            names.add(mutant.name)
            yield mutant


def drawn(mutants: Sequence[Mutant], seed: int) -> list[Mutant]:
    """Each line of code has the same chance, however many changes it allows, so that neither long
    files nor dense lines have more than their share: one mutant of every line in an order drawn by
    lot, then a second of each. The lot is a hash of the text, so a change elsewhere keeps it."""
    lines = defaultdict(list)
    for mutant in mutants:
        lines[f"{seed}/{mutant.file}/{brief(mutant.old)}/{mutant.nth}"].append(mutant)
    rounds = []
    for line, choices in lines.items():
        for turn, (_, mutant) in enumerate(
            sorted(((lot(f"{line}/{m.new}"), m) for m in choices), key=lambda each: each[0])
        ):
            rounds.append((turn, lot(line), mutant))
    return [mutant for _, _, mutant in sorted(rounds, key=lambda each: each[:2])]


def lot(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def install(folder: Path) -> None:
    """The package without the ones it names, which only its other modes import."""
    if not (folder / "universalmutator").is_dir():
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             "--no-deps", "--target", folder, PACKAGE],
            check=True,
        )  # fmt: skip
    sys.path.append(str(folder))
