"""Findings in words and signs, the same in all forms of a report."""

from collections.abc import Iterable

from hakmem.bench.content import Against, Standing
from hakmem.bench.stats import FEWEST_ROUNDS, Ratio
from hakmem.bench.units import DASH

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
    """A ratio: two digits after the point, three where it is small."""
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def interval(ratio: Ratio) -> str:
    """Empty where there were too few rounds, or no need of them."""
    if not ratio.is_known or ratio.low == ratio.high:
        return ""
    return f"{decimals(ratio.low)}{DASH}{decimals(ratio.high)}"


def ratio_text(ratio: Ratio) -> str:
    within = interval(ratio)
    return f"{decimals(ratio.value)} ({within})" if within else decimals(ratio.value)


def against_text(against: Against) -> str:
    return f"{sign(against.standing)} {ratio_text(against.ratio)}".strip()


def compared(ours: str | None, standings: Iterable[Standing]) -> str:
    """To the best peers of rows."""
    found = list(standings)
    if ours is None or not found:
        return ""
    count = {standing: found.count(standing) for standing in Standing}
    if count[Standing.UNKNOWN] == len(found):
        return f"Fewer than {FEWEST_ROUNDS} rounds: too few for intervals."
    parts = [f"{count[standing]} {standing}" for standing in _SAID]
    if count[Standing.UNKNOWN]:
        parts.append(f"{count[Standing.UNKNOWN]} with too few rounds")
    return f"{ours} to the best peer: {', '.join(parts)}."


_SAID = (Standing.BETTER, Standing.LEVEL, Standing.WORSE)
