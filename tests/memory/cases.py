"""What memory.py runs: cases, what each must reach, and which figure of a run counts."""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB

Figures = dict[str, float]


@dataclass(frozen=True)
class Case:
    name: str
    arguments: tuple[str, ...]
    unit: str
    """x: resident over live; KiB: of each thread; MiB: in all. Above the program's own."""
    most: float | None
    """What hakmem may have at the last moment that counts; None: for information."""
    threads: int = 1
    seconds: int = 2
    """How long the program is watched after its last free."""
    counts_after: int = 0
    """The second at which `most` must hold; threads may use the time."""

    def value(self, run: Figures, second: int) -> float:
        return run[f"resident_{second}"] / self._one(run)

    def settled(self, run: Figures) -> float:
        return run["settled"] / self._one(run)

    def settles(self) -> tuple[str, str]:
        """The option that says when waiting may end."""
        assert self.most is not None
        if self.unit == "x":
            return "--settles-percent", str(int(self.most * 100))
        return "--settles-at", str(int(self.most * self._one({})))

    def _one(self, run: Figures) -> float:
        """The unit in bytes."""
        if self.unit == "x":
            return run["live"]
        return {"KiB": self.threads * KIB, "MiB": MIB}[self.unit]


def _holes(smallest: int, largest: int, threads: int, most: float | None) -> Case:
    arguments = _arguments("holes", 128 * MIB, smallest, largest, 2, ("--threads", threads))
    name = f"holes {smallest}-{largest}, {threads} thread{'s' if threads > 1 else ''}"
    return Case(name, arguments, "x", most, threads, 2, 2 if threads > 1 else 0)


def _sleepers(
    smallest: int, largest: int, threads: int, seconds: int, bytes_each: int = MIB
) -> Case:
    arguments = _arguments(
        "sleepers", bytes_each, smallest, largest, seconds, ("--threads", threads)
    )
    name = f"sleepers {smallest}-{largest}, {threads} threads of {bytes_each // KIB} KiB"
    most = 24 if threads >= 500 else 64  # all may keep 4 MiB together
    share = 256 / threads  # what a process has once
    return Case(name, arguments, "KiB", most + share, threads, seconds, 2)


def _waves(smallest: int, largest: int, mib: int, second_thread: bool) -> Case:
    extra = ("--second-thread", int(second_thread))
    arguments = _arguments("waves", mib * MIB, smallest, largest, 2, extra)
    name = f"waves {smallest}-{largest}, {'2 threads' if second_thread else '1 thread'}"
    return Case(name, arguments, "MiB", None)


def _arguments(
    what: str, size: int, smallest: int, largest: int, seconds: int, extra: tuple[str, int]
) -> tuple[str, ...]:
    numbers: tuple[tuple[str, int], ...] = (
        ("--bytes", size),
        ("--smallest", smallest),
        ("--largest", largest),
        ("--seconds", seconds),
        extra,
    )
    return (what, *(text for name, number in numbers for text in (name, str(number))))


def cases(quick: bool) -> list[Case]:
    """Quick: those with a bound alone."""
    seconds = 2 if quick else 5
    bound = [
        _holes(1024, 8192, 1, 2.5),
        _holes(1024, 8192, 4, 2.5),
        _holes(16, 1024, 1, 6.5),
        _holes(16, 1024, 4, 6.5),
        _sleepers(16, 8192, 500, seconds),
        _sleepers(16, 1024, 500, seconds),
        _sleepers(16, 1024, 64, seconds, 64 * KIB),
        _sleepers(16 * KIB, 32 * KIB, 64, seconds, 64 * KIB),
        _sleepers(16, 1024, 2000, seconds, 26 * KIB),  # 50 blocks each
    ]
    if quick:
        return bound
    return [
        *bound,
        _holes(16, 128, 1, None),
        *(_waves(16, 256 * KIB, 256, second) for second in (False, True)),
        *(_waves(64 * KIB, 8 * MIB, 512, second) for second in (False, True)),
    ]
