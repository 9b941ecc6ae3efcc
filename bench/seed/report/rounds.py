"""The order of runs, what is run again, and what is kept.

Rounds are outermost and allocators innermost, so the runs that a ratio pairs
lie next to each other in time, while the rounds of a row lie far apart: a
disturbance of some seconds spoils one pair, not a row.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from bench.seed.report.allocators import Allocator, Kind
from bench.seed.report.child import Failure, Row, Run, run_of, run_row
from bench.seed.report.setting import Setting, here, setting_of

# A run of one thread that waited for its core more than this share of the time is run again.
_WAITED = 0.05
_AGAIN = 2


@dataclass
class Plan:
    seed: Path
    rows: list[Row]
    allocators: list[Allocator]
    rounds: int
    scale: float
    """Of every row's iterations."""
    timeout: float
    check: bool

    @property
    def options(self) -> list[str]:
        return ["--scale", str(self.scale)] if self.scale != 1.0 else []


@dataclass
class Results:
    rows: list[Row]
    allocators: list[Allocator]
    setting: Setting
    runs: dict[tuple[str, str], dict[int, Run]] = field(default_factory=dict)
    """By row and allocator, then by round."""
    failures: dict[tuple[str, str], Failure] = field(default_factory=dict)
    repeated: int = 0
    disturbed: int = 0
    interrupted: bool = False

    def of(self, row: str, allocator: str) -> dict[int, Run]:
        return self.runs.get((row, allocator), {})

    @property
    def rounds(self) -> int:
        return len({number for runs in self.runs.values() for number in runs})

    def names(self, *kinds: Kind) -> list[str]:
        return [a.name for a in self.allocators if a.kind in kinds]

    def save(self, file: Path) -> None:
        text: dict[str, Any] = {
            "machine": self.setting.to_json(),
            "allocators": [
                {"name": a.name, "kind": a.kind.value, "library": str(a.library or "")}
                for a in self.allocators
            ],
            "rows": [{**r.__dict__} for r in self.rows],
            "runs": [
                {"row": row, "allocator": name, "round": number, **run.to_json()}
                for (row, name), runs in self.runs.items()
                for number, run in runs.items()
            ],
            "failures": [
                {"row": row, "allocator": name, "cell": f.cell, "detail": f.detail}
                for (row, name), f in self.failures.items()
            ],
            "repeated": self.repeated,
            "disturbed": self.disturbed,
            "interrupted": self.interrupted,
        }
        # Whole or not at all: an interrupt must not cost the rounds already saved.
        partial = file.with_name(file.name + ".partial")
        partial.write_text(json.dumps(text, indent=1) + "\n")
        partial.replace(file)


def load(file: Path) -> Results:
    text = json.loads(file.read_text())
    results = Results(
        rows=[Row(**r) for r in text["rows"]],
        allocators=[
            Allocator(a["name"], Kind(a["kind"]), Path(a["library"]) if a["library"] else None)
            for a in text["allocators"]
        ],
        setting=setting_of(text["machine"], date.fromtimestamp(file.stat().st_mtime).isoformat()),
        repeated=text["repeated"],
        disturbed=text["disturbed"],
        interrupted=text["interrupted"],
    )
    for r in text["runs"]:
        results.runs.setdefault((r["row"], r["allocator"]), {})[r["round"]] = run_of(r)
    for f in text["failures"]:
        results.failures[f["row"], f["allocator"]] = Failure(f["cell"], f["detail"])
    return results


def _waited(row: Row, run: Run) -> float:
    """Share of the time without a core; of several threads nothing is known,
    since they also wait for each other."""
    if row.threads > 1 or run.seconds <= 0:
        return 0.0
    return max(0.0, 1.0 - run.cpu_seconds / run.seconds)


def _undisturbed(plan: Plan, row: Row, allocator: Allocator, results: Results) -> Run | Failure:
    best: Run | None = None
    for attempt in range(1 + _AGAIN):
        run = run_row(plan.seed, row, allocator, plan.options, plan.timeout)
        if isinstance(run, Failure):
            return run
        results.repeated += attempt > 0
        if best is None or _waited(row, run) < _waited(row, best):
            best = run
        if _waited(row, best) <= _WAITED:
            return best
    assert best is not None
    results.disturbed += 1
    return best


def _checked(plan: Plan, row: Row, allocator: Allocator) -> Failure | None:
    """A short run in which every block is stamped, and verified when freed."""
    options = ["--scale", "0.02", "--check", "1"]
    run = run_row(plan.seed, row, allocator, options, plan.timeout)
    return run if isinstance(run, Failure) else None


def measure(
    plan: Plan, progress: Callable[[str], None], save: Callable[[Results], None]
) -> Results:
    """Runs the plan; `progress` is told what begins, `save` gets each round's results."""
    results = Results(plan.rows, plan.allocators, here(plan.allocators, plan.scale))
    work: dict[str, str] = {}
    try:
        if plan.check:
            for row in plan.rows:
                for allocator in plan.allocators:
                    if allocator.kind is Kind.FLOOR:
                        continue
                    progress(f"content checks  {row.row}  {allocator.name}")
                    failure = _checked(plan, row, allocator)
                    if failure is not None:
                        results.failures[row.row, allocator.name] = failure
        for number in range(plan.rounds):
            for row in plan.rows:
                shift = number % len(plan.allocators)
                for allocator in plan.allocators[shift:] + plan.allocators[:shift]:
                    progress(f"round {number + 1}/{plan.rounds}  {row.row}  {allocator.name}")
                    key = (row.row, allocator.name)
                    if key in results.failures:
                        continue
                    run = _undisturbed(plan, row, allocator, results)
                    if isinstance(run, Run) and work.setdefault(row.row, run.checksum) != (
                        run.checksum
                    ):
                        run = Failure(
                            "other work", f"checksum {run.checksum}, before {work[row.row]}"
                        )
                    if isinstance(run, Failure):
                        results.failures[key] = run
                    else:
                        results.runs.setdefault(key, {})[number] = run
            save(results)
    except KeyboardInterrupt:
        results.interrupted = True
    return results
