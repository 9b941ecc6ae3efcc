"""Budgets: what a process, or a part of one, may use of memory, and what it used. Sizes as people
write them, sentences on what is exceeded and by which code, and JUnit's XML of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from hakmem.profile_text import LIBRARY, printable, short, size
from hakmem.symbols import Frame, Stack

_SIZE = re.compile(r"\+?([0-9]*\.?[0-9]+) *(?:([KMGT])i?)?B?", re.IGNORECASE)
SITES, LEAST = 3, 0.01  # named of each budget, and the share that one has
# Files of source and of code that say less than what calls them.
_HEADER = re.compile(r"/usr/include/|.*/include/c\+\+/|.*/lib/python3[^/]*/|<frozen ")
_LIBRARY = re.compile(r".*/(?:ld-[^/]*|lib(?:c|m|stdc\+\+|c\+\+|gcc_s|glib-2|hakmem)[-.][^/]*)$")


def read_size(text: str) -> int:
    """In bytes: '24 MB', '200M', '1.5GiB', '0'; units are powers of 1024. Raises ValueError."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r}: expected a size, such as '24 MB'")
    power = " KMGT".index((found[2] or " ").upper())
    return int(float(found[1]) * 1024**power)


@dataclass(frozen=True)
class Budget:
    option: str  # of `hakmem run`
    limit: int
    used: int
    is_size: bool
    sites: tuple[str, ...]  # the largest
    note: str = ""  # before these

    @property
    def exceeded(self) -> bool:
        return self.used > self.limit

    def amount(self, number: int) -> str:
        return size(number) if self.is_size else f"{number:,}"

    def sentence(self) -> str:
        """What was used, by how much that is too much, and by which code."""
        over = self.amount(self.used - self.limit)
        said = f"{WHAT[self.option].format(self.amount(self.used))}: {over} more than "
        said += f"{self.option} permits ({self.amount(self.limit)})"
        return f"{said}; {self.note}{', '.join(self.sites)}" if self.sites else said


WHAT = {
    "--max-peak": "{} in use at once",
    "--max-leaked": "{} lost at the end",
    "--max-allocations": "{} allocations",
}


# ---- which code ----


def place(frames: Sequence[Frame]) -> str:
    """The function and line of the program's own that is innermost; of Python, if there is any."""
    lines = [(line, frame.module) for frame in frames for line in frame.shown]
    own = [
        line
        for line, module in lines
        if not LIBRARY.match(line.function)
        and not _HEADER.match(line.file)
        and (module is None or not _LIBRARY.match(module.path))
    ]
    python = [line for line in own if line.is_script or line.file.endswith(".py")]
    callers = [line for line in own if not line.is_wrapper]
    found = python or callers or own or [line for line, _ in lines]
    return short(found[0]) if found else "code without a call stack"


def largest(stacks: Iterable[Stack], at: Sequence[int], is_size: bool) -> tuple[str, ...]:
    """The places with most, by these figures of the stacks; none that has next to nothing."""
    sums: dict[str, float] = defaultdict(float)
    for stack in stacks:
        sums[place(stack.frames)] += sum(stack.figures[i] for i in at)
    least = LEAST * sum(sums.values())
    most = sorted((one for one in sums.items() if one[1] > least), key=lambda one: -one[1])
    return tuple(
        f"{size(amount) if is_size else f'{amount:,.0f}'} by {name}"
        for name, amount in most[:SITES]
    )


# ---- JUnit ----


@dataclass(frozen=True)
class Checked:
    """A process at its end."""

    name: str  # and its number, as in "tests (4711)"
    is_program: bool
    budgets: tuple[Budget, ...] = ()
    error: str = ""  # why these are missing, or say little


def junit(processes: Sequence[Checked], options: Iterable[str]) -> bytes:
    """A test case for each budget: it failed if a process exceeded that, and else is an error if
    one could not be checked. The program comes first, and is missing until it has ended."""
    program = processes[0].name.rpartition(" (")[0]  # its name is compared from run to run
    errors = [f"{one.name}: {one.error}" for one in processes if one.error]
    if not processes[0].is_program:
        errors.append("the run was stopped before the program ended")
    cases = []
    for option in options:
        case = ElementTree.Element("testcase", classname=f"hakmem.{program}", name=option, time="0")
        wrong = [
            f"{one.name}: {budget.sentence()}"
            for one in processes
            for budget in one.budgets
            if budget.option == option and budget.exceeded
        ]
        if wrong:
            _add(case, "failure", "budget", wrong)
        elif errors:
            _add(case, "error", "unchecked", errors)
        cases.append(case)
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        name="hakmem",
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors=str(sum(case.find("error") is not None for case in cases)),
        skipped="0",
        time="0",
    )
    suite.extend(cases)
    ElementTree.indent(suites)
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"


def _add(case: ElementTree.Element, kind: str, type_: str, lines: Sequence[str]) -> None:
    said = [printable(line) for line in lines]
    element = ElementTree.SubElement(case, kind, message=said[0], type=type_)
    element.text = "\n".join(said)
