"""Programs that allocate known amounts, and the profiles that they write."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from hakmem import heap_profile, perf_map, symbols
from hakmem.perf_map import PerfMap
from hakmem.symbols import Named, Stack
from tests.ran import clean_environment

HERE = Path(__file__).parent
SECONDS = 300
RATE = 16 * 1024
BLOCK = 1024
KEPT = 256 * 2**20  # by each of the functions that keep blocks
PASSED = 64 * 2**20  # allocated and freed before
# Of a sum of 16384 samples the standard error is 0.8%.
SHARE = 0.05


@dataclass
class Planted:
    programs: Path
    library: Path
    folder: Path
    _made: dict[str, Path] = field(default_factory=dict)

    def profile(self, name: str) -> Path:
        """Of a program, as it writes it when it ends; made once."""
        if name not in self._made:
            self._made[name] = profile_of(self.programs / name, self.library, self.folder)
        return self._made[name]


def profile_of(program: Path, library: Path, folder: Path, *words: str, **variables: str) -> Path:
    path = folder / f"{program.name}.heap"
    others = clean_environment()
    subprocess.run(
        [program, *words],
        env={
            **others,
            "LD_PRELOAD": str(library),
            "HAKMEM_PROFILE": "on",
            "HAKMEM_PROFILE_RATE": str(RATE),
            "HAKMEM_PROFILE_SAMPLES": "0",
            "HAKMEM_PROFILE_FILE": str(path),
            **variables,
        },
        check=True,
        timeout=SECONDS,
    )
    return path


def named(path: Path, made: PerfMap | None = None, **options: object) -> Named:
    profile = perf_map.with_made(heap_profile.read(path), made)
    return symbols.named(profile, **options)  # type: ignore[arg-type]


def functions(stack: Stack) -> list[str]:
    """The innermost first."""
    return [line.function for line in stack.lines()]


def by_function(profile: Named, name: str) -> Stack:
    """The one stack that has this function."""
    (found,) = (stack for stack in profile.stacks if name in functions(stack))
    return found


def line_of(source: str, mark: str) -> int:
    """Where a source has the comment "here: mark"."""
    lines = (HERE / source).read_text().splitlines()
    (found,) = (
        n for n, line in enumerate(lines, 1) if line.removesuffix(" */").endswith(f" here: {mark}")
    )
    return found


def near(figure: float, planted: float) -> bool:
    return abs(figure - planted) <= SHARE * planted
