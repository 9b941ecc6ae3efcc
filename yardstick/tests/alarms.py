"""How often `hakmem compare` cries wolf on this machine, and whether it finds 3%.

    PYTHONPATH=python:yardstick/python python3 -m yardstick.tests.alarms \\
        --hakmem build/release/bin/hakmem

Makes 100 comparisons of an allocator with itself, half on hakmem and half on glibc, and 20 of one
with an allocator that burns so many instructions that the program takes 3% more processor time. The
amount is first found by measuring an allocator that is slower by far. Takes some ten minutes on a
quiet machine; on a busy one the false alarms must be as few, and the 3% may not be found.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from hakmem_yardstick import stats
from hakmem_yardstick.compare_runs import ROW
from hakmem_yardstick.model import Results, results_of
from hakmem_yardstick.subject import JUDGED
from yardstick.tests import made
from yardstick.tests.made import Compare

SLOWDOWN = 0.03
MANY_TURNS = 4000
TURNS = "1500000"  # of the program: some 0.1 s, long enough for samples of its memory


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hakmem", type=Path, required=True, help="the built bin/hakmem")
    parser.add_argument("--again", type=int, default=100, help="comparisons of one with itself")
    parser.add_argument("--slower", type=int, default=20, help="comparisons with one 3%% slower")
    parser.add_argument("--rounds", type=int, help="of each; by default until narrow enough")
    parser.add_argument("--json", type=Path, help="write the figures")
    arguments = parser.parse_args()
    rounds = ["--rounds", str(arguments.rounds)] if arguments.rounds else ["--seconds", "20"]
    with tempfile.TemporaryDirectory() as folder:
        figures = measured(arguments.hakmem.absolute(), Path(folder), arguments, rounds)
    print(json.dumps(figures, indent=1))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if figures["alarms"] <= arguments.again / 10 else 1


def measured(
    hakmem: Path, folder: Path, arguments: argparse.Namespace, rounds: list[str]
) -> dict[str, Any]:
    compare = Compare(hakmem, folder)
    work = made.program(folder)
    began = time.monotonic()
    alarms: list[str] = []
    plain: Counter[str] = Counter()
    made_rounds: list[int] = []
    for number in range(arguments.again):
        name = ("hakmem", "glibc")[number % 2]
        results, said = one(compare, [*rounds, name, name], work)
        made_rounds.append(len(results.of(ROW, name)))
        if "no difference shown." not in said:
            alarms.append(verdict(said))
        for measure in JUDGED:
            known = stats.ratio(results, ROW, f"{name}#2", name, measure)
            plain[measure] += known is not None and (known.shown_better or known.shown_worse)
        print(f"{number + 1}: {verdict(said)}", file=sys.stderr, flush=True)
    minutes = (time.monotonic() - began) / 60

    same = made.worse(folder, turns=1)
    turns = calibrated(compare, folder, work)
    slow = made.worse(folder, turns=turns)
    found: list[dict[str, Any]] = []
    for _ in range(arguments.slower):
        options = [*rounds, "--measures", "time,cpu", f"base={same}", f"slow={slow}"]
        results, said = one(compare, options, work)
        ratios = {m: stats.ratio(results, ROW, "slow", "base", m) for m in ("time", "cpu")}
        shown = {m: [r.low, r.value, r.high] for m, r in ratios.items() if r is not None}
        found.append({"found": "worse in" in said, "verdict": verdict(said)} | shown)
        print(verdict(said), file=sys.stderr, flush=True)
    return {
        "comparisons": arguments.again,
        "alarms": len(alarms),
        "alarm_verdicts": alarms,
        # Each measure by itself, which no verdict says.
        "intervals_without_1": dict(plain),
        "rounds": {"median": statistics.median(made_rounds), "most": max(made_rounds)},
        "minutes": round(minutes, 1),
        "slowdown": SLOWDOWN,
        "turns": turns,
        "slower_comparisons": arguments.slower,
        # What it really cost: the middle of all.
        "slower_by": statistics.median(each["cpu"][1] for each in found) - 1 if found else None,
        "slower_found": sum(each["found"] for each in found),
        "slower": found,
    }


def calibrated(compare: Compare, folder: Path, work: Path) -> int:
    """The turns that cost 3% of the program's processor time, from many, which tell it exactly."""
    slow = made.worse(folder, turns=MANY_TURNS)
    words = [f"base={made.worse(folder, turns=1)}", f"slow={slow}"]
    results, _ = one(compare, ["--rounds", "20", *words], work)
    known = stats.ratio(results, ROW, "slow", "base", "cpu")
    assert known is not None and known.value > 1
    return max(2, round(MANY_TURNS * SLOWDOWN / (known.value - 1)))


def one(compare: Compare, options: list[str], work: Path) -> tuple[Results, str]:
    said = compare("--json", "runs.json", *options, program=[work, TURNS])
    if said.status != 0:
        sys.exit(f"hakmem compare failed: {said.err}")
    return results_of(compare.json()), said.out


def verdict(said: str) -> str:
    return next(line for line in said.splitlines() if " against " in line)


if __name__ == "__main__":
    sys.exit(main())
