"""Signals that ask for an end: control-C, SIGTERM, and SIGHUP from a terminal that goes away.

A command whose work they cut short keeps what it has and ends with 128 and the signal's number,
which is what a shell sees of one that they kill. One that would go on until then (exporter, top,
record and profile of a process) has done its work: 0. One that runs a program ends with it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

ASK = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.status = 128 + number


@contextmanager
def handled(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """What was ignored before stays so: by nohup, or by a shell that started it with &."""
    before = {
        number: was
        for number in ASK
        if (was := signal.getsignal(number)) not in (signal.SIG_IGN, None)
    }
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)


@contextmanager
def in_order() -> Iterator[None]:
    """Within it, the first signal raises Interrupted, and a second one ends all at once."""

    def first(number: int, _: FrameType | None) -> None:
        for one in ASK:
            if signal.getsignal(one) is first:
                signal.signal(one, signal.SIG_DFL)
        raise Interrupted(number)

    with handled(first):
        yield
