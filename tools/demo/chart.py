"""A picture of resident memory over the phases of a run, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

BLOCKS = " ▁▂▃▄▅▆▇█"
ROWS, COLUMNS = 4, 15  # of each curve; of each phase

Phases = Sequence[Sequence[float]]  # MiB in the order of time, of each phase


def chart(curves: Mapping[str, Phases], phases: Sequence[str], ours: str) -> Iterator[Text]:
    """All curves with one scale. Each phase is as wide, however long it took."""
    most = max(mib for curve in curves.values() for phase in curve for mib in phase)
    label = max(len(title) for title in curves) + 1
    yield Text(" " * (label + 9) + "".join(f"{phase:{COLUMNS + 1}}" for phase in phases).rstrip())
    for title, curve in curves.items():
        heights = [
            [mib / most * ROWS for mib in resampled(phase)] if phase else [0.0] * COLUMNS
            for phase in curve
        ]
        for row in reversed(range(ROWS)):
            head = f"{title:{label}}{max(map(max, curve)):4.0f} MiB" if row == ROWS - 1 else ""
            bars = "│".join("".join(block(height - row) for height in one) for one in heights)
            line = Text(f"{head:{label + 9}}")
            yield line.append(bars.rstrip(), style="green" if title == ours else "yellow")
        yield Text("")


def block(height: float) -> str:
    return BLOCKS[round(min(max(height, 0.0), 1.0) * (len(BLOCKS) - 1))]


def resampled(phase: Sequence[float]) -> list[float]:
    """As many as there are columns: of each the last that was seen until then."""
    last = len(phase) - 1
    return [phase[round(at * last / (COLUMNS - 1))] for at in range(COLUMNS)]
