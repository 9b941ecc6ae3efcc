#!/usr/bin/env python3
"""How much memory comes back to the kernel, beside other allocators.

    memory.py --quick            hakmem alone, the cases with a bound: what CI runs. Where others
                                 work on the machine too, 2 s may be no time: it waits up to 120
    memory.py                    all cases, all allocators found here

Exit status: 0 when hakmem is within every bound, else 1.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.beside import OTHERS, OURS, Allocator, installed
from tests.memory.cases import Case, Figures, cases
from tests.memory.figures import figures, program


def main() -> int:
    options = parse()
    allocators, missing = installed([] if options.quick else options.vs or OTHERS)
    if missing:
        print(f"not here: {', '.join(missing)}")
    library = options.build / "libhakmem.so"
    if not library.is_file():
        sys.exit(f"{options.build} has no libhakmem.so")
    allocators.append(Allocator(OURS, library.resolve()))

    over: list[str] = []
    chosen = [case for case in cases(options.quick) if options.case in case.name]
    for setting, arguments in settings(options):
        print(f"\nhuge pages: {setting}")
        for case in chosen:
            print(f"  {case.name}")
            for allocator in allocators:
                over += run(options.build, options.quick, case, allocator, setting, arguments)
    for line in over:
        print(line)
    return 1 if over else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--case", default="", help="those whose name contains this")
    parser.add_argument("--vs", action="append", help="an allocator beside hakmem; else all")
    parser.add_argument("--huge-pages", choices=("both", "system", "never"), default="both")
    return parser.parse_args()


def settings(options: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """Each setting's name and what the program is told; a process can only refuse huge pages."""
    if options.huge_pages != "never":
        yield "the system's", []
    if options.huge_pages != "system":
        yield "never, by the process", ["--huge-pages", "0"]


def run(
    build: Path,
    quick: bool,
    case: Case,
    allocator: Allocator,
    setting: str,
    arguments: list[str],
) -> list[str]:
    """Prints the figures; returns what is over its bound."""
    command = [program(build, "comes_back"), *case.arguments, *arguments]
    patient = quick and case.most is not None and case.counts_after > 0
    if patient:
        command += case.settles()
    if allocator.library is not None:
        command += ["--in-force", allocator.library.name]
    variables = allocator.environment()
    found = figures(command, variables)
    if found is None:
        raise AssertionError("comes_back never skips")
    print(f"    {allocator.name:10} {texts(case, found)}", flush=True)
    value = case.settled(found) if patient else case.value(found, case.counts_after)
    after = found["settled_seconds"] if patient else case.counts_after
    if case.most is None or allocator.name != OURS or value <= case.most:
        return []
    when = f"{after:g} s" if after else "200 ms and 1,000 calls"
    return [
        f"{case.name}, huge pages {setting}: expected at most {case.most:g} {case.unit} {when} "
        f"after the last free, found {value:.2f}"
    ]


def texts(case: Case, found: Figures) -> str:
    """Of each second that the run was watched; the peak in the same unit."""
    peak = {f"resident_{second}": found["peak"] for second in range(case.seconds + 1)}
    most = case.value({**found, **peak}, 0)
    seconds = [s for s in (0, 1, 2, 5) if s <= case.seconds]
    values = ", ".join(f"{case.value(found, s):8.2f} at {s} s" for s in seconds)
    return f"{values}; peak {most:8.2f} {case.unit}"


if __name__ == "__main__":
    sys.exit(main())
