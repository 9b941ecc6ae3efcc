"""Findings in words and signs, the same in all forms of a report."""

from collections.abc import Iterable

from hakmem_yardstick.content import Against, Content, Means, Standing
from hakmem_yardstick.stats import FEWEST_ROUNDS, Mean, Ratio
from hakmem_yardstick.units import DASH

_SIGNS = {Standing.BETTER: "▼", Standing.WORSE: "▲", Standing.LEVEL: "≈", Standing.UNKNOWN: ""}
_SAID = {
    Standing.BETTER: "significantly better",
    Standing.LEVEL: "without a significant difference",
    Standing.WORSE: "significantly worse",
}
TOO_FEW = "Too few rounds for a verdict"


def counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def decimals(value: float) -> str:
    """A ratio: two digits after the point, three where it is small or next to 1."""
    if value < 0.1 or 0 < abs(value - 1) < 0.005:
        return f"{value:.3f}"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def ratio_text(ratio: Ratio) -> str:
    """With its interval, where there were rounds enough, and need of them."""
    text = decimals(ratio.value)
    if not ratio.is_known or ratio.low == ratio.high:
        return text
    return f"{text} ({decimals(ratio.low)}{DASH}{decimals(ratio.high)})"


def mean_text(mean: Mean | None) -> str:
    """With a star where it is not over all rows."""
    return f"{decimals(mean.ratio.value)}{'*' if mean.without else ''}" if mean else "-"


def against_text(against: Against) -> str:
    return f"{_SIGNS[against.standing]} {ratio_text(against.ratio)}".strip()


def standings_text(ours: str | None, standings: Iterable[Standing]) -> str:
    """To the best peers of rows."""
    found = list(standings)
    if ours is None or not found:
        return ""
    count = {standing: found.count(standing) for standing in Standing}
    if count[Standing.UNKNOWN] == len(found):
        return f"{TOO_FEW}: fewer than {FEWEST_ROUNDS}."
    parts = [f"{_SIGNS[standing]} {count[standing]} {word}" for standing, word in _SAID.items()]
    if count[Standing.UNKNOWN]:
        parts.append(f"{count[Standing.UNKNOWN]} with too few rounds")
    return f"{ours} to the best peer: {', '.join(parts)}."


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


def no_wins_text(content: Content) -> str:
    return "none" if content.has_verdicts else TOO_FEW.lower()


def rows_text(means: Means, name: str | None) -> str:
    """Over how many rows a mean is, where it is not over all."""
    mean = means.to_best.get(name or "")
    if mean is None or not mean.without:
        return str(len(means.rows))
    return f"{len(mean.rows)} of {len(means.rows)}"
