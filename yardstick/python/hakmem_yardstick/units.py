"""Figures and parameters as people read them."""

import math
from dataclasses import dataclass

from hakmem_yardstick.model import Row

THIN = "\N{NARROW NO-BREAK SPACE}"
DASH = "\N{EN DASH}"

_STEPS = {
    "ns": (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)),
    "s": (("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)),
    "KiB": (("KiB", 1.0), ("MiB", 1024.0), ("GiB", 1024.0**2)),
}
# A unit is changed for the next one where the figure would take more digits before the point.
_MOST = {"KiB": 10240.0}


@dataclass(frozen=True)
class Scale:
    """A unit that suits a row's figures, and what they are divided by."""

    unit: str
    divisor: float

    def text(self, value: float) -> str:
        return number(value / self.divisor)


def scale_for(unit: str, values: list[float]) -> Scale:
    """One unit for all figures of a row, chosen by the smallest of them."""
    known = [value for value in values if value > 0]
    steps = _STEPS.get(unit)
    if steps is None or not known:
        return Scale(unit, 1.0)
    least, most = min(known), _MOST.get(unit, 1000.0)
    name, divisor = steps[0]
    for next_name, next_divisor in steps[1:]:
        if least / divisor < most:
            break
        name, divisor = next_name, next_divisor
    return Scale(name, divisor)


def number(value: float) -> str:
    """Three significant digits, whole numbers in full."""
    size = abs(value)
    if size == 0 or not math.isfinite(value):
        return f"{value:g}"
    if size >= 1e7:
        return f"{value:.3g}".replace("e+0", "e").replace("e+", "e")
    if size >= 100:
        return f"{value:,.0f}".replace(",", THIN)
    return f"{value:.{max(0, 2 - math.floor(math.log10(size)))}f}"


def of_bytes(count: float) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.4g}{THIN}{unit}"
    return f"{count:g}{THIN}B"


def axis_of_kib(most: float) -> tuple[str, float]:
    """A unit for an axis that ends there, and how many KiB it is: 8 GiB, not 8,192 MiB."""
    for unit, kib in (("GiB", 1 << 20), ("MiB", 1 << 10)):
        if most >= 2 * kib:
            return unit, float(kib)
    return "KiB", 1.0


def parameters_text(row: Row) -> str:
    """All of a row's parameters, sizes in units: "min 16 B, max 1 KiB, slots 8192"."""
    sized = {k: of_bytes(row.parameters[k]) for k in ("min", "max") if k in row.parameters}
    parameters = {**row.parameters, **sized}
    return ", ".join(f"{key} {value}" for key, value in parameters.items() if value)
