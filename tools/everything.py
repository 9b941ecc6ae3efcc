#!/usr/bin/env python3
"""What `make test` runs: every part, whatever happens to the others, and at the end one screen that
says what failed, how to run that alone, where its output is, and what was skipped and why. The
tests of one part after another run, and meanwhile later parts are built.

    everything.py [PART...] [--jobs N]

Parts: release, debug, tsan, fuzz, musl, aarch64 (the tests of those presets), rust, lint; and
yardstick, the tests of the benchmark system alone, which are a part of release.
Exit status: 0 if all passed, 1 if anything failed, 2 for a bad command line, 130 when interrupted.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
# A step hangs if it takes so long; ctest ends each test that does.
MOST_SECONDS = 3 * 3600
TOOK_TOO_LONG = 124  # as timeout(1) has it
SECONDS_TO_END = 10
NICE = 10  # of what goes ahead of the tests
LINES_OF_FAILURES = 24
LINES_OF_SKIPS = 12
WIDTH = 150
# What is run with assertions, but for what measures or steps through every instruction.
ASSERTED = (
    "^((unit|api|trap|stress|torture)(_|$)"
    "|options_(wrong|sources|combinations)$"
    "|limits_(fail$|(unit|sizes|values|aligned|calloc|life|stress)_))"
)
MEASURES = "^(unit_class_table|torture_fork_cost|trap_footprint|trap_step)$"
YARDSTICK = "^yardstick_"
NIGHTLY = "^nightly$"  # the label of what only `make test-nightly` runs
LIBRARIES = ("hakmem_shared", "hakmem_static")
ASSERTED_FOLDERS = ("unit", "api", "traps", "stress", "torture", "options", "limits")
ASSERTED_TARGETS = (*LIBRARIES, *(f"tests/{folder}/all" for folder in ASSERTED_FOLDERS))
YARDSTICK_TARGETS = ("hakmem_shared", "hakmem_replay", "command/all", "yardstick/all")
# Of the builds for other systems: one test of each kind.
FEW = ("unit_base", "unit_heap", "api_life", "api_misuse", "stress_names")
FEW_NAMED = f"^({'|'.join(FEW)})$"
FEW_TARGETS = (*LIBRARIES, *FEW)


@dataclass(frozen=True)
class Step:
    """One command, and the words by which it is called in the summary."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """`steps` run side by side whatever becomes of the others; `build` comes before, and without it
    none of them runs. With a preset, the last is its tests. Builds and steps go ahead of the tests
    of earlier parts, and take what these leave of the processors."""

    name: str
    build: tuple[Step, ...] = ()
    steps: tuple[Step, ...] = ()
    preset: str = ""
    prefix: tuple[str, ...] = ()
    only: str = ""
    without: str = ""
    within: str = ""
    """Another part that runs the same tests; this one runs only if it is named."""


@dataclass(frozen=True)
class Failure:
    part: str
    name: str
    alone: str
    output: Path


@dataclass
class Report:
    passed: int = 0
    failures: list[Failure] = field(default_factory=list)
    skips: dict[str, list[str]] = field(default_factory=dict)
    """What was skipped, by the reason."""

    def failed(self, part: Part) -> bool:
        return any(failure.part == part.name for failure in self.failures)

    def skip(self, reason: str, name: str) -> None:
        names = self.skips.setdefault(reason, [])
        if name not in names:
            names.append(name)


_SIGNALS: list[int] = []
"""Those that want this to end; heeded while a step runs, so that none is left running."""


class Interrupted(Exception):
    """By the signal that it names."""


def main() -> int:
    known = {part.name: part for part in parts()}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="default: all")
    parser.add_argument(
        # They wait more than they compute.
        "--jobs",
        type=int,
        default=3 * (os.cpu_count() or 1),
        help="tests at a time",
    )
    options = parser.parse_args()
    for name in options.parts:
        if name not in known:
            parser.error(f"{name}: expected one of {', '.join(known)}")
    chosen = [known[name] for name in options.parts]
    chosen = chosen or [part for part in known.values() if not part.within]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: _SIGNALS.append(received))
    return run(chosen, ROOT, ROOT / "build" / "test", options.jobs)


def parts() -> list[Part]:
    return [
        _tests("release"),
        replace(
            _tests("release", name="yardstick", only=YARDSTICK, targets=YARDSTICK_TARGETS),
            within="release",
        ),
        _tests("debug", only=ASSERTED, without=MEASURES, targets=ASSERTED_TARGETS),
        # ThreadSanitizer wants its shadow where a kernel with much address randomness may put a
        # library.
        _tests("tsan", prefix=_fixed_addresses()),
        _tests("fuzz"),
        _tests("musl", only=FEW_NAMED, targets=FEW_TARGETS),
        _tests("aarch64", only=FEW_NAMED, targets=FEW_TARGETS),
        Part("rust", steps=(Step("the crate", ("make", "test-rust")),)),
        Part(
            "lint",
            steps=tuple(
                Step(name, ("make", f"lint-{name}"))
                for name in ("c", "tidy", "python", "shell", "rust")
            ),
        ),
    ]


def _tests(
    preset: str,
    prefix: tuple[str, ...] = (),
    only: str = "",
    without: str = "",
    targets: Sequence[str] = (),
    name: str = "",
) -> Part:
    """The tests that match `only`, and not `without`. They need only `targets` of the build; if
    there are none, all of it."""
    chosen = ("--target", *targets) if targets else ()
    build = (
        Step("configuring", ("cmake", "--preset", preset)),
        Step("the build", ("cmake", "--build", "--preset", preset, *chosen)),
    )
    return Part(name or preset, build, preset=preset, prefix=prefix, only=only, without=without)


def _fixed_addresses() -> tuple[str, ...]:
    if shutil.which("setarch") is None:
        return ()
    allowed = subprocess.run(["setarch", "-R", "true"], capture_output=True).returncode == 0
    return ("setarch", "-R") if allowed else ()


# ---- running ----


def run(parts: Sequence[Part], root: Path, out: Path, jobs: int) -> int:
    """Runs the parts in `root`, with what they say in `out`, and prints the summary."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    report = Report()
    place = Place(root, out, jobs)
    began = time.monotonic()
    interrupted = ""
    with ThreadPoolExecutor(1) as ahead:
        made = [ahead.submit(_make, part, place, report) for part in parts]
        try:
            for part, passed in zip(parts, made, strict=True):
                while not wait((passed,), timeout=0.2).done:
                    pass  # a signal's handler runs only in between
                report.passed += passed.result()
                if part.preset and not report.failed(part):
                    _run_tests(part, place, report)
        except Interrupted as why:
            interrupted = str(why)
            ahead.shutdown(cancel_futures=True)
    minutes = (time.monotonic() - began) / 60
    text = summary(report, minutes, out, interrupted, most=None)
    (out / "summary.txt").write_text(text)
    print(summary(report, minutes, out, interrupted), end="", flush=True)
    return 130 if interrupted else 1 if report.failures else 0


@dataclass(frozen=True)
class Place:
    root: Path
    out: Path
    jobs: int


def _make(part: Part, place: Place, report: Report) -> int:
    """The part up to its tests. How many of its steps passed."""
    began = time.monotonic()
    for step in part.build:
        if not _run_step(part, step, place, report):
            report.skip(f"{step.name} failed", f"all that {part.name} would have run")
            return 0
    with ThreadPoolExecutor(place.jobs) as pool:
        run = partial(_run_step, part, place=place, report=report)
        passed = sum(pool.map(run, part.steps))
    _say_minutes(f"{part.name}: {'built' if part.preset else 'done'}", began)
    return passed


def _run_step(part: Part, step: Step, place: Place, report: Report) -> bool:
    output = place.out / part.name / f"{_file_name(step.name)}.txt"
    _say(f"{part.name}: {step.name}: {shlex.join(step.command)}")
    status = _execute(step.command, place.root, output, ahead=True)
    if status == 0:
        return True
    report.failures.append(Failure(part.name, step.name, shlex.join(step.command), output))
    _say(f"{part.name}: {step.name} failed ({_in_words(status)}): {output}")
    return False


def _say(line: str) -> None:
    """By one call, as others speak too: no line stands in another."""
    print(f"{line}\n", end="", flush=True)


def _say_minutes(what: str, began: float) -> None:
    _say(f"{what} in {(time.monotonic() - began) / 60:.1f} min")


def _run_tests(part: Part, place: Place, report: Report) -> None:
    results = place.out / part.name / "junit.xml"
    only = (
        *(("-R", part.only) if part.only else ()),
        *(("-E", part.without) if part.without else ()),
    )
    command = (
        *(*part.prefix, "ctest", "--preset", part.preset, *only, "-LE", NIGHTLY),
        *("-j", str(place.jobs)),
        # Whole: the reasons for what a test skipped stand in it.
        *("--test-output-size-passed", "1000000", "--test-output-size-failed", "1000000"),
        *("--output-junit", str(results)),
    )
    output = place.out / part.name / "tests.txt"
    _say(f"\n==== {part.name}: the tests")
    began = time.monotonic()
    status = _execute(command, place.root, output, ahead=False)
    try:
        cases = list(ElementTree.parse(results).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        cases = []
    for case in cases:
        _take(case, part, place, report)
    _say_minutes(f"{part.name}: tested", began)
    # What is no test's failure, or came before there were results.
    if status != 0 and not report.failed(part):
        name = f"the tests ({_in_words(status)})"
        report.failures.append(Failure(part.name, name, shlex.join(command), output))


def _take(case: ElementTree.Element, part: Part, place: Place, report: Report) -> None:
    """One test's result."""
    name, status = case.get("name", "?"), case.get("status", "?")
    said = case.findtext("system-out") or ""
    why = case.find("skipped")
    reason = "" if why is None else why.get("message", "")
    if status in ("notrun", "disabled") and reason.startswith(("SKIP_", "Disabled")):
        report.skip(_last_line(said) or reason, f"{part.name}: {name}")
    elif status == "run":
        report.passed += 1
        for reason in left_out(said):
            report.skip(reason, f"{part.name}: {name}, in part")
    else:
        output = place.out / part.name / f"{_file_name(name)}.txt"
        output.write_text(said or reason)
        alone = ("ctest", "--preset", part.preset, "-R", f"^{re.escape(name)}$")
        alone_words = shlex.join((*part.prefix, *alone))
        report.failures.append(Failure(part.name, name, alone_words, output))


def left_out(said: str) -> Iterable[str]:
    """The reasons why a test that passed did not test all: pytest's lines, and those of ours."""
    for line in said.splitlines():
        if match := re.match(r"SKIPPED \[\d+\] \S+: (.*)|\w+: (.*?):? not tested$", line):
            yield match[1] or match[2]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reasons = list(left_out(text))
    return reasons[-1] if reasons else lines[-1] if lines else ""


def _execute(command: Sequence[str], root: Path, output: Path, ahead: bool) -> int:
    """Its exit status; minus a signal's number, as subprocess has it. It writes into a file, since
    a process that it leaves behind would hold a pipe open; and such a process is killed."""
    output.parent.mkdir(parents=True, exist_ok=True)
    if ahead:
        command = ("nice", "-n", str(NICE), *command)
    with output.open("wb") as file:
        try:
            process = subprocess.Popen(
                command, cwd=root, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            file.write(f"{command[0]}: {error.strerror}\n".encode())
            return 127
    if ahead:
        # Where the kernel divides processors between sessions first.
        with suppress(OSError):
            Path(f"/proc/{process.pid}/autogroup").write_text(str(NICE))
    try:
        with output.open("rb") as said:
            ended = _follow(process, (lambda: b"") if ahead else partial(_whole_lines, said))
    finally:
        _end(process)
    return process.returncode if ended else TOOK_TOO_LONG


def _whole_lines(said: BinaryIO) -> bytes:
    begin = said.tell()
    news = said.read()
    length = news.rfind(b"\n") + 1
    said.seek(begin + length)
    return news[:length]


def _follow(process: subprocess.Popen[bytes], news: Callable[[], bytes]) -> bool:
    """Until it ends; False if it has had its time before."""
    give_up = time.monotonic() + MOST_SECONDS
    ended = False
    while not ended and time.monotonic() < give_up:
        if _SIGNALS:
            raise Interrupted(signal.Signals(_SIGNALS[0]).name)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
            ended = True
        sys.stdout.buffer.write(news())
        sys.stdout.flush()
    return ended


def _end(process: subprocess.Popen[bytes]) -> None:
    """With all that it started and that is still in its group."""
    if process.poll() is None:
        _signal_group(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS_TO_END)
    _signal_group(process, signal.SIGKILL)
    process.wait()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _in_words(status: int) -> str:
    if status == TOOK_TOO_LONG:
        return f"not done after {MOST_SECONDS / 60:.0f} minutes"
    return f"signal {-status}" if status < 0 else f"status {status}"


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name)


# ---- the end ----


def summary(
    report: Report, minutes: float, out: Path, interrupted: str, most: int | None = WIDTH
) -> str:
    """With `most`, one screen: lines of so many characters, and of many alike only the first."""
    lines = ["", "-" * 72]
    lines += _cut(_failures(report), LINES_OF_FAILURES, most)
    lines += _cut(_skips(report), LINES_OF_SKIPS, most)
    failed = len(report.failures)
    if not report.skips:
        lines.append("Nothing was skipped.")
    how = f"interrupted by {interrupted}, " if interrupted else ""
    counts = f"{report.passed} passed, {failed} failed, {minutes:.0f} minutes"
    verdict = "FAILED" if failed or interrupted else "all passed"
    lines.append(f"make test: {verdict} ({how}{counts}); all of this: {_short(out)}/summary.txt")
    return "\n".join(lines) + "\n"


def _failures(report: Report) -> list[str]:
    if not report.failures:
        return []
    lines = ["Failed; each with the command that runs it alone, and its output:"]
    for one in report.failures:
        lines.append(f"  {one.part}: {one.name}")
        lines.append(f"    {one.alone}")
        lines.append(f"    {_short(one.output)}")
    return lines


def _skips(report: Report) -> list[str]:
    if not report.skips:
        return []
    lines = ["Skipped, and why:"]
    for reason, names in report.skips.items():
        lines.append(f"  {reason}: {'; '.join(names)}")
    return lines


def _cut(lines: list[str], most_lines: int, most: int | None) -> list[str]:
    if most is None:
        return lines
    short = [line if len(line) <= most else line[: most - 3] + "..." for line in lines]
    if len(short) <= most_lines + 1:
        return short
    return [*short[:most_lines], f"  ... and {len(short) - most_lines} lines more"]


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


if __name__ == "__main__":
    sys.exit(main())
