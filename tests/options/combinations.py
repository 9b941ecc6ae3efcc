#!/usr/bin/env python3
"""Runs the stress program under combinations of options: each at its bounds, all at once, random.

Usage: combinations.py STRESS [--combinations N] [--operations N] [--seed N]
"""

import argparse
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.options.surroundings import complaints_in, run_apart
from tools.options import AUTO, Option, number, table

OPTIONS = table()
Combination = dict[str, int | str]


def drawn(option: Option, chance: random.Random) -> int | str:
    """A bound, or any value between: small ones as often as large ones. Or auto."""
    if option.may_be_auto and chance.random() < 0.3:
        return AUTO.lower()
    least, most = number(option.least), number(option.most)
    if option.name == "stats_signal":  # not all can be handled
        return chance.choice([0, signal.SIGUSR2])
    if chance.random() < 0.3 or option.name == "hard_limit_bytes":  # the program needs memory
        return chance.choice([least, most])
    return min(most, least + int(2 ** chance.uniform(0, (most - least + 1).bit_length())) - 1)


def combinations(count: int, chance: random.Random) -> Iterator[Combination]:
    """The corners first, then what chance gives."""
    corners: list[Combination] = [
        {o.name: number(getattr(o, at)) for o in OPTIONS} for at in ("least", "most")
    ]
    for option in OPTIONS:
        for bound in (option.least, option.most):
            corners.append({option.name: number(bound)})
    chance.shuffle(tail := corners[2:])
    yield from [*corners[:2], *tail][: count // 2]
    for _ in range(count - count // 2):
        yield {option.name: drawn(option, chance) for option in OPTIONS}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("stress", type=Path)
    parser.add_argument("--combinations", type=int, default=40)
    parser.add_argument("--operations", default="300k")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    for at, combination in enumerate(combinations(arguments.combinations, chance)):
        variables = {f"HAKMEM_{name.upper()}": str(value) for name, value in combination.items()}
        threads = (1, 2, 8)[at % 3]
        command = [str(arguments.stress), "--threads", str(threads), "--seed", str(at + 1)]
        command += ["--operations", arguments.operations, "--live-mb", "64", "--timeout", "60"]
        done = run_apart(command, variables)
        if done.returncode or complaints_in(done.stderr):
            print(*(f"{name}={value}" for name, value in variables.items()), *command)
            print(f"expected exit status 0 and no words, found {done.returncode}:", done.stderr)
            return 1
    print(f"{arguments.combinations} combinations of {len(OPTIONS)} options, none broken")
    return 0


if __name__ == "__main__":
    sys.exit(main())
