"""Work that mostly waits, each piece in a process of its own, begun one after the other."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

from hakmem.folders import Folder

_SECONDS_BETWEEN_LOOKS = 0.002

Piece = Callable[[Path], Any]
"""Does its work, and makes the file when from then on it only waits. What it gives is pickled."""


class Lost(Exception):
    """A piece's process ended without a result."""


def overlapped(pieces: Sequence[Piece], most: int) -> list[Any]:
    """What each gave, in their order. A piece begins when all before it have ended or wait, and
    fewer than `most` are there. Whatever is raised meanwhile, KeyboardInterrupt too, none of them
    survives; what a piece raises comes as Lost."""
    fork = get_context("fork")
    begun: list[ForkProcess] = []
    with Folder("hakmem-overlap-") as folder:
        files = [(folder / f"{at}", folder / f"{at}.given") for at in range(len(pieces))]
        try:
            for piece, (waits, given) in zip(pieces, files, strict=True):
                while len(alive := [one.sentinel for one in begun if one.is_alive()]) >= most:
                    wait(alive)
                begun.append(fork.Process(target=_work, args=(piece, waits, given)))
                begun[-1].start()
                while not waits.exists() and begun[-1].is_alive():
                    begun[-1].join(_SECONDS_BETWEEN_LOOKS)
            for one in begun:
                one.join()
                if one.exitcode:
                    raise Lost("a run's process ended without a result; see its standard error")
        finally:
            for one in begun:
                if one.is_alive() and one.pid is not None:
                    os.kill(one.pid, signal.SIGINT)
                one.join()
        return [pickle.loads(given.read_bytes()) for _, given in files]


def _work(piece: Piece, waits: Path, given: Path) -> None:
    """In the new process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    given.write_bytes(pickle.dumps(piece(waits)))
