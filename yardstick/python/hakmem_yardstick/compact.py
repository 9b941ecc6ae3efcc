"""Results in little space, for a report that is kept: without what programs printed, and runs by
columns, which gzip makes smaller than a record for each."""

from __future__ import annotations

import gzip
import json
from dataclasses import fields
from pathlib import Path

from hakmem_yardstick.model import Results, Run, results_of

_MAGIC = b"\x1f\x8b"
_COLUMNS = [each.name for each in fields(Run) if each.name != "raw"]


def pack(results: Results) -> bytes:
    record = results.to_json()
    record["runs"] = {name: [run[name] for run in record["runs"]] for name in _COLUMNS}
    return gzip.compress(json.dumps(record, separators=(",", ":")).encode(), mtime=0)


def read(file: Path) -> Results:
    """What `pack` made, or a results.json as a session writes it. Raises OSError, ValueError,
    KeyError or TypeError."""
    data = file.read_bytes()
    try:
        record = json.loads(gzip.decompress(data) if data.startswith(_MAGIC) else data)
    except EOFError:
        raise ValueError("it is cut short") from None
    if isinstance(record, dict) and isinstance(runs := record.get("runs"), dict):
        columns = zip(*(runs[name] for name in _COLUMNS), strict=True)
        record["runs"] = [dict(zip(_COLUMNS, run, strict=True)) for run in columns]
    return results_of(record)
