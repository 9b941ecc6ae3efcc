"""Changes the kernel's setting of transparent huge pages for a while, if the user may."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")
ALL = ("always", "madvise", "never")


def current() -> str:
    """The chosen one stands in brackets; a kernel without huge pages never uses them."""
    if not SETTING.exists():
        return "never"
    return SETTING.read_text().split("[")[1].split("]")[0]


@contextmanager
def restored() -> Iterator[None]:
    """Whatever ends the run, the machine is left as it was."""

    def end(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = current()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    try:
        yield
    finally:
        SETTING.write_text(before)


def choose(setting: str) -> None:
    SETTING.write_text(setting)


def may_be_chosen() -> bool:
    return os.access(SETTING, os.W_OK)
