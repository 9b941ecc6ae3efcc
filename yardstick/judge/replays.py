"""Replays of recordings: rows whose work is the calls of a real program.

Recordings are made here, on this machine, when they are first wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hakmem.recording import NoRecording
from hakmem_yardstick import replay
from hakmem_yardstick.model import SYSTEM, Allocator, Kind, Measure, Row
from hakmem_yardstick.programs.program import Program
from hakmem_yardstick.programs.runner import Programs
from hakmem_yardstick.replay import CannotReplay, Job
from hakmem_yardstick.runner import Outcome, Unavailable

MEASURES = (
    Measure("time", "s", "of all calls, one after the other without the program's own work"),
    Measure("peak", "KiB", "anonymous memory at its most"),
    Measure("pss", "KiB", "anonymous memory, average over the recording's time"),
    Measure("faults", "faults", "page faults of the replay"),
)
SCALE = 0.3
"""Of a program's work when it is recorded."""
SECONDS = 300.0


class Replays(Programs):
    """A runner of its own group, whose rows are named after the programs."""

    def __init__(self, cache: Path, programs: Sequence[Program], build: Path) -> None:
        super().__init__(cache, programs)
        self._recordings = cache / "recordings"
        self._command = build / "bin" / "hakmem"
        self._player = build / "hakmem" / "replay"

    def rows(self) -> list[Row]:
        judged = ("time", "peak")
        return [replace(row, measures=MEASURES, judged=judged) for row in super().rows()]

    def prepare(self, row: Row) -> None:
        super().prepare(row)
        file = self._file(row)
        if not file.exists():
            self._recordings.mkdir(parents=True, exist_ok=True)
            self._record(self._programs[row.name], file)
        try:
            replay.prepared(file, None)
        except (NoRecording, CannotReplay) as why:
            raise Unavailable(f"its recording can't be replayed: {why}") from why

    def run(self, row: Row, allocator: Allocator, *, scale: float, timeout: float) -> Outcome:
        job = Job(self._file(row), None, allocator, self._player, timeout=timeout)
        played = replay.play(job)
        if played.outcome != "ok" or played.failed:
            return Outcome(played.outcome if played.outcome != "ok" else "no memory", played.why)
        values = {
            "time": played.time,
            "peak": played.peak / 1024,
            "pss": played.mean / 1024,
            "faults": float(played.faults),
        }
        return Outcome("ok", "", played.time, values)

    def _file(self, row: Row) -> Path:
        return self._recordings / f"{row.name}.recording"

    def _record(self, program: Program, file: Path) -> None:
        new = file.with_suffix(".new")
        system = Allocator(SYSTEM, Kind.PEER)
        with self._place(program, system, program.scaled(SCALE), SECONDS, None) as (place, _):
            own = {k: v for k, v in place.environment.items() if k != "LD_PRELOAD"}
            recorder = (self._command, "record", "-o", new, "--")
            measured = program.run(replace(place, environment=own, before=recorder)).measured
        if measured.outcome != "ok":
            raise Unavailable(f"it can't be recorded: {measured.outcome}: {measured.detail}")
        new.rename(file)
