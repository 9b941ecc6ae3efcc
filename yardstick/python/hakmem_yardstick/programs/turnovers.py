"""Services with many small blocks: most are freed at random, then the rest is replaced."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hakmem_yardstick.programs.batches import PYTHON
from hakmem_yardstick.programs.program import (
    SCRIPTS,
    LoadFailed,
    Place,
    Program,
    Ran,
    Run,
    find,
)
from hakmem_yardstick.programs.servers import CLIENT, Service, serve

ASK = Path(__file__).resolve().parent / "ask.py"
REST_SECONDS = 1.0
PARTS = 5  # one of them stays
TURNS = 3  # replacements for each record that stayed


def turnover(command: Callable[[Place], Sequence[str | Path]]) -> Run:
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


def _python(place: Place) -> list[str | Path]:
    return [
        find("python3") or "python3",
        "-S",
        SCRIPTS / "turnover.py",
        str(place.sizes["records"]),
    ]


def _cxx(place: Place) -> list[str | Path]:
    return [place.inputs / "turnover", str(place.sizes["records"])]


def _compile(folder: Path, _sizes: Mapping[str, int]) -> None:
    command: list[str | Path] = [
        find("g++") or "g++",
        "-std=c++17",
        "-O2",
        "-o",
        folder / "turnover",
    ]
    subprocess.run([*command, SCRIPTS / "turnover.cc"], env=CLIENT, check=True, capture_output=True)


TURNED = f"resident {REST_SECONDS:.0f} s after the last replacement"

PROGRAMS = (
    Program(
        "python-turnover",
        "A service in Python: four in five records deleted at random, then the rest replaced",
        ("python3",),
        ("python3",),
        turnover(_python),
        {"records": 400_000},
        proof=("python3", "-S", "-c", "1"),
        proof_of=("python3",),
        own="none, with PYTHONMALLOC=malloc",
        variables={**PYTHON, "PYTHONMALLOC": "malloc"},
        fixed={"turns": TURNS},
        per="replacement",
        extra={"turned": TURNED},
        judged=("cpu", "turned"),
    ),
    Program(
        "cxx-turnover",
        "A service in C++: the same with strings in an unordered_map",
        ("g++",),
        ("g++",),
        turnover(_cxx),
        {"records": 600_000},
        proof=("@INPUTS@/turnover",),
        proof_of=("libstdc++.so*",),
        own="none",
        make=_compile,
        fixed={"turns": TURNS},
        per="replacement",
        extra={"turned": TURNED},
        judged=("cpu", "turned"),
    ),
)
