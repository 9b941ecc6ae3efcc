"""Services with many small blocks: most are freed at random, then the rest is replaced."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from hakmem_yardstick.measure import Measured
from hakmem_yardstick.programs import inputs
from hakmem_yardstick.programs.batches import PYTHON
from hakmem_yardstick.programs.program import (
    SCRIPTS,
    Command,
    LoadFailed,
    Place,
    Ran,
    Run,
    found,
    row,
    words,
)
from hakmem_yardstick.programs.servers import (
    CLIENT,
    USER,
    Service,
    cluster,
    hand_over,
    no_shared_memory_left,
    postgres_service,
    reach,
    serve,
)

ASK = Path(__file__).resolve().parent / "ask.py"
REST_SECONDS = 1.0
PARTS = 5  # one of them stays
TURNS = 3  # replacements for each record that stayed


def turnover(command: Command) -> Run:
    """A service with the commands of scripts/turnover.py, and what it holds after each."""

    def run(place: Place) -> Ran:
        ask: list[str | Path] = [sys.executable, "-I", "-S", ASK, place.folder / "socket"]
        service = Service(command(place), [*ask, "ready"], place.folder / "pid", signal.SIGTERM)
        service.run(*ask, "fill")
        service.resident()
        service.run(*ask, "delete")
        service.pause(REST_SECONDS)
        service.resident()
        service.run(*ask, "turn")
        service.pause(REST_SECONDS)
        service.resident()
        service.run(*ask, "digest")
        measured, steps = serve(place, service)
        if not steps:
            return Ran(measured)
        _, filled, _, _, deleted, load, _, turned, digest = steps
        stay = place.sizes["records"] // PARTS
        records = digest["output"].split()[0]
        if records != str(stay):
            raise LoadFailed(f"the service holds {records} records, not {stay}")
        return Ran(
            measured,
            [digest["output"].encode()],
            seconds=load["seconds"],
            operations=TURNS * stay,
            extra={"turned": turned["kib"]},
            raw={"filled_kib": filled["kib"], "deleted_kib": deleted["kib"]},
        )

    return run


def _compile(folder: Path, _sizes: Mapping[str, int]) -> None:
    compile_it: list[str | Path] = [found("g++"), "-std=c++17", "-O2", SCRIPTS / "turnover.cc"]
    compile_it += ["-o", folder / "turnover"]
    subprocess.run(compile_it, env=CLIENT, check=True, capture_output=True)


def _postgres(place: Place) -> Ran:
    """One session with many prepared statements; its own server process is what is looked at."""
    subprocess.run(["cp", "-a", place.inputs / "data", place.folder], check=True)
    hand_over(place.folder, USER)
    service = postgres_service(place.folder)
    session: list[str | Path] = [found("psql"), *reach(place.folder), "-XqAt"]
    session += ["-v", "ON_ERROR_STOP=1", "-f", place.inputs / "session.sql", "postgres"]
    service.run(*session)
    with no_shared_memory_left(place.folder):
        measured, steps = serve(place, service)
    if not steps:
        return Ran(measured)
    return _session(place.sizes["statements"] // PARTS, measured, steps[0]["output"])


def _session(stay: int, measured: Measured, said: str) -> Ran:
    """What it said: a line for each step, how many statements there are, and what each gave."""
    steps = re.search(
        r"filled Pss: (\d+) kB\ndeleted Pss: (\d+) kB\nbegin ([\d.]+)\nend ([\d.]+)\n"
        r"turned Pss: (\d+) kB\nstatements\|(\d+)\n",
        said,
    )
    if steps is None:
        raise LoadFailed(f"psql: {said[:200]}")
    results = said[steps.end() :]
    if int(steps[6]) != stay or results.count("\n") != stay:
        raise LoadFailed(
            f"{steps[6]} statements are left, with {results.count(chr(10))} results, not {stay}"
        )
    return Ran(
        measured,
        [results.encode()],
        seconds=float(steps[4]) - float(steps[3]),
        operations=TURNS * stay,
        extra={"turned": float(steps[5])},
        raw={"filled_kib": int(steps[1]), "deleted_kib": int(steps[2])},
    )


def _statements(folder: Path, sizes: Mapping[str, int]) -> None:
    cluster(folder, {})
    inputs.postgres_turnover(folder / "session.sql", sizes["statements"], REST_SECONDS)


TURNED = f"resident {REST_SECONDS:.0f} s after the last replacement"

# fmt: off
PROGRAMS = (
    row("python-turnover",
        "A service in Python: four in five records deleted at random, then the rest replaced",
        turnover(words("python3 -S @SCRIPTS@/turnover.py @records@")), {"records": 400_000},
        packages="python3", proof="python3 -S -c 1",
        own="none, with PYTHONMALLOC=malloc", variables={**PYTHON, "PYTHONMALLOC": "malloc"},
        fixed={"turns": TURNS}, per="replacement", extra={"turned": TURNED},
        judged=("cpu", "turned")),
    row("cxx-turnover", "A service in C++: the same with strings in an unordered_map",
        turnover(words("@INPUTS@/turnover @records@")), {"records": 600_000}, packages="g++",
        proof="@INPUTS@/turnover", of="libstdc++.so*", own="none", make=_compile,
        fixed={"turns": TURNS}, per="replacement", extra={"turned": TURNED},
        judged=("cpu", "turned")),
    row("postgres-turnover",
        "One connection: four in five prepared statements deallocated at random, the rest replaced",
        _postgres, {"statements": 20_000}, packages="postgresql postgresql-client",
        executables="postgres initdb pgbench psql pg_isready",
        own="palloc: each statement has a memory context in blocks of 1 to 8 KiB from malloc",
        make=_statements, fixed={"turns": TURNS}, per="replacement", extra={"turned": TURNED},
        judged=("cpu", "turned"), user=USER),
)
# fmt: on
