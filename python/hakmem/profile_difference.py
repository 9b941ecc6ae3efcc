"""What two heap profiles of a program differ by, stack by stack.

Addresses differ from run to run, so stacks are compared by what they mean: where both profiles have
the same build of a file, by the place in the file, else by the names of functions.
"""

from __future__ import annotations

from collections.abc import Hashable

from hakmem import symbols
from hakmem.symbols import Frame, Named, Stack

NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def difference(now: Named, before: Named) -> Named:
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
    for sign, profile in ((1, now), (-1, before)):
        for stack in profile.stacks:
            key = tuple(meaning(frame) for frame in stack.frames)
            known = stacks.get(key, Stack(stack.frames, NOTHING, NOTHING))
            stacks[key] = symbols.added(known, stack, sign)
    return Named(
        now.rate,
        tuple(stack for stack in stacks.values() if any(stack.figures)),
        {**before.build_ids, **now.build_ids},
        tuple(dict.fromkeys((*before.notes, *now.notes))),
        is_difference=True,
    )
