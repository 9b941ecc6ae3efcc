#!/usr/bin/env python3
"""Runs real programs without and with the library preloaded, and compares their data.

    run.py --lib build/release/libhakmem.so git redis  some programs
    run.py --lib build/release/libhakmem.so --all      every program
    run.py --list                                      their names

For each program: its steps run with the system's allocator, then again under LD_PRELOAD; stdout,
stderr, exit status of each step and every file produced must be the same. Then it is proved that
the library was in force: by the loader's own report (LD_DEBUG=bindings) for each program named in
the case, and by /proc/PID/maps of the running program where it runs long enough to be looked at.

With -o NAME=VALUE the library's option NAME is set in the runs with the library, and only there.

With --rounds N such pairs of runs follow, compared as the first one is, whose time, processor time
and peak memory are kept; fewer of a case that takes long. A result for each program goes to
OUT/results, from which summary.py writes docs/programs.md.

Exit status: 0 all the same, 1 a difference or crash, or a program that --install could not bring,
2 a bad command line, 77 every program asked for is missing on this machine.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from tests.programs import packages, results
from tests.programs.catalog import catalog
from tests.programs.compare import differences, report
from tests.programs.harness import PATH, STEP_SECONDS, Case, Failure, Run, variables
from tools.demo import inforce

SKIPPED = 77
NOT_LOADED = b"cannot be preloaded"
SAID = b"hakmem: "  # how each line of the library's begins
REPORT_LINES = 20
HARDENED = "preset=hardened"
ROUNDS_SECONDS = 30  # the measured rounds of a case take about that long at most, or one pair


class Different(Failure):
    """The runs went well, and their data differ."""


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends what runs, as an interrupt does
    # Whoever starts this in the background has it ignored, and programs would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = parse()
    known = catalog()
    if options.list:
        print("\n".join(known))
        return 0
    if not options.lib:
        return complain("--lib PATH is needed: the library to preload")
    library: Path = options.lib.resolve()
    if not library.is_file():
        return complain(f"{library}: no such file; build the library first")
    unknown = [name for name in options.program if name not in known]
    if unknown:
        return complain(f"unknown program {', '.join(unknown)}; known: {', '.join(known)}")
    if options.all == bool(options.program):
        return complain("name the programs to run, or give --all")
    chosen = [known[name] for name in options.program] or list(known.values())
    wrong = refused(library, options.option)
    if wrong:
        return complain(wrong)
    out: Path = options.out.resolve()
    if options.install:
        packages.install([package for case in chosen for package in case.packages])
        if any(case.wheels for case in chosen):
            packages.install_wheels()
    results.write_machine(out / "results", library)
    if options.resume:
        mark = results.digest(library)
        chosen = [
            case for case in chosen
            if not results.done_with(out / "results", case.name, mark, options.option)
        ]  # fmt: skip
    statuses = [check(case, library, out, options) for case in chosen]
    if 1 in statuses:
        failed = [c.name for c, status in zip(chosen, statuses, strict=True) if status == 1]
        print(f"FAILED: {', '.join(failed)}; all about it is in {out}")
        return 1
    return SKIPPED if statuses and all(status == SKIPPED for status in statuses) else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program", nargs="*", help="names of programs")
    parser.add_argument("--all", action="store_true", help="every program")
    parser.add_argument("--lib", type=Path, help="the library to preload")
    parser.add_argument(
        "--out", type=Path, default=Path("program-runs"), help="where inputs and outputs go"
    )
    parser.add_argument(
        "--install", action="store_true",
        help="install what is missing, with apt-get and pip; what is missing then is a failure",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--option", action="append", default=[], metavar="NAME=VALUE",
        help="set an option of the library (docs/options.md) in the runs with it",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=0, help="measured pairs of runs (0)")
    parser.add_argument(
        "--resume", action="store_true", help="leave out what this library has passed already"
    )
    parser.add_argument("--keep", action="store_true", help="keep the outputs of good runs too")
    parser.add_argument("--list", action="store_true", help="list the programs and end")
    return parser.parse_args()


def complain(message: str) -> int:
    print(f"run.py: {message}", file=sys.stderr)
    return 2


def refused(library: Path, options: list[str]) -> str:
    """What is wrong with these options, in the library's words for a value; empty if nothing."""
    known = ctypes.CDLL(str(library)).hakmem_option
    for option in options:
        name, sign, _ = option.partition("=")
        if not sign:
            return f"-o {option}: NAME=VALUE is needed"
        if known(name.encode(), ctypes.byref(ctypes.c_uint64())):
            return f"-o {option}: hakmem has no option {name}"
    env = {"LD_PRELOAD": str(library), **variables(options)}
    done = subprocess.run(["/bin/true"], env=env, capture_output=True, text=True, check=False)
    return done.stderr.strip() or ("" if done.returncode == 0 else "/bin/true failed with them")


def check(case: Case, library: Path, out: Path, options: argparse.Namespace) -> int:
    """All runs of one case and the proof; prints one line when all is well."""
    wheels = {k: v for k, v in packages.wheel_versions().items() if k in case.wheels}
    missing = [name for name in case.needs if not there(name)]
    missing += sorted(set(case.wheels) - wheels.keys())
    if missing and not options.install:
        print(f"{case.name}: skipped, not installed: {', '.join(missing)}", flush=True)
        return SKIPPED
    result = results.Result(
        case.name, case.group, case.what, case.note, results.digest(library),
        packages.versions(case.packages) | wheels, options=options.option,
    )  # fmt: skip
    folder = out / case.name
    shutil.rmtree(folder, ignore_errors=True)
    try:
        if missing:
            raise Failure(f"could not be installed: {', '.join(missing)}")
        perform(case, library, folder, options.rounds, result)
    except (Failure, OSError, subprocess.SubprocessError, ValueError) as failure:
        result.message = str(failure)
        result.write(out / "results")
        print(
            f"{case.name}: FAILED\n{failure}\n  what there is of it is kept in {folder}", flush=True
        )
        return 1
    result.verdict = results.DIFFERS if result.message else results.SAME
    result.write(out / "results")
    print(f"{case.name}: {in_words(result, library)}", flush=True)
    if not options.keep:
        shutil.rmtree(folder)
    return 0


def there(name: str) -> bool:
    """True for a program in PATH, and for a path that exists."""
    return Path(name).exists() if "/" in name else shutil.which(name, path=PATH) is not None


def perform(case: Case, library: Path, folder: Path, rounds: int, result: results.Result) -> None:
    """Fills in `result`. Where there are measured rounds, the pair before them only warms up."""
    (folder / "input").mkdir(parents=True)
    case.prepare(folder / "input")
    system, preloaded, run = pair(case, folder, library, result)
    result.files = count(folder / "system")
    prove(run, folder, library)
    result.bound, result.seen = list(case.proof_of), sorted(run.seen_in)
    result.own = case.own
    left = min(rounds, max(1, int(ROUNDS_SECONDS / (system.seconds + preloaded.seconds))))
    if not left:
        result.system, result.preloaded = [system], [preloaded]
    for _ in range(left):
        system, preloaded, _ = pair(case, folder, library, result)
        result.system.append(system)
        result.preloaded.append(preloaded)


def pair(
    case: Case, folder: Path, library: Path, result: results.Result
) -> tuple[results.Measure, results.Measure, Run]:
    """A run without and one with the library, whose data are compared; the latter run."""
    _, system = once(Run(case, folder, "system", None))
    options = result.options
    if case.misuse and HARDENED in options:
        options, result.message = [*options, *case.without], case.misuse
    run, preloaded = once(Run(case, folder, "preloaded", library, options))
    try:
        compare(case, folder)
    except Different:
        if not (case.by_address and options):
            raise
        result.message = case.by_address
    return system, preloaded, run


def once(run: Run) -> tuple[Run, results.Measure]:
    begin = time.monotonic()
    try:
        run.case.steps(run)
        seconds = time.monotonic() - begin
    finally:
        run.close()
    return run, results.Measure(seconds, run.usage.cpu, run.usage.peak)


def compare(case: Case, folder: Path) -> None:
    for file in sorted((folder / "preloaded").rglob("*.stderr")):
        if NOT_LOADED in file.read_bytes():
            raise Failure(f"{file.name}: the loader refused the library:\n  {file.read_text()}")
    said = [line for part in ("outputs", "logs") for line in words_of(folder / "preloaded" / part)]
    if said:  # also of a process whose end nobody else notices: a worker that is started again
        raise Failure("the library reports:\n  " + "\n  ".join(said[:REPORT_LINES]))
    found: list[str] = []
    for part, ignore in (("outputs", ()), ("files", case.may_differ)):
        found += differences(folder / "system" / part, folder / "preloaded" / part, ignore)
    if found:
        raise Different(f"without and with the library, the data differ:\n{report(found)}")


def words_of(folder: Path) -> list[str]:
    """Lines that the library wrote to what is kept of standard error."""
    return [
        line.decode(errors="replace")
        for kind in ("*.stderr", "*.log")
        for file in sorted(folder.rglob(kind))
        for line in file.read_bytes().splitlines()
        if line.startswith(SAID)
    ]


def prove(run: Run, folder: Path, library: Path) -> None:
    place = folder / "proof"
    place.mkdir()
    argv = [word.replace("@INPUT@", str(folder / "input")) for word in run.case.proof]
    bound = inforce.bindings(argv, run.env() | {"HOME": str(place)}, place, STEP_SECONDS)
    for program in run.case.proof_of:
        wrong = inforce.bound_elsewhere(bound, program, library)
        if wrong and not run.case.own:
            raise Failure(f"the library was not in force: {wrong}")
        if run.case.own and not wrong:
            raise Failure(f"{program}: the library is in force, not {run.case.own}")


def count(folder: Path) -> int:
    return sum(
        1 for part in ("outputs", "files") for path in (folder / part).rglob("*") if path.is_file()
    )


def in_words(result: results.Result, library: Path) -> str:
    seen = f", in the mappings of {', '.join(result.seen)}" if result.seen else ""
    one, two = result.system, result.preloaded
    times = f"{middle(m.seconds for m in one)} s without, {middle(m.seconds for m in two)} s with"
    cpu = f"CPU {middle(m.cpu for m in one)} s and {middle(m.cpu for m in two)} s"
    small, large = (middle(m.peak / 1024 for m in side) for side in (one, two))
    who = ", ".join(result.bound)
    data = f"NOT THE SAME ({result.message})" if result.message else "same data"
    bound = f"{who} kept to {result.own}" if result.own else f"{library.name} bound by {who}"
    return (
        f"{data} in {result.files} files; {bound}{seen}; {times}; {cpu}; "
        f"peak {small} MiB and {large} MiB"
    )


def middle(values: Iterable[float]) -> str:
    return f"{median(values):.1f}"


if __name__ == "__main__":
    sys.exit(main())
