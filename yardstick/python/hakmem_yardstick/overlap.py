"""Work that mostly waits, each piece in a process of its own, begun one after the other."""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
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
    begun: list[_Apart] = []
    with Folder("hakmem-overlap-") as folder:
        try:
            for number, piece in enumerate(pieces):
                while sum(not apart.ended() for apart in begun) >= most:
                    _one_of(begun)
                waits = folder / str(number)
                begun.append(_Apart(piece, waits))
                while not waits.exists() and not begun[-1].ended(_SECONDS_BETWEEN_LOOKS):
                    pass
            return [apart.result() for apart in begun]
        finally:
            for apart in begun:
                apart.end()


class _Apart:
    def __init__(self, piece: Piece, waits: Path) -> None:
        self._given = b""
        self._end, theirs = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._end)
            _work(piece, waits, theirs)
        os.close(theirs)

    def ended(self, seconds: float = 0.0) -> bool:
        """Waits so long at most; true when it has given all that it will."""
        while self._end >= 0 and select.select([self._end], [], [], seconds)[0]:
            self.read()
        return self._end < 0

    def read(self) -> None:
        data = os.read(self._end, 1 << 16)
        self._given += data
        if not data:
            os.close(self._end)
            self._end = -1

    def result(self) -> Any:
        while self._end >= 0:
            self.read()
        if not self._given:
            raise Lost("a run's process ended without a result; its standard error says why")
        return pickle.loads(self._given)

    def end(self) -> None:
        """Asks it to stop if it still runs, and reaps it."""
        if self._end >= 0:
            os.kill(self._pid, signal.SIGINT)
            os.close(self._end)
            self._end = -1
        os.waitpid(self._pid, 0)


def _one_of(begun: Sequence[_Apart]) -> None:
    select.select([apart._end for apart in begun if apart._end >= 0], [], [])


def _work(piece: Piece, waits: Path, out: int) -> None:
    """In the new process; never returns."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        given = pickle.dumps(piece(waits))
        with os.fdopen(out, "wb") as file:
            file.write(given)
        status = 0
    except KeyboardInterrupt:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
