#!/usr/bin/env python3
"""Runs one fuzzer: the inputs of its corpus alone, or so many more that it finds from them, or for
a while. An input that fails is kept, and the last lines say how to run it again.

    run.py PROGRAM --replay
    run.py PROGRAM --runs N       the same inputs every time, from the corpus alone
    run.py PROGRAM --seconds S    goes on from what the last such call found
    run.py PROGRAM --merge        takes what such calls found and adds something into the corpus

PROGRAM is build/fuzz/tests/fuzz/fuzz_NAME, or a Python file fuzz_NAME.py.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "fuzz"
INPUT_MOST = 512
SECONDS_OF_INPUT = 300  # for one that hangs: a busy machine may be ten times as slow
SKIPPED = 77


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", type=Path)
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--replay", action="store_true")
    way.add_argument("--merge", action="store_true")
    way.add_argument("--runs", type=int)
    way.add_argument("--seconds", type=int)
    options = parser.parse_args()

    name = options.program.stem.removeprefix("fuzz_")
    program = [str(options.program.resolve())]
    if options.program.suffix == ".py":
        program.insert(0, sys.executable)
    corpus = HERE / "corpus" / name
    failed = BUILD / "failed" / name
    grown = BUILD / "grown" / name
    fresh = BUILD / "fresh" / f"{name}-{os.getpid()}"  # the same program may run twice at a time
    for folder in (corpus, failed, grown):
        folder.mkdir(parents=True, exist_ok=True)

    common = [f"-artifact_prefix={failed}/", f"-timeout={SECONDS_OF_INPUT}", "-rss_limit_mb=4096"]
    common.append("-detect_leaks=0")  # runs an input twice, and knows nothing of hakmem's blocks
    if options.program.suffix != ".py":
        common.append("-error_exitcode=1")  # its own is 77, which would be taken for a skipped test
    search = [*common, f"-max_len={INPUT_MOST}"]
    if options.replay:
        # Each on its own: a corpus as such is only read up to what is new in it.
        inputs = sorted(str(file) for file in corpus.iterdir())
        if not inputs:
            sys.exit(f"{corpus}: no inputs; without any the fuzzer would go on for ever")
        arguments = [*common, *inputs]
    elif options.merge:
        # What reaches new code; how often is left out, which would be thousands of inputs.
        fresh.mkdir(parents=True)
        arguments = [*common, "-merge=1", "-use_counters=0", str(fresh), str(corpus), str(grown)]
    elif options.runs is not None:
        fresh.mkdir(parents=True)
        arguments = [*search, "-seed=1", f"-runs={options.runs}", str(fresh), str(corpus)]
    else:
        arguments = [
            *(*search, f"-max_total_time={options.seconds}", "-print_final_stats=1"),
            *(str(grown), str(corpus)),
        ]

    before = set(failed.iterdir())
    command = [*program, *arguments]
    print(shlex.join(command), flush=True)
    status = subprocess.run(command, cwd=BUILD, env=os.environ).returncode
    if options.merge and status == 0:
        shutil.rmtree(corpus)
        shutil.copytree(fresh, corpus)
    shutil.rmtree(fresh, ignore_errors=True)
    if status not in (0, SKIPPED):
        _say_how_to_replay(program, sorted(set(failed.iterdir()) - before), command)
    return status if status in (0, SKIPPED) else 1


def _say_how_to_replay(program: list[str], kept: list[Path], command: list[str]) -> None:
    print("\nThe input is kept. This runs it again:")
    for file in kept:
        print(f"  {shlex.join([*program, str(file)])}")
    print("If it passes alone, what came before it matters; this runs all of it again:")
    folder = next((word for word in command if word.startswith(f"{BUILD}/fresh/")), None)
    print(f"  {f'mkdir -p {folder}; ' if folder else ''}{shlex.join(command)}")


if __name__ == "__main__":
    sys.exit(main())
