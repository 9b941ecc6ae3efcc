#!/usr/bin/env python3
"""Changes one line of src/ after the other, and runs the quick tests on each until one fails.
README.md says more.

    run.py [--count N] [--seed N] [--only PATH] [--resume | --survivors] [--page]
    run.py --list

Exit status: 0 if the run came to its end, 1 if the unchanged tree fails, 2 for a bad command line,
130 when interrupted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.mutants import draw, page
from tests.mutants.draw import Mutant
from tests.mutants.quick import Stage, Test, run, targets_of, tests_of
from tests.mutants.tree import Code, Tree

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "mutants"
COUNT, SEED = 150, 1
SLOWER, LEAST_LIMIT = 10, 60.0  # times the unchanged tree's seconds; seconds
OBJECTS = r"/hakmem_(core|override|cxx_shared)\.dir/"

# A stage runs its cheap tests first. The last finds what only an assertion notices.
STAGES = (
    Stage("release", ("unit_(?!class_table).*",)),
    Stage("release", ("api_(?!.*_(alone|static|names|every|few)$).*",)),
    Stage("release", ("options_(start|learn|wrong|sources|secure)",)),
    Stage("release", ("explore",)),
    Stage(
        "release",
        (
            "trap_(signals|forks|threads|reenter|kernel|start|scavenger|preempted)",
            "stress_(8|fork|threads)",
            "misuse_kinds",
            "golden_fast_path",
            "misuse_reports",
        ),
    ),
    Stage("debug", ("unit_(?!class_table).*", "trap_(signals|forks)", "stress_(8|fork|threads)")),
)


class Unfit(Exception):
    """The unchanged tree does not build, or fails a test."""


@dataclass(frozen=True)
class Ready:
    preset: str
    targets: Sequence[str]
    tests: Sequence[Test]


@dataclass(frozen=True)
class Trial:
    """The stages with their tests, and after how many seconds each test hangs."""

    tree: Tree
    stages: Sequence[Ready]
    limits: dict[str, float]
    output: Path

    def outcome(self, mutant: Mutant) -> dict[str, Any]:
        """What becomes of it. The tree is as before at the end."""
        begun = time.monotonic()
        try:
            self.tree.mutate(mutant)
            code = self.tree.code(mutant)
            result = {"outcome": code.value} if code is not Code.DIFFERS else self._tested()
        finally:
            self.tree.restore()
        return {**result, "seconds": round(time.monotonic() - begun, 1)}

    def _tested(self) -> dict[str, Any]:
        for stage in self.stages:
            built = self.tree.build(stage.preset, stage.targets)
            if not built.done:
                return {"outcome": Code.INVALID.value}
            for test in stage.tests if built.anything else ():
                ran = run(test, self.limits[test.name], self.output)
                if not ran.passed:
                    return {"outcome": "killed", "by": test.name, "how": ran.how}
        return {"outcome": "survived"}


def trial(tree: Tree, stages: Sequence[Stage], folder: Path, least: float = LEAST_LIMIT) -> Trial:
    """After the unchanged tree has passed, which gives the limits."""
    output = folder / "output"
    found, limits = [], {}
    for stage in stages:
        targets = targets_of(stage, tree.folder(stage.preset))
        if not tree.build(stage.preset, targets).done:
            raise Unfit(f"the unchanged tree does not build: ninja {' '.join(targets)}")
        tests = tests_of(stage, tree.folder(stage.preset))
        for test in tests:
            ran = run(test, limit=3600, output=output)
            if not ran.passed:
                raise Unfit(f"the unchanged tree fails {test.name} ({ran.how}): {output}")
            limits[test.name] = max(least, SLOWER * ran.seconds)
        found.append(Ready(stage.preset, targets, sorted(tests, key=lambda t: limits[t.name])))
    tree.keep()
    return Trial(tree, found, limits, output)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=COUNT, help="mutants to test")
    parser.add_argument("--seed", type=int, default=SEED, help="of the lot")
    parser.add_argument("--only", default="", metavar="PATH", help="a file or folder of src/")
    parser.add_argument("--list", action="store_true", help="only say which come, in their order")
    parser.add_argument("--resume", action="store_true", help="go on where the last run ended")
    parser.add_argument("--survivors", action="store_true", help="test the last run's once more")
    parser.add_argument("--page", action="store_true", help="write results.md from the results")
    options = parser.parse_args()
    draw.install(FOLDER / "python")
    mutants = draw.drawn(list(all_mutants(options.only)), options.seed)
    if not mutants:
        parser.error(f"--only {options.only}: no mutants there")
    if options.list:
        print("\n".join(m.name for m in mutants[: options.count]))
        return 0
    head = header(options.seed, options.only)
    path = FOLDER / "results.jsonl"
    old = page.read(path) if options.resume or options.survivors else []
    if old and any(old[0][key] != head[key] for key in ("seed", "only", "sources")):
        parser.error("the last run had another seed, other files or other sources")
    kept = [r for r in old[1:] if not (options.survivors and r["outcome"] == "survived")]
    path.write_text("".join(json.dumps(each) + "\n" for each in [head, *kept]))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)  # no test is left running
    try:
        if options.survivors:
            again = {r["name"] for r in old[1:]} - {r["name"] for r in kept}
            mutants = [m for m in mutants if m.name in again]
            test_all(mutants, {}, len(mutants), path)
        else:
            test_all(mutants, {r["name"]: r for r in kept}, options.count, path)
    except Unfit as wrong:
        print(wrong, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; --resume goes on", file=sys.stderr)
        return 130
    finally:
        results = page.read(path)
        if options.page and len(results) > 1:
            page.write(results, ROOT / "tests" / "mutants")
        print(page.summary(results))
    return 0


def test_all(
    mutants: Sequence[Mutant], known: dict[str, dict[str, Any]], count: int, path: Path
) -> None:
    """Until `count` were killed or survived, those that are known included."""
    tree = Tree(ROOT, FOLDER, sorted({stage.preset for stage in STAGES}), OBJECTS)
    print("mutants: the unchanged tree first", flush=True)
    ready = trial(tree, STAGES, FOLDER)
    tested = 0
    with path.open("a") as out:
        for mutant in mutants:
            if tested == count:
                return
            result = known.get(mutant.name)
            if result is None:
                result = {
                    "name": mutant.name, "file": mutant.file, "line": mutant.line,
                    **ready.outcome(mutant),
                }  # fmt: skip
                print(json.dumps(result), file=out, flush=True)
                print(f"{page.words(result)}: {mutant.name}", flush=True)
            tested += result["outcome"] in ("killed", "survived")


def all_mutants(only: str) -> Iterator[Mutant]:
    return itertools.chain.from_iterable(
        draw.mutants_of(path, ROOT)
        for path in draw.sources(ROOT)
        if path.is_relative_to(ROOT / only)
    )


def header(seed: int, only: str) -> dict[str, str | int]:
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    texts = sha256(b"".join(path.read_bytes() for path in draw.sources(ROOT))).hexdigest()
    date = datetime.now(UTC)
    return {"seed": seed, "only": only, "sources": texts, "commit": commit,
            "date": f"{date:%Y-%m-%d}"}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
