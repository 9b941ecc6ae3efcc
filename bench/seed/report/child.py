"""One run of one row with one allocator, in a process of its own."""

import json
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from bench.seed.report.allocators import Allocator, Kind, environment, is_in_force


@dataclass(frozen=True)
class Row:
    """A row as the program itself lists it."""

    row: str
    group: str
    why: str
    needs_content: bool
    threads: int
    params: dict[str, Any]


@dataclass(frozen=True)
class Run:
    """What one run measured; the fields of the program's line of JSON."""

    seconds: float
    cpu_seconds: float
    operations: int
    ops_per_s: float
    checksum: str
    peak_rss_kib: int
    rss_start_kib: int
    rss_end_kib: int
    minor_faults: int
    voluntary_switches: int
    involuntary_switches: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Failure:
    """Why a run has no figures: `cell` for the table, `detail` for below it."""

    cell: str
    detail: str


# The program's exit statuses, as cells.
_EXITS = {2: "usage", 3: "no memory", 4: "content", 5: "system"}


def run_of(record: dict[str, Any]) -> Run:
    return Run(**{field.name: record[field.name] for field in fields(Run)})


def list_rows(seed: Path) -> list[Row]:
    listed = subprocess.run(
        [seed, "--list-json"], check=True, capture_output=True, text=True, timeout=30
    )
    rows = []
    for line in listed.stdout.splitlines():
        record = json.loads(line)
        named = {k: record.pop(k) for k in ("row", "group", "why", "needs_content")}
        rows.append(Row(**named, threads=record["threads"], params=record))
    return rows


def _finished(status: int, stdout: str, stderr: str, allocator: Allocator) -> Run | Failure:
    said = " ".join(stderr.split())[:300]
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return Failure(name, f"ended by {name}. {said}")
    if status > 0:
        return Failure(_EXITS.get(status, f"exit {status}"), f"exit status {status}. {said}")
    try:
        record = json.loads(stdout)
        run = run_of(record)
    except (ValueError, KeyError, TypeError) as error:
        return Failure("no figures", f"printed no line of figures ({error!r}). {said}")
    if not is_in_force(allocator, record["allocator"]):
        return Failure(
            "not in force", f"malloc came from {record['allocator']}, not {allocator.library}"
        )
    return run


def run_row(
    seed: Path, row: Row, allocator: Allocator, options: Sequence[str], timeout: float
) -> Run | Failure:
    if allocator.kind is Kind.FLOOR:
        if row.needs_content:
            return Failure("content", "the row reads what it wrote, and a floor keeps nothing")
        options = [*options, "--check", "0"]
    try:
        done = subprocess.run(
            [seed, row.row, *options],
            env=environment(allocator),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Failure("hang", f"not done after {timeout:g} seconds")
    except OSError as error:
        return Failure("no start", str(error))
    return _finished(done.returncode, done.stdout, done.stderr, allocator)
