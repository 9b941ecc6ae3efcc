"""What is learned is applied, and told if the option `learn_log` is on."""

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ran import clean_environment, ran

BLOCKS = 2000
STACK = re.compile(
    r"hakmem: learned: after \d+ (?:bytes|KiB|MiB) freed: "
    r"thread \d+, blocks of 64 bytes: keeps up to (\d+) -> (\d+): (.*)"
)


@dataclass(frozen=True)
class Outcome:
    first: int
    """Refills in the first burst."""
    last: int
    lines: list[str]

    @property
    def steps(self) -> list[tuple[int, int, str]]:
        found = (STACK.fullmatch(line) for line in self.lines)
        return [(int(match[1]), int(match[2]), match[3]) for match in found if match]


def bursts(program: Path, **variables: str) -> Outcome:
    done = ran(str(program), env=clean_environment() | variables)
    assert done.returncode == 0, done.stderr
    first, last = map(int, done.stdout.split())
    return Outcome(first, last, done.stderr.splitlines())


def test_learned_stacks_hold_what_a_burst_takes(learn: Path) -> None:
    outcome = bursts(learn)
    assert outcome.lines == []
    assert outcome.last <= 2
    assert bursts(learn, HAKMEM_LEARN="on") == outcome


@pytest.mark.parametrize(("size", "blocks"), [("64K", 639), ("20K", 319), ("160K", 639), ("0", 15)])
def test_frozen_stacks_hold_what_was_said(learn: Path, size: str, blocks: int) -> None:
    """From the first burst to the last: half a stack is refilled at a time."""
    outcome = bursts(learn, HAKMEM_LEARN="off", HAKMEM_STACK_BYTES=size, HAKMEM_LEARN_LOG="on")
    half = (blocks + 1) // 2
    fewest = max(0, BLOCKS - blocks) // half
    assert fewest <= outcome.last <= BLOCKS // half + 1
    # A part of a stack, and a block of the program's start.
    assert BLOCKS // half <= outcome.first <= BLOCKS // half + 2
    assert outcome.lines == ["hakmem: learned: nothing, since learn is off"]


def test_what_is_learned_is_told(learn: Path) -> None:
    outcome = bursts(learn, HAKMEM_LEARN_LOG="on")
    assert outcome.lines[0] == f"hakmem: learned: {len(outcome.lines) - 1} steps:"
    assert outcome.steps[0] == (15, 39, "it was empty")
    grown = [step for step in outcome.steps if step[1] > step[0]]
    assert all(was == step[1] for step, (was, _, _) in itertools.pairwise(grown))
    assert outcome.last <= 2
