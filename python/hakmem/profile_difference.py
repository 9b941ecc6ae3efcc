"""What two heap profiles of a program differ by, stack by stack, and what of it is significant.

Addresses differ from run to run, so stacks are compared by what they mean: where both profiles have
the same build of a file, by the place in the file, else by the names of functions.

A difference is significant where the choice of samples does not explain it. If both profiles are of
programs that allocate the same, each sample that one of them has adds c bytes to the difference or
takes them away, and it is there with the chance of 1 in w blocks like it. So the difference is a
sum of independent terms, each of which is 0 or c or -c, with the sum of their variances known. Of
such a sum the chance to be further from 0 than d is bounded as Chernoff's bound has it:
2 exp(-v (u asinh u - sqrt(1 + u u) + 1)) for v = variance / c c, and u = d c / variance. Of many
differences the chance that any is called significant by mistake is kept at ALPHA by Holm's way.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace

from hakmem import symbols
from hakmem.symbols import Frame, Named, Significant, Stack

NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
ALPHA = 0.05
KINDS = range(3)  # in use, allocated, peak


@dataclass
class _Change:
    """Of the bytes of each kind, how they differ, and what both profiles have together."""

    difference: list[float] = field(default_factory=lambda: [0.0] * len(KINDS))
    variance: list[float] = field(default_factory=lambda: [0.0] * len(KINDS))
    both: list[float] = field(default_factory=lambda: [0.0] * len(KINDS))
    samples: list[float] = field(default_factory=lambda: [0.0] * len(KINDS))

    def add(self, stack: Stack, sign: int) -> None:
        for kind in KINDS:
            size = stack.figures[2 * kind + 1]
            self.difference[kind] += sign * size
            self.variance[kind] += stack.errors[2 * kind + 1] ** 2
            self.both[kind] += size
            self.samples[kind] += stack.samples[kind]

    def chance(self, kind: int) -> float:
        """At most; of equal programs to differ as much."""
        size, variance, both = abs(self.difference[kind]), self.variance[kind], self.both[kind]
        if size == 0 or variance == 0:
            return float(size == 0)
        # What a sample adds: the mean, or where samples stand for more or less the one that
        # counts for most of the variance.
        each = max(both / max(self.samples[kind], 1), variance / both)
        u = size * each / variance
        power = variance / each**2 * (u * math.asinh(u) - math.hypot(1, u) + 1)
        return min(2 * math.exp(-power), 1.0)


def difference(now: Named, before: Named, sides: tuple[str, str] = ("before", "now")) -> Named:
    same = {
        path
        for path, build_id in now.build_ids.items()
        if build_id and before.build_ids.get(path) == build_id
    }

    def meaning(frame: Frame) -> Hashable:
        path = "" if frame.module is None else frame.module.path
        if path in same or not frame.lines:
            return path, frame.within
        return tuple(line.function for line in frame.lines)

    stacks: dict[Hashable, Stack] = {}
    of_stack: dict[Hashable, _Change] = defaultdict(_Change)
    of_function: dict[Hashable, _Change] = defaultdict(_Change)
    for sign, profile in ((1, now), (-1, before)):
        for stack in profile.stacks:
            key = tuple(meaning(frame) for frame in stack.frames)
            known = stacks.get(key, Stack(stack.frames, NOTHING, NOTHING))
            stacks[key] = symbols.added(known, stack, sign)
            of_stack[key].add(stack, sign)
            for function in {line.function for line in stack.lines()}:
                of_function[function].add(stack, sign)
    every = [*of_stack.values(), *of_function.values()]
    significant = dict(zip(map(id, every), _significant(every), strict=True))
    return Named(
        now.rate,
        tuple(
            replace(stack, significant=significant[id(of_stack[key])])
            for key, stack in stacks.items()
            if any(stack.figures)
        ),
        {**before.build_ids, **now.build_ids},
        tuple(dict.fromkeys((*before.notes, *now.notes))),
        sides,
        {str(name): significant[id(one)] for name, one in of_function.items()},
    )


def _significant(changes: Iterable[_Change]) -> list[Significant]:
    """The one with the least chance is, if that is below ALPHA divided by the number of all; then
    the next one, if its chance is below ALPHA divided by the number of those that are left; and so
    on, until one is not."""
    found = [[False for _ in KINDS] for _ in changes]
    order = sorted(
        (change.chance(kind), which, kind)
        for which, change in enumerate(changes)
        for kind in KINDS
        if change.both[kind]
    )
    for done, (chance, which, kind) in enumerate(order):
        if chance * (len(order) - done) > ALPHA:
            break
        found[which][kind] = True
    return [(one[0], one[1], one[2]) for one in found]
