"""That the statistics say what they claim: in simulated comparisons whose truth is known, and in
sums small enough to be done by hand. Every draw has a fixed seed, so that nothing here is luck."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from hakmem_yardstick import stats
from hakmem_yardstick.model import Allocator, Kind, Measure, Results, Row, Run, results_of
from hakmem_yardstick.stats import Figures, Ratio, Verdict
from yardstick.tests.noise import SHAPES, lognormal, outliers, pairs

MANY = 10_000
TIME, PEAK = Measure("time", "ns"), Measure("peak", "KiB")
PEERS = ("glibc", "mimalloc", "jemalloc", "snmalloc", "rpmalloc")


def results(
    figures: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    measure: Measure = TIME,
    exact: bool = False,
) -> Results:
    """By row and allocator, a figure for each round."""
    rows = [
        Row(name, "seed", name, "", (measure,), (measure.name,), exact=exact) for name in figures
    ]
    names = list(dict.fromkeys(name for row in figures.values() for name in row))
    made = Results(rows, [Allocator(n, Kind.OURS if n == "hakmem" else Kind.PEER) for n in names])
    for row, by_allocator in figures.items():
        for position, (name, values) in enumerate(by_allocator.items()):
            for number, value in enumerate(values):
                run = Run(row, name, number, position, 0.0, 0.1, values={measure.name: value})
                made.runs.append(run)
    return made


# ---- the interval ----


@pytest.mark.parametrize("shape", SHAPES)
def test_false_alarms_are_as_many_as_promised(shape: str) -> None:
    rng = np.random.default_rng(1)
    for rounds in (6, 7, 8, 10, 20):
        _, low, high = stats.intervals(pairs(rng, SHAPES[shape], MANY, rounds))
        rate = np.mean((low > 0) | (high < 0))
        # Where figures are whole pages, an end of the interval is often just 1, which is no alarm.
        least = 0.03 if shape == "whole pages" or rounds == 6 else 0.04
        assert least <= rate <= 0.06, f"{rounds} rounds: {rate:.2%}"


@pytest.mark.parametrize("shape", SHAPES)
def test_stopping_when_narrow_does_not_raise_the_alarms(shape: str) -> None:
    logs = pairs(np.random.default_rng(11), SHAPES[shape], MANY, stats.LOOKS[-1])
    widths, alarms = [], []
    for look in stats.LOOKS:
        centre, low, high = stats.intervals(logs[:, :look])
        widths.append(np.maximum(high - centre, centre - low))
        _, low, high = stats.intervals(logs[:, :look], 1 - stats.ERROR_AFTER_LOOKS)
        alarms.append((low > 0) | (high < 0))
    for precision in (0.005, 0.01, 0.015, 0.02, 0.03, 0.04):
        narrow = np.array(widths) <= math.log1p(precision)
        narrow[-1] = True  # there is no later look
        rate = np.mean(np.choose(narrow.argmax(axis=0), alarms))
        assert (0.03 if shape == "whole pages" else 0.038) <= rate <= 0.06, f"{precision}: {rate}"


def test_what_could_have_been_shown_would_have_been() -> None:
    rng = np.random.default_rng(4)
    for shape in (lognormal, outliers):
        known = [stats.ratio_of(logs) for logs in pairs(rng, shape, 500, 20)]
        showable = float(np.median([r.showable() for r in known if r is not None]))
        _, low, _ = stats.intervals(math.log1p(showable) + pairs(rng, shape, 2000, 20))
        assert 0.7 <= np.mean(low > 0) <= 0.92


def test_the_centre_and_the_ends_by_hand() -> None:
    """Of 1 to 6 the pairs' means are 1, 1.5, 2, 2, 2.5, 2.5, 3, ... 6; 5% lies between leaving out
    the first mean (3.1%) and the second (6.2%)."""
    centre, low, high = (float(end) for end in stats.intervals([1, 2, 3, 4, 5, 6]))
    share = (0.025 - 1 / 64) / (2 / 64 - 1 / 64)
    assert centre == 3.5
    assert low == pytest.approx(1 + share * 0.5)
    assert high == pytest.approx(6 - share * 0.5)


def test_too_few_rounds_show_nothing() -> None:
    for rounds in range(1, stats.FEWEST_ROUNDS):
        known = stats.ratio_of([0.5 + i / 100 for i in range(rounds)])
        assert known is not None and not known.is_known
        assert not known.shown_worse and not known.reached(10) and known.reach == math.inf
    assert stats.ratio_of([]) is None
    enough = stats.ratio_of([0.5 + i / 100 for i in range(stats.FEWEST_ROUNDS)])
    assert enough is not None and enough.shown_worse


def test_a_goal_is_reached_by_the_whole_interval() -> None:
    assert Ratio(0.93, 0.92, 0.95, 10).reached(0.95)
    assert not Ratio(0.93, 0.91, 0.951, 10).reached(0.95)
    assert not Ratio(0.93, 0.0, math.inf, 3).reached(0.95)
    assert not Ratio(1.01, 0.99, 1.03, 10).shown_worse  # not slower
    assert Ratio(1.02, 1.001, 1.03, 10).shown_worse


# ---- figures of results ----


def test_medians_and_ratios_of_results() -> None:
    made = results({"row": {"hakmem": [9, 11, 10, 90], "glibc": [18, 22, 20, 180]}})
    spread = stats.spread_of(made, "row", "hakmem", "time")
    assert spread is not None
    assert (spread.median, spread.low, spread.high, spread.runs) == (10.5, 9.75, 30.75, 4)
    assert stats.median_of(made, "row", "nobody", "time") is None
    halved = stats.ratio(made, "row", "hakmem", "glibc", "time")
    assert halved is not None and halved.value == pytest.approx(0.5)
    assert stats.ratio(made, "row", "hakmem", "nobody", "time") is None


def test_rounds_that_were_chosen_by_looks_are_judged_more_strictly() -> None:
    """As in compare; of rounds that are fixed, or too few for a look, the interval is the plain
    one."""
    rng = np.random.default_rng(12)
    made = results({"row": {n: np.exp(lognormal(rng, 1, 12)[0]).tolist() for n in ("a", "glibc")}})
    logs = list(stats.logs_of(made, "row", "a", "glibc", "time").values())
    strict, plain = stats.ratio_of(logs, 1 - stats.ERROR_AFTER_LOOKS), stats.ratio_of(logs)
    assert strict is not None and plain is not None and strict.reach > plain.reach
    for least, expected in (3, strict), (12, plain):
        made.settings["plan"] = {"least_rounds": least, "most_rounds": 12}
        assert stats.ratio(made, "row", "a", "glibc", "time") == expected
        mean = stats.geometric_mean(made, ["row"], "a", "time", to="glibc")
        assert mean is not None and mean.ratio.high == pytest.approx(expected.high)
    made.settings["plan"] = {"least_rounds": 3, "most_rounds": 12}
    made.runs = [run for run in made.runs if run.round < 8]
    assert stats.ratio(made, "row", "a", "glibc", "time") == stats.ratio_of(logs[:8])


def test_a_peer_that_fails_midway_is_not_the_best() -> None:
    """Else the row, and every mean with it, would have the few rounds that it lived through."""
    made = results({"row": {"hakmem": [3.0] * 8, "glibc": [4.0] * 8, "jemalloc": [2.0] * 3}})
    best = stats.ratio_to_best(made, "row", "hakmem", "time")
    assert best is not None and (best.peer, best.ratio.rounds) == ("glibc", 8)
    assert best.ratio.shown_better
    # Where nobody has enough for an interval, all count; and who lacks but the last round.
    few = results({"row": {"hakmem": [3.0] * 4, "glibc": [4.0] * 4, "jemalloc": [2.0] * 3}})
    assert stats.best_peer(few, "row", "time") == "jemalloc"
    cut = results({"row": {"hakmem": [3.0] * 6, "glibc": [4.0] * 6, "jemalloc": [2.0] * 5}})
    assert stats.best_peer(cut, "row", "time") == "jemalloc"


def test_rounds_are_paired_and_failed_runs_left_out() -> None:
    made = results({"row": {"hakmem": [1, 2, 3], "glibc": [2, 4, 6]}})
    made.runs.append(Run("row", "hakmem", 3, 0, 0, 0, outcome="hang", values={"time": 1e9}))
    made.runs.append(Run("row", "glibc", 3, 0, 0, 0, values={"time": 1.0}))
    logs = stats.logs_of(made, "row", "hakmem", "glibc", "time")
    assert list(logs) == [0, 1, 2]
    assert list(logs.values()) == pytest.approx([math.log(0.5)] * 3)


def test_a_figure_of_nothing_counts_as_the_least() -> None:
    made = results({"row": {"hakmem": [0.0] * 6, "glibc": [8.0] * 6}}, measure=PEAK)
    known = stats.ratio(made, "row", "hakmem", "glibc", "peak")
    assert known is not None and known.value == pytest.approx(0.5)  # a page to two


def test_exact_rows_are_known_from_one_run() -> None:
    made = results({"row": {"hakmem": [30], "glibc": [60]}}, exact=True)
    known = stats.ratio(made, "row", "hakmem", "glibc", "time")
    assert known == Ratio(0.5, 0.5, 0.5, 1) and known.shown_better


def test_results_read_back_are_the_same() -> None:
    made = results({"row": {"hakmem": [1, 2], "glibc": [2, 4]}})
    assert made.of("row", "hakmem").keys() == {0, 1}
    assert results_of(made.to_json()) == made


# ---- means over rows ----


def test_a_row_with_few_rounds_costs_a_mean_no_interval() -> None:
    def figures(rounds: int) -> dict[str, list[float]]:
        return {"hakmem": [1.0] * rounds, "glibc": [2.0 + 0.01 * n for n in range(rounds)]}

    long = {name: figures(6) for name in "ab"}
    mean = stats.geometric_mean(results({**long, "c": figures(3)}), "abc", "hakmem", "time")
    assert mean is not None and mean.ratio.is_known
    assert (mean.rows, mean.without) == (("a", "b"), ("c",))
    # Where most are so, it is of all, and nothing is claimed.
    most = {"a": figures(6), "b": figures(3), "c": figures(3)}
    mean = stats.geometric_mean(results(most), "abc", "hakmem", "time")
    assert mean is not None and not mean.ratio.is_known
    assert (mean.rows, mean.without) == (("a", "b", "c"), ())


def test_the_geometric_mean_by_hand() -> None:
    """Ratios to the best peer 2 and 1/2 and 2: their mean is the third root of 2."""
    made = results(
        {
            "a": {"hakmem": [20.0] * 6, "glibc": [10.0] * 6, "jemalloc": [30.0] * 6},
            "b": {"hakmem": [5.0] * 6, "glibc": [40.0] * 6, "jemalloc": [10.0] * 6},
            "c": {"hakmem": [8.0] * 9, "glibc": [4.0] * 9},
        }
    )
    assert [stats.best_peer(made, row, "time") for row in "abc"] == ["glibc", "jemalloc", "glibc"]
    best = stats.geometric_mean(made, "abc", "hakmem", "time")
    assert best is not None and best.ratio.value == pytest.approx(2 ** (1 / 3))
    assert best.ratio.rounds == 6 and best.rows == ("a", "b", "c")
    glibc = stats.geometric_mean(made, "abc", "hakmem", "time", to="glibc")
    assert glibc is not None and glibc.ratio.value == pytest.approx((2 / 8 * 2) ** (1 / 3))
    jemalloc = stats.geometric_mean(made, "abc", "jemalloc", "time")
    assert jemalloc is not None and jemalloc.ratio.value == pytest.approx(3**0.5)
    assert jemalloc.rows == ("a", "b") and jemalloc.without == ("c",)


def test_a_row_that_repeats_exactly_counts_as_any_other() -> None:
    made = results({"a": {"hakmem": [20.0] * 6, "glibc": [10.0] * 6}})
    exact = results({"b": {"hakmem": [8.0], "glibc": [64.0]}}, exact=True)
    made.rows += exact.rows
    made.runs += exact.runs
    mean = stats.geometric_mean(made, "ab", "hakmem", "time", to="glibc")
    assert mean is not None and mean.ratio.value == pytest.approx((2 / 8) ** 0.5)


def test_the_luckiest_of_five_equal_peers_is_not_called_faster() -> None:
    rng = np.random.default_rng(7)
    naive = honest = 0
    for _ in range(100):
        figures = {
            f"row{n}": {
                name: np.exp(lognormal(rng, 1, 8)[0]).tolist() for name in ("hakmem", *PEERS)
            }
            for n in range(8)
        }
        made = results(figures)
        plain = [
            list(stats.logs_of(made, row, "hakmem", peer, "time").values())
            for row in figures
            if (peer := stats.best_peer(made, row, "time")) is not None
        ]
        chosen = stats.ratio_of(np.mean(plain, axis=0))
        mean = stats.geometric_mean(made, figures, "hakmem", "time")
        assert chosen is not None and mean is not None
        assert mean.ratio.value == pytest.approx(chosen.value)
        naive += chosen.shown_worse
        honest += mean.ratio.shown_worse
    assert naive > 20  # the peer picked by its luck
    assert honest <= 10


def test_the_ratio_to_the_best_names_it() -> None:
    rng = np.random.default_rng(8)
    noise = 0.01 * rng.standard_normal((3, 8))
    made = results(
        {
            "row": {
                "hakmem": (90 * np.exp(noise[0])).tolist(),
                "glibc": (200 * np.exp(noise[1])).tolist(),
                "jemalloc": (100 * np.exp(noise[2])).tolist(),
            }
        }
    )
    best = stats.ratio_to_best(made, "row", "hakmem", "time")
    assert best is not None and best.peer == "jemalloc"
    assert best.ratio.shown_better and best.ratio.reached(0.95)


# ---- the frontier ----


def test_the_frontier_compares_by_the_rows_that_all_have() -> None:
    both = (TIME, PEAK)
    rows = [Row(name, "seed", name, "", both, ("time", "peak")) for name in ("a", "b", "c")]
    kinds = {"hakmem": Kind.OURS, "glibc": Kind.PEER, "odd": Kind.PEER}
    made = Results(rows, [Allocator(name, kind) for name, kind in kinds.items()])
    figures = {"hakmem": (1.0, 100.0), "glibc": (2.0, 80.0), "odd": (0.1, 1.0)}
    for row in "abc":
        for name, (time, peak) in figures.items():
            if name == "odd" and row != "a":
                continue  # it survives one row in three
            if name == "glibc" and row == "c":
                continue
            for number in range(6):
                values = {"time": time, "peak": peak}
                made.runs.append(Run(row, name, number, 0, 0, 0, values=values))
    points = stats.frontier(made, to="glibc")
    assert [point.name for point in points] == ["hakmem", "glibc"]
    assert all(point.time.rows == ("a", "b") for point in points)
    assert all(point.is_best_trade for point in points)
    assert points[0].time.ratio.value == pytest.approx(0.5)
    assert points[0].memory.ratio.value == pytest.approx(1.25)


# ---- order, stop rule, verdicts ----


def test_orders_are_drawn_evenly_and_again_the_same() -> None:
    drawn = [tuple(stats.drawn_order("abc", 1, "row", number)) for number in range(3000)]
    counts = {order: drawn.count(order) for order in set(drawn)}
    assert len(counts) == 6 and all(400 < count < 600 for count in counts.values())
    assert drawn == [tuple(stats.drawn_order("abc", 1, "row", n)) for n in range(3000)]


def test_narrowness() -> None:
    steady = results({"row": {"hakmem": [1.0] * 10, "glibc": [2.0] * 10}})
    assert stats.narrow_enough(steady, "row", "hakmem", 0.01)
    swinging = results({"row": {"hakmem": [1.0, 1.2] * 5, "glibc": [2.0] * 10}})
    assert not stats.narrow_enough(swinging, "row", "hakmem", 0.01)


def figures(logs: Sequence[float], base: float = 1000.0, resolution: float = 0.0) -> Figures:
    return Figures((base,) * len(logs), tuple(base * math.exp(x) for x in logs), 1e-9, resolution)


def test_five_measures_together_give_no_more_alarms_than_one() -> None:
    rng = np.random.default_rng(9)
    for shared in (0.0, 0.9):  # measures apart from one another, and such as time and its kin
        alarms = 0
        for _ in range(300):
            own = rng.standard_normal((5, 12))
            common = rng.standard_normal(12)
            logs = 0.02 * (math.sqrt(1 - shared) * own + math.sqrt(shared) * common)
            judged = stats.judge({n: figures(each) for n, each in enumerate(logs)})
            alarms += any(each.verdict is not Verdict.NONE for each in judged.values())
        assert 1 <= alarms <= 18


def test_verdicts_say_which_measure_and_which_way() -> None:
    rng = np.random.default_rng(10)
    noise = 0.01 * rng.standard_normal((3, 20))
    judged = stats.judge(
        {
            "slower": figures(0.03 + noise[0]),
            "leaner": figures(-0.05 + noise[1]),
            "same": figures(noise[2]),
        }
    )
    assert {name: each.verdict for name, each in judged.items()} == {
        "slower": Verdict.WORSE,
        "leaner": Verdict.BETTER,
        "same": Verdict.NONE,
    }
    assert judged["slower"].ratio.shown_worse
    assert 0.005 < judged["same"].showable < 0.03


def test_what_is_below_the_resolution_is_no_difference() -> None:
    page = math.log(1004 / 1000)
    apart = stats.judge({"peak": figures([page] * 10, resolution=3.0)})
    assert apart["peak"].verdict is Verdict.WORSE
    one = stats.judge({"peak": figures([page] * 10, resolution=16.0)})
    assert one["peak"].verdict is Verdict.NONE
    assert one["peak"].showable == pytest.approx(0.016)
