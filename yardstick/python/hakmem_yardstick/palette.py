"""One colour, shape and dash an allocator, the same in all plots; and plots that follow the light.

A plot is drawn in the light colours. The style that an SVG file carries swaps each of them for its
dark one where the reader's screen is dark; the HTML report does the same with its own switch.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hakmem_yardstick.model import Allocator, Kind

INK, QUIET, GUIDE, PAPER, TINT = "#1f2328", "#57606a", "#e3e7eb", "#ffffff", "#edf7ef"
_DARK = {INK: "#e6edf3", QUIET: "#9aa4af", GUIDE: "#2a3038", PAPER: "#0d1117", TINT: "#11231a"}

# What is drawn with, first of those there is. Metrics of the first two are the same.
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


@dataclass(frozen=True)
class Look:
    colour: str
    dark: str
    shape: str
    dash: tuple[int, ...]


_OURS = Look("#cf1245", "#ff5c83", "circle", (1, 0))
_LOOKS = {
    "glibc": Look("#6e7780", "#a3adb8", "square", (2, 2)),
    "mimalloc": Look("#1f74d1", "#5aa7ff", "triangle-up", (6, 2)),
    "mimalloc2": Look("#1f74d1", "#5aa7ff", "triangle-up", (6, 2)),
    "jemalloc": Look("#db8000", "#f2a541", "diamond", (8, 3, 2, 3)),
    "tcmalloc": Look("#188a5b", "#43c08a", "triangle-down", (4, 2)),
    "mimalloc3": Look("#0b9fb3", "#3cc8da", "cross", (10, 3)),
    "snmalloc": Look("#7d4ddb", "#b28cf5", "triangle-right", (3, 3)),
    "rpmalloc": Look("#8a5a34", "#c79063", "triangle-left", (6, 2, 2, 2)),
    "scudo": Look("#d2559c", "#f08cc2", "M0,-1.2L1.2,0L1,1L-1,1L-1.2,0Z", (5, 5)),
    "hardened_malloc": Look("#74831a", "#aaba4c", "M-1,-1L1,1L1,-1L-1,1Z", (2, 4)),
    "jemalloc-new": Look("#b5530c", "#e08a4a", "M-1,-1L1,-1L-1,1L1,1Z", (8, 2, 2, 2)),
    "tcmalloc-google": Look("#4059ad", "#8fa3ea", "M-0.6,-1.2L0.6,-1.2L0.6,1.2L-0.6,1.2Z", (7, 3)),
}
_MORE = (
    Look("#a63d40", "#e08587", "M-1.2,-0.6L1.2,-0.6L1.2,0.6L-1.2,0.6Z", (3, 2)),
    Look("#3d7a3a", "#83bf80", "M0,-1.2L1.2,1.2L0,0.4L-1.2,1.2Z", (9, 2)),
    Look("#85648f", "#c3a2cd", "M0,1.2L1.2,-1.2L0,-0.4L-1.2,-1.2Z", (4, 4)),
)
_FLOOR = Look("#a0a8b0", "#6d7681", "stroke", (1, 2))
# Ours with settings of its own, beside ours as it comes.
_VARIANTS = (
    Look("#e0708f", "#ffa3b8", "M0,-1.2L1.2,0L0,1.2L-1.2,0Z", (4, 2)),
    Look("#8f0f33", "#d9365f", "M-1,-1L1,-1L1,1L-1,1Z", (2, 2)),
    Look("#f29db3", "#ffc4d1", "M-1.2,0.8L0,-1.2L1.2,0.8Z", (6, 2)),
)


def looks(allocators: Iterable[Allocator]) -> dict[str, Look]:
    """By name; who has no look of its own gets the next that is free."""
    found: dict[str, Look] = {}
    more, variants = 0, 0
    for allocator in allocators:
        name = allocator.name
        if allocator.kind is Kind.FLOOR:
            found[name] = _FLOOR
        elif allocator.kind is Kind.OURS and "+" in name:
            found[name] = _VARIANTS[variants % len(_VARIANTS)]
            variants += 1
        elif allocator.kind is Kind.OURS:
            found[name] = _OURS
        elif name in _LOOKS and _LOOKS[name] not in found.values():
            found[name] = _LOOKS[name]
        else:
            found[name] = _MORE[more % len(_MORE)]
            more += 1
    return found


def dark_rules(allocators: Iterable[Allocator], within: str = "") -> str:
    """CSS that turns a plot's light colours into its dark ones, for elements within a selector."""
    swaps = {**_DARK, **{look.colour: look.dark for look in looks(allocators).values()}}
    return "".join(
        f'{within}[{what}="{light}"]{{{what}:{dark}}}'
        for light, dark in swaps.items()
        for what in ("fill", "stroke")
    )
