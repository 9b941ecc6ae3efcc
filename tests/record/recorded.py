"""Runs the planted program under `hakmem record`, and reads what was written."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hakmem import events
from hakmem.events import Process
from hakmem.history import Blocks, Events, history
from hakmem.recording import FREE
from tests import inside
from tests.ran import clean_environment, ran

MARK = 123457
LONG = 300  # seconds


@dataclass
class Recorded:
    hakmem: Path
    library: Path
    plant: Path
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "a.recording"

    def command(self, *words: str, options: tuple[str, ...] = ()) -> list[str]:
        return [
            *(str(self.hakmem), "record", "-o", str(self.file), *options),
            *("--", str(self.plant), *words),
        ]

    def run(
        self,
        *words: str,
        options: tuple[str, ...] = (),
        status: int = 0,
        before: Callable[[], object] | None = None,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        done = ran(
            *self.command(*words, options=options),
            env=clean_environment() | environment,
            preexec_fn=before,
        )
        assert done.returncode == status, done.stderr
        return done

    def processes(self) -> tuple[list[Process], bool]:
        return events.processes(self.file)

    def only(self) -> tuple[Process, Events, Blocks]:
        found, whole = self.processes()
        assert whole
        plants = [one for one in found if one.name == self.plant.name]
        assert len(plants) == 1, [one.facts for one in found]
        return plants[0], *history(plants[0])

    def trace(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        return inside.answer(self.hakmem, "trace", *words, str(self.file), status=status)


def between_marks(calls: Events) -> slice:
    """The calls after the first mark, up to the second, without these."""
    sizes = calls.size.tolist()
    begin = sizes.index(MARK)
    end = sizes.index(MARK + 1)
    return slice(begin + 2, end)


def lines(calls: Events, part: slice) -> list[tuple[str, int, int, int]]:
    """As the planted program prints them, without alignments: what, address, former address, size;
    both of a failed call 0."""
    found = []
    for kind, address, former, size in zip(
        *(
            column[part].tolist()
            for column in (calls.kind, calls.address, calls.former, calls.size)
        ),
        strict=True,
    ):
        if kind == FREE:
            found.append(("free", address, 0, 0))
        elif kind in (4, 5):
            found.append(("resize", address, former or address, size))
        else:
            found.append(("take", address, 0, size))
    return found


def leftovers(pid: int) -> list[Path]:
    """Folders that still have a ring of the process."""
    where = [Path("/dev/shm"), Path(os.environ.get("TMPDIR", "/tmp"))]
    return [one.parent for folder in where for one in folder.glob(f"hakmem-*/{pid}.*")]
