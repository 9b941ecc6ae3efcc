"""Parts of `hakmem tune` by themselves: halving, verdicts."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import pytest

from hakmem_yardstick import candidates, verdict
from hakmem_yardstick.compare_runs import Until
from hakmem_yardstick.duels import Duels
from hakmem_yardstick.halving import Screened, best
from hakmem_yardstick.model import Allocator, Kind, Run
from hakmem_yardstick.replay import Played
from hakmem_yardstick.subject import Figure, Program


def _duels(means: dict[str, float], rounds: int, seed: int, noise: float = 0.03) -> Duels:
    draw = random.Random(seed)
    allocators = [Allocator(name, Kind.OURS) for name in means]
    made = Duels(Program(("true",)), allocators, ("time", "peak"), seed)
    for number in range(rounds):
        for at, (name, mean) in enumerate(means.items()):
            values = {
                "time": mean * math.exp(draw.gauss(0, noise)),
                "peak": 10000.0 + draw.random(),
            }
            made.results.runs.append(Run("program", name, number, at, 0.0, mean, values=values))
    return made


def test_a_gain_is_found() -> None:
    duels = _duels({"a": 1.0, "a#2": 1.0, "b": 0.9, "c": 1.0}, 20, 1)
    answer = verdict.best(duels, 0.02)
    assert answer is not None and answer.name == "b" and answer.gains == ("time",)
    ratio = answer.ratios["time"]
    assert ratio.low < 0.9 < ratio.high or abs(ratio.value - 0.9) < 0.03
    assert "time 0." in answer.text()


def test_a_gain_at_a_price_is_none() -> None:
    duels = _duels({"a": 1.0, "b": 0.9}, 20, 1)
    for run in list(duels.results.runs):
        if run.allocator == "b":
            run.values["peak"] *= 1.5  # type: ignore[index]
    assert verdict.best(duels, 0.02) is None
    trade = verdict.trade(duels, 0.02)
    assert trade is not None and trade.losses == ("peak",)


def test_false_gains_are_rare() -> None:
    """Of 400 series in which nothing differs: 1% would be 4, and 12 are more than chance."""
    names = ("a", "a#2", "b", "c", "d")
    found = sum(
        verdict.best(_duels(dict.fromkeys(names, 1.0), 14, seed), 0.0) is not None
        for seed in range(400)
    )
    assert found <= 12


def test_least_rounds_can_show_something() -> None:
    duels = _duels({"a": 1.0, "b": 0.5}, 1, 1)
    fewer = _duels({"a": 1.0, "b": 0.5}, duels.least_rounds - 1, 1)
    enough = _duels({"a": 1.0, "b": 0.5}, duels.least_rounds, 1)
    assert verdict.best(fewer, 0.02) is None
    assert verdict.best(enough, 0.02) is not None


def _screened(name: str, cpu: float, peak: int) -> Screened:
    played = Played(name, "ok", peak=peak, mean=float(peak), cpu=cpu)
    return Screened(Allocator(name, Kind.OURS), [played])


def test_halving_keeps_the_best_of_each_measure() -> None:
    those = [_screened("fast", 0.5, 150), _screened("lean", 2.0, 50), _screened("both", 0.9, 90),
             _screened("bad", 2.0, 200)]  # fmt: skip
    names = [one.allocator.name for one in best(those, 3, ("cpu", "peak", "mean"))]
    assert set(names) == {"fast", "lean", "both"}


def test_candidates() -> None:
    names = candidates.names("hakmem", ["glibc"])
    assert "hakmem+huge_pages=off" in names and "hakmem+huge_pages=on" not in names
    assert names[-1] == "glibc"
    names = candidates.names("hakmem+huge_pages=off", [])
    assert "hakmem+huge_pages=on" in names
    assert "hakmem+huge_pages=off+keep_bytes=0" in names
    assert len(names) == len(set(names))


def test_every_candidate_is_a_setting(pytestconfig: pytest.Config) -> None:
    from hakmem.table import table

    known = {option.name for option in table()}
    for candidate in candidates.CANDIDATES:
        for setting in candidate.settings:
            assert setting.partition("=")[0] in known, setting


def test_figures() -> None:
    figure = Figure(re.compile(r"rate: ([\d.,]+)"), True)
    assert figure.found("rate: 1,250.0 each") == pytest.approx(1 / 1250)
    assert figure.found("rate: 0") is None
    assert figure.found("nothing") is None
    assert Figure(re.compile(r"p99=(\S+)")).found("p99=3.5") == 3.5
    assert Figure(re.compile(r"p99=(\S+)")).found("p99=soon") is None


def test_rounds_go_on(tmp_path: Path) -> None:
    """A first round says how many more there is time for; it counts."""
    duels = Duels(
        Program(("true",)), [Allocator("a", Kind.PEER), Allocator("b", Kind.PEER)], ("time",)
    )
    duels.run(Until(rounds=1))
    duels.run(Until(rounds=3))
    assert sorted({run.round for run in duels.results.runs}) == [0, 1, 2]
    assert len(duels.results.runs) == 6
