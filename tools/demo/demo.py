#!/usr/bin/env python3
"""The memory of redis and of a Python program, with the system's malloc and with hakmem.

    demo.py --lib build/release/libhakmem.so [--quick] [--port N]

LD_PRELOAD selects the allocator, and the rounds of the allocators alternate. Everything runs on
this machine only: the server listens on 127.0.0.1, stores nothing, and ends with the demo.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tools.demo import batch, redis_load
from tools.demo.allocators import Allocator, DemoError, find, hakmem, shipped_redis
from tools.demo.allocators import system_allocator as system
from tools.demo.chart import chart
from tools.demo.figures import Samples, table

ROUNDS = {True: 2, False: 3}
PLAN = {True: (2_000, 10_000, 0.2), False: (16_000, 80_000, 1.0)}
INTERRUPTED = 130


def main() -> int:
    options = parse()
    console = Console(highlight=False)
    errors = Console(stderr=True, highlight=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds, so that servers are stopped
    try:
        demo(options, console)
    except DemoError as error:
        errors.print(f"demo: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        errors.print("demo: interrupted; its servers have been stopped")
        return INTERRUPTED
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--lib", type=Path, required=True, help="the libhakmem.so to measure")
    parser.add_argument(
        "--quick", action="store_true", help="two rounds with little work, to see whether it runs"
    )
    parser.add_argument("--port", type=int, help="the port for redis-server (default: a free port)")
    return parser.parse_args()


def demo(options: argparse.Namespace, console: Console) -> None:
    rounds, (requests, keys, idle) = ROUNDS[options.quick], PLAN[options.quick]
    plan = redis_load.Plan(requests, keys, idle, options.port)
    for program in ("redis-server", "redis-benchmark", "redis-cli"):
        find(program)
    base, ours = system(), hakmem(options.lib)
    shipped = None if options.quick else shipped_redis()
    for allocator in (base, ours):
        allocator.check(find("redis-server"), "--version")
        allocator.check(batch.PYTHON, "-S", "-c", "1")
    console.print(
        f"Shows how much memory {plan.keys:,} keys in redis-server and a large list in Python "
        f"need, and what is left after they were deleted: with the system's malloc ({base.title}) "
        f"and with hakmem, {rounds} times each, in one to two minutes."
    )
    everyone = [base, ours, *([shipped] if shipped else [])]
    redis = run_redis(everyone, plan, rounds, console)
    python = run_batch([base, ours], rounds, console)
    report(console, redis, python, base, ours, shipped)


def progress(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


def announce(console: Console, what: str) -> None:
    """Progress as lines, for a log file."""
    if not console.is_terminal:
        console.print(what, style="dim")


def in_turn(allocators: list[Allocator], rounds: int) -> list[Allocator]:
    """Each round begins with another allocator, so that all run as often first as last."""
    turns: list[Allocator] = []
    for number in range(rounds):
        first = number % len(allocators)
        turns += allocators[first:] + allocators[:first]
    return turns


def run_redis(
    allocators: list[Allocator], plan: redis_load.Plan, rounds: int, console: Console
) -> Samples:
    samples: Samples = {allocator.title: [] for allocator in allocators}
    turns = in_turn(allocators, rounds)
    with progress(console) as bar:
        task = bar.add_task("redis", total=len(turns))
        for number, allocator in enumerate(turns):
            head = f"redis, round {number // len(allocators) + 1}, {allocator.title}"

            def tell(what: str, head: str = head) -> None:
                bar.update(task, description=f"{head}: {what}")

            announce(console, head)
            samples[allocator.title].append(redis_load.measure(allocator, plan, tell))
            bar.advance(task)
    return samples


def run_batch(allocators: list[Allocator], rounds: int, console: Console) -> Samples:
    samples: Samples = {allocator.title: [] for allocator in allocators}
    digests: set[str] = set()
    turns = in_turn(allocators, rounds)
    with progress(console) as bar:
        task = bar.add_task("python", total=len(turns))
        for number, allocator in enumerate(turns):
            head = f"python, round {number // len(allocators) + 1}, {allocator.title}"
            bar.update(task, description=head)
            announce(console, head)
            sample, digest = batch.measure(allocator)
            samples[allocator.title].append(sample)
            digests.add(digest)
            bar.advance(task)
    if len(digests) != 1:
        raise DemoError("the batch program's results differ between allocators")
    return samples


def report(
    console: Console,
    redis: Samples,
    python: Samples,
    base: Allocator,
    ours: Allocator,
    shipped: Allocator | None,
) -> None:
    console.print()
    console.print("[bold]Resident memory of redis-server[/], in the last round", end="\n\n")
    curves = {title: runs[-1].curve for title, runs in redis.items()}
    for line in chart(curves, redis_load.PHASES, ours.title):
        console.print(line, no_wrap=True)
    for title, names, samples in (
        ("redis-server", redis_load.MEMORY + redis_load.LOAD, redis),
        ("Python, PYTHONMALLOC=malloc", batch.FIGURES[::-1], python),
    ):
        console.print(table(title, names, samples, ours.title, base.title))
    console.print(
        "[bold]Proof that hakmem was used:[/] the loader bound malloc of redis-server and of "
        f"Python to {ours.preload}. In the last round {redis[ours.title][-1].proof}."
    )
    console.print(f"[bold]How to read the tables:[/] {reading(redis, ours, base, shipped)}")
    console.print("[bold]What to try next[/]")
    for command, what in (
        ("make build", "the rest of it: the command hakmem"),
        ("build/release/bin/hakmem run YOUR-PROGRAM", "run your program with hakmem"),
        ("build/release/bin/hakmem why PID", "why is it so large?"),
        ("make test", "run all tests; first installs what they need"),
        ("make bench", "benchmark many workloads and allocators; also installs first"),
        ("less docs/design.md", "how hakmem works"),
    ):
        console.print(f"  {command}  [dim]# {what}[/]", soft_wrap=True)


def reading(redis: Samples, ours: Allocator, base: Allocator, shipped: Allocator | None) -> str:
    """What the columns mean, and answers to what a reader may ask."""
    rounds = len(redis[ours.title])
    notes = [
        "lower is better, except for requests/s. MiB is resident memory (RSS).",
        f"{ours.title}/{base.title} is the quotient of the two medians beside it. There is a "
        f"verdict where the {rounds} rounds agree so far that chance does not explain it (95%); "
        '"not clear" means that they do not.',
        "On a busy machine, times vary by several percent from run to run.",
    ]
    if shipped:
        notes.append(f'"{shipped.title}" is this system\'s stock redis-server, for comparison.')
        idle = redis_load.MEMORY[-1]
        least, most = (
            median(sample.values[idle] for sample in redis[who.title]) for who in (shipped, ours)
        )
        if shipped.title == "jemalloc" and least < most:
            notes.append(
                "It returns more memory on FLUSHALL because redis then tells jemalloc to purge; "
                "redis has no such call for any other malloc."
            )
    return " ".join(notes)


if __name__ == "__main__":
    sys.exit(main())
