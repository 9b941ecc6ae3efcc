"""What `hakmem replay` does; hakmem/replay_command.py has its command line."""

from __future__ import annotations

import argparse
import json
import math
import secrets
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import geometric_mean, median

import numpy as np
from rich.console import Console
from rich.markup import escape

from hakmem import interrupts
from hakmem.hint import hint
from hakmem.outputs import outputs, write
from hakmem.process import short
from hakmem.profile_text import printable
from hakmem.recording import NoRecording
from hakmem_yardstick import replay
from hakmem_yardstick.chosen import chosen, libraries, player
from hakmem_yardstick.jobs import executor, result
from hakmem_yardstick.model import OURS, Allocator, Kind
from hakmem_yardstick.progress import Display
from hakmem_yardstick.replay import CannotReplay, Job, Played, Prepared
from hakmem_yardstick.sheet import Part, Sheet, page, show

FAILED = 1
MIB = 2**20


@dataclass(frozen=True)
class Replayed:
    """One recording on all allocators."""

    recording: Path
    ready: Prepared
    played: Mapping[str, Sequence[Played]]
    """By allocator, a round each."""

    def typical(self, name: str) -> Played | None:
        """The round with the median peak; None if one failed."""
        rounds = sorted(self.played[name], key=lambda one: one.peak)
        return rounds[len(rounds) // 2] if all(one.outcome == "ok" for one in rounds) else None


def run(arguments: argparse.Namespace) -> int:
    try:
        with interrupts.in_order():
            return _run(arguments)
    except CannotReplay as why:
        print(f"hakmem replay: {printable(str(why))}", file=sys.stderr)
        return why.status
    except interrupts.Interrupted as end:
        print("hakmem replay: interrupted", file=sys.stderr)
        return end.status


def _run(arguments: argparse.Namespace) -> int:
    files = outputs(arguments.output, {".html": _html, ".json": _json})
    allocators = chosen(arguments.allocators, arguments.library)
    console = Console(highlight=False)
    console.width = max(200, console.width)  # rather a broken line than a figure cut short
    all_of_them = []
    unread = False
    absolute = [recording.absolute() for recording in arguments.files]
    read = [player(arguments.library), *absolute, *libraries(allocators)]
    with executor(arguments.cluster, [file for file in read if file.exists()]) as jobs:
        for recording in arguments.files:
            try:
                with Display(console, plain=False) as display:
                    display.step(f"reading {recording}")
                    ready = replay.prepared(recording.absolute(), arguments.process)
            except NoRecording as why:
                print(f"hakmem replay: {printable(str(why))}", file=sys.stderr)
                unread = True
                continue
            with Display(console, plain=False) as display:
                display.step(f"replaying {recording}")
                played = _play(arguments, recording.absolute(), allocators, jobs)
            done = Replayed(recording, ready, played)
            _show(done, console)
            all_of_them.append(done)
    if not all_of_them:
        return FAILED
    if len(all_of_them) > 1:
        show(ranks(all_of_them), console)
    console.print(f"[dim]{NOTE}[/dim]")
    for path, writer in files:
        write(path, writer(all_of_them), "replay")
    page = next((path for path, _ in files if path.suffix == ".html"), None)
    draw = "-o NAME.html draws memory over time; 'hakmem compare' runs the program itself"
    hint(draw if page is None else f"open {page} in a browser")
    every = [one for done in all_of_them for rounds in done.played.values() for one in rounds]
    return FAILED if unread or any(one.outcome != "ok" for one in every) else 0


NOTE = (
    "Memory is what the program's heap would take. Time is that of the calls alone: it does not"
    " tell how fast the program would be."
)


def _play(
    arguments: argparse.Namespace, recording: Path, allocators: Sequence[Allocator], jobs: Executor
) -> dict[str, list[Played]]:
    """In rounds, in an order drawn by lot."""
    seed = secrets.randbits(32)
    waiting = []
    for number in range(arguments.rounds):
        for allocator in Random(f"{seed}/{number}").sample(allocators, len(allocators)):
            job = Job(recording, arguments.process, allocator, player(arguments.library),
                      arguments.speed, arguments.timeout)  # fmt: skip
            waiting.append((allocator.name, jobs.submit(replay.play, job)))
    played: dict[str, list[Played]] = {allocator.name: [] for allocator in allocators}
    for name, future in waiting:
        played[name].append(result(future))
    return played


# ---- what is shown ----


def _show(done: Replayed, console: Console) -> None:
    ready = done.ready
    console.print(escape(f"{done.recording}: process {ready.pid}: {short(ready.command, 200)}"),
                  soft_wrap=True)  # fmt: skip
    console.print(_calls(ready))
    if ready.unknown:
        console.print(f"left out: {ready.unknown:,} frees of blocks from before the recording")
    if not ready.whole:
        console.print("the recording is cut off or damaged: what comes later is not replayed")
    show(sheet(done), console)
    for rounds in done.played.values():
        for one in rounds:
            if one.outcome != "ok" or one.failed:
                console.print(escape(f"{one.allocator}: {one.why}"))
                break
    console.print()


def sheet(done: Replayed) -> Sheet:
    """The leanest first."""
    heads = ("", "peak", "of in use", "average", "time of calls", "quartiles", "page faults")
    found = []
    for name, rounds in done.played.items():
        bad = next((one for one in rounds if one.outcome != "ok"), None)
        if bad is not None:
            found.append((math.inf, (name, bad.outcome, *[""] * (len(heads) - 2))))
            continue
        peak = median(one.peak for one in rounds)
        times = [one.time for one in rounds]
        low, high = (float(end) for end in np.quantile(times, (0.25, 0.75)))
        cells = (
            name,
            f"{peak / MIB:.1f} MiB",
            f"{peak / max(done.ready.peak, 1):.2f}",
            f"{median(one.mean for one in rounds) / MIB:.1f} MiB",
            f"{median(times):.3f} s",
            f"{low:.3f}-{high:.3f}" if len(times) > 1 else "",
            f"{median(one.faults for one in rounds):,.0f}",
        )
        found.append((peak, cells))
    return Sheet(heads, [cells for _, cells in sorted(found, key=lambda one: one[0])])


def ranking(all_of_them: Sequence[Replayed]) -> list[tuple[str, float, float, int]]:
    """Of the allocators with which all went well: geometric means of peak and time to the best of
    each recording, and how often it had the lowest peak. The leanest first."""
    names = [
        name
        for name in all_of_them[0].played
        if all(done.typical(name) is not None for done in all_of_them)
    ]
    peaks: dict[str, list[float]] = {name: [] for name in names}
    times: dict[str, list[float]] = {name: [] for name in names}
    for done in all_of_them:
        peak = {name: median(one.peak for one in done.played[name]) for name in names}
        time = {name: median(one.time for one in done.played[name]) for name in names}
        for name in names:
            peaks[name].append(peak[name] / max(min(peak.values()), 1))
            times[name].append(time[name] / max(min(time.values()), 1e-9))
    found = [
        (name, geometric_mean(peaks[name]), geometric_mean(times[name]), peaks[name].count(1.0))
        for name in names
    ]
    return sorted(found, key=lambda one: one[1])


def ranks(all_of_them: Sequence[Replayed]) -> Sheet:
    heads = ("over all recordings", "peak to the lowest", "time to the shortest", "leanest in")
    rows = [
        (name, f"{peak:.3f}", f"{time:.3f}", f"{first}")
        for name, peak, time, first in ranking(all_of_them)
    ]
    return Sheet(heads, rows)


# ---- what is written ----


def _json(all_of_them: Sequence[Replayed]) -> bytes:
    facts = [
        {
            "recording": str(done.recording),
            "pid": done.ready.pid,
            "command": list(done.ready.command),
            "calls": done.ready.calls,
            "threads": done.ready.threads,
            "peak_in_use": done.ready.peak,
            "replays": [asdict(one) for rounds in done.played.values() for one in rounds],
        }
        for done in all_of_them
    ]
    return (json.dumps({"schema": 1, "recordings": facts}, indent=1) + "\n").encode()


def _html(all_of_them: Sequence[Replayed]) -> bytes:
    from hakmem_yardstick import plots  # takes a second to load

    names = all_of_them[0].played
    known = plots.colours(
        Allocator(name, Kind.OURS if name.startswith(OURS) else Kind.PEER) for name in names
    )
    parts = [Part(sheet=ranks(all_of_them))] if len(all_of_them) > 1 else []
    for number, done in enumerate(all_of_them):
        in_use = replay.curve(np.asarray(done.ready.times), np.asarray(done.ready.live))
        curves = [plots.Curve(IN_USE, IN_USE, [(at, size / 1024) for at, size in in_use])]
        for name in done.played:
            one = done.typical(name)
            if one is not None:
                curves.append(
                    plots.Curve(name, name, [(at, size / 1024) for at, size in one.curve])
                )
        shown = {IN_USE: "currentColor"} | {c.allocator: known[c.allocator] for c in curves[1:]}
        plot = plots.over_time(
            f"curve{number}", "Memory of the heap over time", curves, shown,
            seconds="seconds of the recording",
        )  # fmt: skip
        parts.append(
            Part(
                str(done.recording),
                [short(done.ready.command, 500), _calls(done.ready)],
                sheet(done),
                [plot] if plot is not None and len(curves) > 1 else [],
            )
        )
    return page("hakmem replay", [*parts, Part(text=[NOTE])]).encode()


IN_USE = "in use"


def _calls(ready: Prepared) -> str:
    threads = f"{ready.threads} thread{'s' if ready.threads != 1 else ''}"
    return (
        f"{ready.calls:,} calls of {threads} in {ready.times[-1]:.2f} s; at most"
        f" {ready.peak / MIB:.1f} MiB in use"
    )
