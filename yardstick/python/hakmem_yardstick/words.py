"""Findings in words and signs, the same in all forms of a report."""

from collections import Counter
from collections.abc import Iterable

from hakmem_yardstick.content import Against, Content, Means, Standing
from hakmem_yardstick.goals import BEST, ITSELF, Goal, Verdict
from hakmem_yardstick.stats import FEWEST_ROUNDS, Mean, Ratio
from hakmem_yardstick.units import DASH

_SIGNS = {
    Standing.BETTER: "\N{BLACK DOWN-POINTING TRIANGLE}",
    Standing.WORSE: "\N{BLACK UP-POINTING TRIANGLE}",
    Standing.LEVEL: "\N{ALMOST EQUAL TO}",
    Standing.UNKNOWN: "",
}


def sign(standing: Standing) -> str:
    """Smaller is better: down for better, up for worse."""
    return _SIGNS[standing]


def counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def decimals(value: float) -> str:
    """A ratio: two digits after the point, three where it is small or next to 1."""
    if value < 0.1 or 0 < abs(value - 1) < 0.005:
        return f"{value:.3f}"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def interval(ratio: Ratio) -> str:
    """Empty where there were too few rounds, or no need of them."""
    if not ratio.is_known or ratio.low == ratio.high:
        return ""
    return f"{decimals(ratio.low)}{DASH}{decimals(ratio.high)}"


def ratio_text(ratio: Ratio) -> str:
    within = interval(ratio)
    return f"{decimals(ratio.value)} ({within})" if within else decimals(ratio.value)


def mean_text(mean: Mean | None) -> str:
    """With a star where it is not over all rows."""
    return f"{decimals(mean.ratio.value)}{'*' if mean.without else ''}" if mean else "-"


def against_text(against: Against) -> str:
    return f"{sign(against.standing)} {ratio_text(against.ratio)}".strip()


def standings_text(ours: str | None, standings: Iterable[Standing]) -> str:
    """To the best peers of rows."""
    found = list(standings)
    if ours is None or not found:
        return ""
    count = {standing: found.count(standing) for standing in Standing}
    if count[Standing.UNKNOWN] == len(found):
        return f"{TOO_FEW}: fewer than {FEWEST_ROUNDS}."
    parts = [f"{sign(standing)} {count[standing]} {word}" for standing, word in _SAID.items()]
    if count[Standing.UNKNOWN]:
        parts.append(f"{count[Standing.UNKNOWN]} with too few rounds")
    return f"{ours} to the best peer: {', '.join(parts)}."


TOO_FEW = "Too few rounds for a verdict"
_UNDECIDED = "too few rounds"
_SAID = {
    Standing.BETTER: "better",
    Standing.LEVEL: "without a difference shown",
    Standing.WORSE: "worse",
}
KEY = "; ".join(f"{sign(standing)} {word}" for standing, word in _SAID.items())


def counts_text(means: Means) -> str:
    """How many rows are better, level and worse; or why that is not known."""
    known = [means.standings[standing] for standing in _SAID]
    unknown = means.standings[Standing.UNKNOWN]
    if not sum(known):
        return TOO_FEW.lower() if unknown else "-"
    text = " / ".join(map(str, known))
    return f"{text}, {unknown} with too few rounds" if unknown else text


def percent(spread: float) -> str:
    return f"±{spread * 100:.0f}%" if spread >= 0.0095 else f"±{spread * 100:.1f}%"


def goal_text(goal: Goal) -> str:
    to = {BEST: "of the best peer", ITSELF: ""}.get(goal.to, f"of {goal.to}")
    if goal.not_worse:
        return f"not shown worse than {'the best peer' if goal.to == BEST else goal.to}"
    return f"{goal.at_most:g} {to}".strip()


def no_wins_text(content: Content) -> str:
    return "none" if content.has_verdicts else TOO_FEW.lower()


def goals_text(verdicts: Iterable[Verdict]) -> str:
    """How many are reached, missed and so on."""
    count = Counter(map(reached_text, verdicts))
    if set(count) == {_UNDECIDED}:
        return TOO_FEW.lower()
    said = {word: f"with {word}" if word == _UNDECIDED else word for word in count}
    return ", ".join(f"{number} {said[word]}" for word, number in count.most_common())


def reached_text(verdict: Verdict) -> str:
    if verdict.is_reached is None:
        return _UNDECIDED
    word = "reached" if verdict.is_reached else "missed" if verdict.is_missed else "not shown"
    return word if verdict.is_whole else f"{word} in these rows"


def goal_rows_text(verdict: Verdict) -> str:
    run = len(verdict.rows)
    return str(run) if verdict.is_whole else f"{run} of {verdict.of}"


def not_run_text(count: int) -> str:
    return f"{counted(count, 'more goal')} for rows that were not run." if count else ""


def emphasis(verdict: Verdict) -> Standing:
    if not verdict.is_whole:
        return Standing.LEVEL
    if verdict.is_reached:
        return Standing.BETTER
    return Standing.WORSE if verdict.is_missed else Standing.LEVEL


def rows_text(means: Means, name: str | None) -> str:
    """Over how many rows a mean is, where it is not over all."""
    mean = means.to_best.get(name or "")
    if mean is None or not mean.without:
        return str(len(means.rows))
    return f"{len(mean.rows)} of {len(means.rows)}"
