"""Figures and parameters as people read them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
            return (
                f"{count / size:g}{THIN}{unit}"
                if count % size == 0
                else f"{count / size:.4g}{THIN}{unit}"
            )
    return f"{count:g}{THIN}B"


def axis_of_kib(most: float) -> tuple[str, float]:
    """A unit for an axis that ends there, and how many KiB it is: 8 GiB, not 8,192 MiB."""
    for unit, kib in (("GiB", 1 << 20), ("MiB", 1 << 10)):
        if most >= 2 * kib:
            return unit, float(kib)
    return "KiB", 1.0


def _count(value: float, what: str) -> str:
    for letter, size in (("M", 1e6), ("k", 1e3)):
        if value >= size and (value >= 10 * size or value * 1e3 % size == 0):
            return f"{value / size:.4g}{THIN}{letter} {what}"
    return f"{value:g} {what}"


def _sizes(parameters: Mapping[str, Any]) -> str:
    low, high = parameters.get("min"), parameters.get("max")
    if low is None or high is None:
        return ""
    if low == high:
        return of_bytes(low)
    return f"{of_bytes(low)}{DASH}{of_bytes(high)}"


_TOUCHES = {
    "none": "not written",
    "first": "first byte written",
    "both": "first and last byte written",
}
_ORDERS = {"reverse": "freed in reverse", "shuffled": "freed in shuffled order"}
# Said in words of their own, or of no interest to who reads a table: seeds and pinning are the same
# for all rows.
_SPOKEN = {
    "min",
    "max",
    "slots",
    "batch",
    "threads",
    "iterations",
    "touch",
    "order",
    "check",
    "pin",
    "seed",
}


def parameters_text(row: Row) -> str:
    """All of a row's parameters in a line: "16 B-1 KiB, 8192 slots, 2 threads, 30 M turns"."""
    p = row.parameters
    parts = [_sizes(p)]
    if p.get("slots", 0) > 1:
        parts.append(f"{p['slots']} slots")
    if p.get("batch", 0):
        parts.append(f"batches of {p['batch']}")
    if row.threads > 1:
        parts.append(f"{row.threads} threads")
    if p.get("iterations"):
        parts.append(_count(p["iterations"], "turns"))
    parts.append(_TOUCHES.get(p.get("touch", ""), ""))
    parts.append(_ORDERS.get(p.get("order", ""), ""))
    if p.get("check"):
        parts.append("content verified")
    if p.get("pin") is False:
        parts.append("not pinned")
    if p.get("seed", 1) != 1:
        parts.append(f"seed {p['seed']}")
    parts += [f"{key} {value}" for key, value in p.items() if value and key not in _SPOKEN]
    return ", ".join(part for part in parts if part)
