"""Results in little space, for a report that is kept: without what programs printed, and runs by
columns, which gzip makes smaller than a record for each."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hakmem_yardstick.model import Results, Run, results_of

SUFFIX = ".json.gz"
_MAGIC = b"\x1f\x8b"
_OF_EACH = ("row", "allocator", "round", "position", "began", "seconds")
_FAILED = "failed"
"""Outcome and detail, by the run's number, of those that have no figures."""


def pack(results: Results) -> bytes:
    record = replace(results, runs=[]).to_json() | {"runs": _columns(results)}
    return gzip.compress(json.dumps(record, separators=(",", ":")).encode(), mtime=0)


def read(file: Path) -> Results:
    """What `pack` made, or a results.json as a session writes it. Raises OSError, ValueError,
    KeyError or TypeError."""
    data = file.read_bytes()
    try:
        record = json.loads(gzip.decompress(data) if data.startswith(_MAGIC) else data)
    except EOFError:
        raise ValueError("it is cut short") from None
    if isinstance(record, dict) and isinstance(record.get("runs"), dict):
        return replace(results_of(record | {"runs": []}), runs=_runs(record["runs"]))
    return results_of(record)


def _columns(results: Results) -> dict[str, Any]:
    runs = results.runs
    names = dict.fromkeys(name for run in runs for name in run.values)
    rows = list(dict.fromkeys(run.row for run in runs))
    allocators = list(dict.fromkeys(run.allocator for run in runs))
    return {
        "rows": rows,
        "allocators": allocators,
        "row": [rows.index(run.row) for run in runs],
        "allocator": [allocators.index(run.allocator) for run in runs],
        "round": [run.round for run in runs],
        "position": [run.position for run in runs],
        "began": [_short(run.began) for run in runs],
        "seconds": [_short(run.seconds) for run in runs],
        _FAILED: {at: [run.outcome, run.detail] for at, run in enumerate(runs) if not run.is_ok},
        "values": {
            name: [_short(run.values[name]) if name in run.values else None for run in runs]
            for name in names
        },
        "series": {
            at: [
                [_short(second) for second, _ in run.series],
                [_short(kib) for _, kib in run.series],
            ]
            for at, run in enumerate(runs)
            if run.series
        },
    }


def _runs(columns: Mapping[str, Any]) -> list[Run]:
    rows, allocators = columns["rows"], columns["allocators"]
    found = []
    for at, (row, allocator, number, position, began, seconds) in enumerate(
        zip(*(columns[name] for name in _OF_EACH), strict=True)
    ):
        outcome, detail = columns[_FAILED].get(str(at), ("ok", ""))
        times, kib = columns["series"].get(str(at), ((), ()))
        found.append(
            Run(
                row=rows[row],
                allocator=allocators[allocator],
                round=number,
                position=position,
                began=float(began),
                seconds=float(seconds),
                outcome=outcome,
                detail=detail,
                values={
                    name: float(value)
                    for name, values in columns["values"].items()
                    if (value := values[at]) is not None
                },
                series=tuple(
                    (float(time), float(size)) for time, size in zip(times, kib, strict=True)
                ),
            )
        )
    return found


def _short(value: float) -> float:
    """Whole numbers without a point, which takes two letters more."""
    return int(value) if float(value).is_integer() else value
