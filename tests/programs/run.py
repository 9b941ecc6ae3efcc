#!/usr/bin/env python3
"""Runs real programs without and with the library preloaded, and compares their data.

    run.py --lib build/release/libhakmem.so            all programs
    run.py --lib build/release/libhakmem.so git redis  some of them
    run.py --list                                      their names

For each program: its steps run with the system's allocator, then again under LD_PRELOAD; stdout,
stderr, exit status of each step and every file produced must be the same. Then it is proved that
the library was in force: by the loader's own report (LD_DEBUG=bindings) for each program named in
the case, and by /proc/PID/maps of the running program where it runs long enough to be looked at.

Exit status: 0 all the same, 1 a difference or crash, 2 a bad command line, 77 every program asked
for is missing on this machine.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.programs.cases import CASES
from tests.programs.compare import differences, report
from tests.programs.harness import PATH, Case, Failure, Run
from tools.demo import inforce

SKIPPED = 77
NOT_LOADED = b"cannot be preloaded"


def main() -> int:
    options = parse()
    if options.list:
        print("\n".join(case.name for case in CASES))
        return 0
    if not options.lib:
        return complain("--lib PATH is needed: the library to preload")
    library: Path = options.lib.resolve()
    if not library.is_file():
        return complain(f"{library}: no such file; build the library first")
    known = {case.name: case for case in CASES}
    unknown = [name for name in options.program if name not in known]
    if unknown:
        return complain(f"unknown program {', '.join(unknown)}; known: {', '.join(known)}")
    chosen = [known[name] for name in options.program] or list(CASES)
    results = [check(case, library, options.out.resolve(), options.keep) for case in chosen]
    if 1 in results:
        return 1
    return SKIPPED if all(result == SKIPPED for result in results) else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program", nargs="*", help="names of programs; all when none is given")
    parser.add_argument("--lib", type=Path, help="the library to preload")
    parser.add_argument(
        "--out", type=Path, default=Path("program-runs"), help="where inputs and outputs go"
    )
    parser.add_argument("--keep", action="store_true", help="keep the outputs of good runs too")
    parser.add_argument("--list", action="store_true", help="list the programs and end")
    return parser.parse_args()


def complain(message: str) -> int:
    print(f"run.py: {message}", file=sys.stderr)
    return 2


def check(case: Case, library: Path, out: Path, keep: bool) -> int:
    """Both runs of one case, the comparison and the proof; prints one line when all is well."""
    missing = [name for name in case.needs if shutil.which(name, path=PATH) is None]
    if missing:
        print(f"{case.name}: skipped, not installed: {', '.join(missing)}", flush=True)
        return SKIPPED
    folder = out / case.name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "input").mkdir(parents=True)
    try:
        case.prepare(folder / "input")
        _, time_without = once(case, folder, "system", None)
        preloaded, time_with = once(case, folder, "preloaded", library)
        compare(case, folder)
        prove(preloaded, folder, library)
    except Failure as failure:
        print(f"{case.name}: FAILED\n{failure}\n  inputs and outputs are kept in {folder}")
        return 1
    seen = f", in the mappings of {', '.join(sorted(preloaded.seen_in))}"
    print(
        f"{case.name}: same data in {count(folder / 'system')} files; "
        f"{library.name} bound by {', '.join(case.proof_of)}{seen if preloaded.seen_in else ''}; "
        f"{time_without:.1f} s without, {time_with:.1f} s with",
        flush=True,
    )
    if not keep:
        shutil.rmtree(folder)
    return 0


def once(case: Case, folder: Path, name: str, library: Path | None) -> tuple[Run, float]:
    run = Run(case, folder, name, library)
    begin = time.monotonic()
    try:
        case.steps(run)
    finally:
        run.close()
    return run, time.monotonic() - begin


def compare(case: Case, folder: Path) -> None:
    for file in sorted((folder / "preloaded").rglob("*.stderr")):
        if NOT_LOADED in file.read_bytes():
            raise Failure(f"{file.name}: the loader refused the library:\n  {file.read_text()}")
    found: list[str] = []
    for part, ignore in (("outputs", ()), ("files", case.may_differ)):
        found += differences(folder / "system" / part, folder / "preloaded" / part, ignore)
    if found:
        raise Failure(f"without and with the library, the data differ:\n{report(found)}")


def prove(run: Run, folder: Path, library: Path) -> None:
    place = folder / "proof"
    place.mkdir()
    argv = [word.replace("@INPUT@", str(folder / "input")) for word in run.case.proof]
    bound = inforce.bindings(argv, run.env(), place)
    for program in run.case.proof_of:
        wrong = inforce.bound_elsewhere(bound, program, library)
        if wrong:
            raise Failure(f"the library was not in force: {wrong}")


def count(folder: Path) -> int:
    return sum(1 for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    sys.exit(main())
