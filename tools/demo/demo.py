#!/usr/bin/env python3
"""The system's malloc and hakmem beside each other, under redis and under a batch program.

    demo.py --lib build/release/libhakmem.so [--quick] [--port N]

Each allocator is put in force by LD_PRELOAD, the rounds are interleaved, and everything runs on
this machine alone: the server listens on 127.0.0.1, keeps nothing, and is ended with the demo.
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
from tools.demo.figures import Samples, table

# Many short rounds rather than few long ones: their spread is what a verdict rests on.
ROUNDS = {True: 2, False: 6}
PLAN = {True: (4_000, 20_000, 0.2), False: (24_000, 100_000, 1.2)}
INTERRUPTED = 130


def main() -> int:
    options = parse()
    console = Console(highlight=False)
    errors = Console(stderr=True, highlight=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds, so that servers are ended
    try:
        demo(options, console)
    except DemoError as error:
        errors.print(f"demo: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        errors.print("demo: interrupted; the servers it had started are ended")
        return INTERRUPTED
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--lib", type=Path, required=True, help="the libhakmem.so to show")
    parser.add_argument(
        "--quick", action="store_true", help="two rounds of little work: does it run"
    )
    parser.add_argument("--port", type=int, help="port for redis-server; default: a free one")
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
        f"The system's malloc ({base.title}) and hakmem in turn, {rounds} rounds: redis-server "
        f"with {plan.total():,} requests a run, then Python with each object "
        "from malloc."
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
    """Progress for a log file, where no bar moves."""
    if not console.is_terminal:
        console.print(what, style="dim")


def in_turn(allocators: list[Allocator], rounds: int) -> list[Allocator]:
    """Each round begins with another allocator: what warms up or cools down meets all alike."""
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
        raise DemoError("the batch program computed different data under different allocators")
    return samples


def report(
    console: Console,
    redis: Samples,
    python: Samples,
    base: Allocator,
    ours: Allocator,
    shipped: Allocator | None,
) -> None:
    figures = redis_load.LOAD + redis_load.MEMORY
    console.print()
    for title, names, samples in (
        ("redis-server", figures, redis),
        ("Python, PYTHONMALLOC=malloc", batch.FIGURES, python),
    ):
        console.print(table(title, names, samples, ours.title, base.title))
    console.print(
        "[bold]In force:[/] the loader bound malloc of redis-server and of Python to "
        f"{ours.preload}; in the last round {redis[ours.title][-1].proof}."
    )
    console.print(f"[bold]To read it:[/] {reading(redis, ours, base, shipped)}")
    console.print("[bold]What to try next[/]")
    for command, what in (
        ("build/release/bin/hakmem run YOUR-PROGRAM", "a program of yours"),
        ("build/release/bin/hakmem doctor -- YOUR-PROGRAM", "is hakmem in force there"),
        ("make test", "everything that is checked; installs what that needs first"),
        ("make bench", "many kinds of work, beside other allocators; the same"),
        ("less docs/design.md", "how it is built"),
    ):
        console.print(f"  {command}  [dim]# {what}[/]", soft_wrap=True)


def reading(redis: Samples, ours: Allocator, base: Allocator, shipped: Allocator | None) -> str:
    """What the columns are, and what a reader would ask about them."""
    rounds = len(redis[ours.title])
    notes = [
        "lower is better, except for requests/s; MiB are of resident memory (RSS).",
        f"The ratio is {ours.title} / {base.title}, with the 95% confidence interval that its "
        f"{rounds} rounds give. Where that contains 1, the {rounds} rounds show no difference.",
        "On a machine that does other work too, times move by several percent from run to run.",
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
