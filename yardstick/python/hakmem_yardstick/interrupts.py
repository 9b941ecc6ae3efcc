"""Signals that ask for an end: what was measured is kept, and no program is left running."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def in_order() -> Iterator[None]:
    """Within it, the first signal raises KeyboardInterrupt, and a second one ends all at once.
    What was ignored before stays so."""
    before = {
        number: handler
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if (handler := signal.getsignal(number)) is not signal.SIG_IGN
    }

    def first(*_: object) -> None:
        for number in before:
            signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    for number in before:
        signal.signal(number, first)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
