"""Runs the rows of the group: proves the allocator active, runs, and compares the result.

Programs.run
  _inputs       made once for each size, in the cache
  _proof        once for each row and allocator: what the loader bound
  _reference    once for each row: the same work on the system's malloc, not measured
  _once         a run in a folder of its own
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from hakmem.folders import LOCKED, Folder
from hakmem_yardstick.model import SYSTEM, Allocator, Kind, Measure, Row
from hakmem_yardstick.peers.cache import user_folder
from hakmem_yardstick.programs import batches, inforce, servers, turnovers
from hakmem_yardstick.programs.program import (
    PATH,
    SAMPLE_SECONDS,
    SCRIPTS,
    LoadFailed,
    Place,
    Program,
    Ran,
)
from hakmem_yardstick.programs.program import find as find_program
from hakmem_yardstick.runner import Outcome, Unavailable

GROUP = "programs"
USUAL = (*batches.PROGRAMS, *servers.PROGRAMS, *turnovers.PROGRAMS)
_by_name = {program.name: program for program in USUAL}
PROGRAMS = (
    *USUAL,
    _by_name["sqlite"].longer("sqlite-large", "The same with a database of 220 MiB", rows=500_000),
    _by_name["g++-large"].longer("g++-huge", "The same, up to 350 MiB", kinds=12),
    _by_name["python-malloc"].longer("python-malloc-long", "The same for longer", turns=15),
    _by_name["redis"].longer(
        "redis-long", "The same, each key set 5 times as often", requests=200_000
    ),
)
OTHER_RESULT, LOAD_FAILED, NOT_ACTIVE = "other result", "load failed", "not active"


def packages_missing(programs: Sequence[Program] = PROGRAMS) -> list[str]:
    """Debian packages that rows need and this system lacks."""
    return sorted({name for one in programs if one.missing() for name in one.packages})


@functools.cache
def _installed(packages: tuple[str, ...]) -> Mapping[str, str]:
    """Versions by package; nothing where there is no dpkg."""
    if shutil.which("dpkg-query") is None:
        return {}
    query = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev} ${Version}\n", *packages]
    said = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    lines = (line.split() for line in said.splitlines())
    return {words[0]: words[2] for words in lines if len(words) == 3 and words[1] == "ii"}


class Failure(Exception):
    """A cell without figures."""

    def __init__(self, outcome: str, detail: str) -> None:
        super().__init__(outcome, detail)
        self.outcome = outcome
        self.detail = detail


class Programs:
    """The group `programs`, a runner.Runner."""

    def __init__(self, cache: Path | None = None, programs: Sequence[Program] = PROGRAMS) -> None:
        self._cache = (cache or user_folder()) / GROUP
        self._programs = {program.name: program for program in programs}
        self._packages = tuple(sorted({name for one in programs for name in one.packages}))
        self._proved: set[tuple[str, str, Path | None]] = set()
        self._references: dict[tuple[str, float], str] = {}

    def rows(self) -> list[Row]:
        versions = _installed(self._packages)
        return [_row(program, versions) for program in self._programs.values()]

    def prepare(self, row: Row) -> None:
        program = self._programs[row.name]
        missing = program.missing()
        if missing:
            packages = " ".join(program.packages)
            raise Unavailable(f"no {', '.join(missing)} here; apt-get install {packages}")
        self._inputs(program, program.scaled(1.0))

    def run(self, row: Row, allocator: Allocator, *, scale: float, timeout: float) -> Outcome:
        program = self._programs[row.name]
        sizes = program.scaled(scale)
        try:
            self._prove(program, allocator, sizes, timeout)
            expected = self._reference(program, scale, timeout)
            ran = self._once(program, allocator, sizes, timeout, SAMPLE_SECONDS)
            if ran.digest != expected:
                raise Failure(OTHER_RESULT, f"{ran.digest}, not {expected} as with {SYSTEM}")
        except Failure as failure:
            return Outcome(failure.outcome, failure.detail)
        return _outcome(program, ran, sizes)

    # ---- inputs ----

    def _inputs(self, program: Program, sizes: Mapping[str, int]) -> Path:
        """The folder with them, made if there is none of these sizes by this version of hakmem."""
        if program.make is None:
            self._cache.mkdir(parents=True, exist_ok=True)
            return self._cache
        words = [f"{name}{size}" for name, size in sizes.items()]
        installed = _installed(self._packages)
        versions = [f"{name} {installed.get(name)}" for name in program.packages]
        key = hashlib.sha256("\n".join([sources(), *versions]).encode()).hexdigest()[:12]
        place = self._cache / program.name
        folder = place / "-".join([*words, key])
        if folder.exists():
            return folder
        place.mkdir(parents=True, exist_ok=True)
        for old in place.iterdir():
            if not old.name.endswith((key, LOCKED)):
                shutil.rmtree(old)
        with Folder("making-", place) as new:
            program.make(new, sizes)
            new.rename(folder)
        return folder

    # ---- one run ----

    @contextmanager
    def _place(
        self,
        program: Program,
        allocator: Allocator,
        sizes: Mapping[str, int],
        timeout: float,
        sample: float | None,
    ) -> Iterator[tuple[Place, Path]]:
        """A folder for one run, and the library that the program's malloc must be from."""
        inputs = self._inputs(program, sizes)
        with Folder("hakmem-bench-") as folder:
            library = allocator.library or inforce.c_library()
            preload = allocator.library or (library if program.brings else None)
            if preload is not None and servers.become(program.user):
                # Another user may not be let in where it lies.
                preload = library = Path(shutil.copy(preload, folder))
            variables = _variables(program, allocator, folder, preload)
            servers.hand_over(folder, program.user)
            yield Place(inputs, folder, variables, sizes, timeout, sample), library

    def _once(
        self,
        program: Program,
        allocator: Allocator,
        sizes: Mapping[str, int],
        timeout: float,
        sample: float | None,
    ) -> Ran:
        with self._place(program, allocator, sizes, timeout, sample) as (place, _):
            try:
                ran = program.run(place)
            except LoadFailed as error:
                raise Failure(LOAD_FAILED, str(error)) from error
        if ran.measured.outcome != "ok":
            raise Failure(ran.measured.outcome, ran.measured.detail)
        return ran

    def _reference(self, program: Program, scale: float, timeout: float) -> str:
        """What the system's malloc gets. It also brings the program's files into memory."""
        known = self._references.get((program.name, scale))
        if known is None:
            system = Allocator(SYSTEM, Kind.PEER)
            try:
                ran = self._once(program, system, program.scaled(scale), timeout, None)
            except Failure as failure:
                raise Failure(failure.outcome, f"with {SYSTEM} too: {failure.detail}") from failure
            known = self._references[program.name, scale] = ran.digest
        return known

    def _prove(
        self, program: Program, allocator: Allocator, sizes: Mapping[str, int], timeout: float
    ) -> None:
        key = program.name, allocator.name, allocator.library
        if key in self._proved:
            return
        with self._place(program, allocator, sizes, timeout, None) as (place, library):
            words = [word.replace("@INPUTS@", str(place.inputs)) for word in program.proof]
            measured, bindings = inforce.report(
                [find_program(words[0]) or words[0], *words[1:]],
                place.environment,
                place.folder,
                timeout,
                servers.become(program.user),
            )
            if measured.outcome != "ok":
                raise Failure(measured.outcome, measured.detail)
            wrong = inforce.elsewhere(bindings, program.proof_of, library)
            if wrong:
                raise Failure(NOT_ACTIVE, wrong)
        self._proved.add(key)


@functools.cache
def sources() -> str:
    """Of what makes inputs: with other sources they are made anew."""
    files = [*sorted(Path(__file__).parent.glob("*.py")), *sorted(SCRIPTS.iterdir())]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _variables(
    program: Program, allocator: Allocator, folder: Path, preload: Path | None
) -> dict[str, str]:
    """Nothing of the user's: a RUBYOPT would change the work."""
    plain = {"PATH": PATH, "LC_ALL": "C.UTF-8", "HOME": str(folder), "TMPDIR": str(folder)}
    made = {**allocator.environment, **plain, **program.variables}
    return made if preload is None else {**made, "LD_PRELOAD": str(preload)}


# ---- rows and figures ----


def _row(program: Program, versions: Mapping[str, str]) -> Row:
    unit = "ns" if program.per else "s"
    per = f" per {program.per}" if program.per else ""
    measures = [
        Measure("time", unit, f"wall-clock time{per}"),
        Measure("cpu", unit, f"user and system time{per}"),
        Measure("peak", "KiB", "largest resident memory of any one process"),
        Measure("pss", "KiB", "resident memory of all processes, average over time"),
        Measure("faults", "faults", "page faults in a run"),
        *(Measure(name, "KiB", text) for name, text in program.extra.items()),
    ]
    packages = " ".join(f"{name} {versions.get(name, '')}".strip() for name in program.packages)
    return Row(
        name=program.name,
        group=GROUP,
        family=program.family or program.name,
        why=program.why,
        measures=tuple(measures),
        judged=program.judged,
        tier=program.tier,
        threads=program.threads,
        needs_content=True,
        parameters={**program.sizes, **program.fixed, "packages": packages, "own": program.own},
    )


def _outcome(program: Program, ran: Ran, sizes: Mapping[str, int]) -> Outcome:
    measured = ran.measured
    waited = measured.seconds if ran.seconds is None else ran.seconds
    factor = 1e9 / ran.operations if program.per and ran.operations else 1.0
    values = {
        "time": waited * factor,
        "cpu": measured.cpu_seconds * factor,
        "peak": float(measured.peak_kib),
        "pss": measured.pss_mean_kib,
        "faults": float(measured.minor_faults + measured.major_faults),
        **ran.extra,
    }
    raw = {
        "sizes": dict(sizes),
        "result": ran.digest,
        "load_seconds": waited,
        "operations": ran.operations,
        "user_seconds": measured.user_seconds,
        "system_seconds": measured.system_seconds,
        "pss_peak_kib": measured.pss_peak_kib,
        "minor_faults": measured.minor_faults,
        "major_faults": measured.major_faults,
        **ran.raw,
    }
    return Outcome("ok", "", measured.seconds, values, measured.series, raw)
