"""How near the estimates of heap profiles are to exact counts: exact.c counts every allocation of a
program by its call stack, and the profile of the same run is compared with it, site by site.

    python -m tests.profile.truth COUNTER LIBHAKMEM RATE [-n RUNS] [--after BLOCKS] -- PROGRAM...

where COUNTER is the built libprofile_exact.so. It prints for the blocks allocated and for those in
use: of the sites with at least 10 expected samples, the errors in standard errors; of those with
more than 1,600, the share within 5%.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from hakmem import heap_profile
from tests.ran import clean_environment

FRAMES_MOST = 60
SAMPLES_LEAST = 10  # below, an estimate is not nearly normal
SAMPLES_MANY = 1600
SHARE = 0.05
KINDS = ("allocated", "in use")
Stack = tuple[int, ...]


@dataclass
class Exact:
    """What blocks are together, and how the estimate of it varies."""

    blocks: float
    bytes: float
    samples: float
    blocks_variance: float
    bytes_variance: float


@dataclass
class Errors:
    """Of bytes, for sites with enough samples."""

    scaled: list[float] = field(default_factory=list)  # in standard errors
    relative: list[float] = field(default_factory=list)  # of sites with many samples
    exact: float = 0
    estimated: float = 0
    variance: float = 0

    def add(self, exact: Exact, estimated: float) -> None:
        self.exact += exact.bytes
        self.estimated += estimated
        self.variance += exact.bytes_variance
        if exact.samples >= SAMPLES_LEAST and exact.bytes_variance > 0:
            self.scaled.append((estimated - exact.bytes) / math.sqrt(exact.bytes_variance))
        if exact.samples > SAMPLES_MANY:
            self.relative.append(estimated / exact.bytes - 1)

    def total_scaled(self) -> float:
        difference = self.estimated - self.exact
        return difference / math.sqrt(self.variance) if self.variance > 0 else 0.0

    def lines(self) -> str:
        within = sum(abs(z) <= 1.96 for z in self.scaled) / max(len(self.scaled), 1)
        near = sum(abs(r) <= SHARE for r in self.relative)
        text = f"{self.exact / 2**20:9.1f} MiB, all together {self.total_scaled():+.2f} s.e."
        if len(self.scaled) > 1:
            text += (
                f"; {len(self.scaled)} sites: mean {statistics.mean(self.scaled):+.3f}"
                f" sd {statistics.stdev(self.scaled):.3f}, {within:.1%} within 1.96"
            )
        if self.relative:
            text += f"; {near} of {len(self.relative)} with many samples within 5%"
        return text


def exact_of(path: Path) -> dict[Stack, tuple[Exact, Exact]]:
    sites = {}
    for line in path.read_text().splitlines():
        words = line.split()
        figures = [float(word) for word in words[:10]]
        stack = tuple(int(word, 16) for word in words[10:])
        sites[stack] = (Exact(*figures[:5]), Exact(*figures[5:]))
    return sites


def estimates_of(path: Path, counter: str) -> dict[Stack, list[float]]:
    """Bytes allocated and in use by the program's part of the stack."""
    profile = heap_profile.read(path)
    sites: dict[Stack, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for site in profile.sites:
        stack = site.stack
        own = 0
        while own < len(stack) and _is_in(profile, stack[own], counter):
            own += 1
        found = sites[stack[own:][:FRAMES_MOST]]
        found[0] += site.figures[3]
        found[1] += site.figures[1]
    return sites


def _is_in(profile: heap_profile.Profile, address: int, name: str) -> bool:
    mapping = profile.mapping_of(address)
    return mapping is not None and mapping.path == name


def compare(folder: Path, counter: Path, errors: tuple[Errors, Errors]) -> int:
    """Of all processes that wrote their counts; how many."""
    count = 0
    for path in sorted(folder.glob("*.exact")):
        exact = exact_of(path)
        estimates = estimates_of(path.with_suffix(".heap"), str(counter.resolve()))
        unknown = sum(e[0] for stack, e in estimates.items() if stack not in exact)
        if unknown:
            print(f"{path.name}: {unknown:.0f} bytes at sites that were not counted")
        for stack, both in exact.items():
            for which in (0, 1):
                errors[which].add(both[which], estimates.get(stack, [0.0, 0.0])[which])
        count += 1
    return count


def run(
    program: list[str], counter: Path, library: Path, folder: Path, rate: int, after: int
) -> None:
    others = clean_environment()
    subprocess.run(
        program,
        env={
            **others,
            "LD_PRELOAD": f"{counter.resolve()} {library.resolve()}",
            "HAKMEM_PROFILE_RATE": str(rate),
            "HAKMEM_PROFILE_SAMPLES": "0",
            "HAKMEM_PROFILE_SCRIPTS": "off",  # the counter knows native frames alone
            "EXACT_FOLDER": str(folder),
            "EXACT_AFTER": str(after),
        },
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=1800,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counter", type=Path)
    parser.add_argument("library", type=Path)
    parser.add_argument("rate", type=int)
    parser.add_argument("-n", type=int, default=1, help="runs")
    parser.add_argument("--after", type=int, default=0, help="turn it on after so many blocks")
    parser.add_argument("program", nargs="+")
    args = parser.parse_args()
    errors = (Errors(), Errors())
    processes = 0
    for _ in range(args.n):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            run(args.program, args.counter, args.library, folder, args.rate, args.after)
            processes += compare(folder, args.counter, errors)
    print(f"{processes} processes")
    for kind, one in zip(KINDS, errors, strict=True):
        print(f"{kind:9}: {one.lines()}")
    sys.exit(processes == 0)


if __name__ == "__main__":
    main()
