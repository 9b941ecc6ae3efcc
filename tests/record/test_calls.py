"""What a recording has of a program whose calls are known."""

from __future__ import annotations

import math
import mmap
import os
import re
import resource
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from hakmem import record_command, symbols, traced
from hakmem.history import NEVER, history
from hakmem.recording import CALLOC, FREE
from hakmem.ring import Ring
from hakmem.touched import Looks
from tests.ran import ran
from tests.record.recorded import MARK, Recorded, between_marks, lines


def test_every_call(recorded: Recorded) -> None:
    done = recorded.run("calls")
    _, calls, _ = recorded.only()
    part = between_marks(calls)
    expected = []
    aligns = []
    for line in done.stdout.splitlines():
        what, address, former, size, align = line.split()
        expected.append((what, int(address), int(former), int(size)))
        aligns.append(int(align))
    assert len(expected) > 100
    assert lines(calls, part) == expected
    assert [1 << a if a else 0 for a in calls.align[part].tolist()] == aligns
    assert (calls.kind[part] == CALLOC).sum() == 11
    assert (calls.time[1:] >= calls.time[:-1]).all()


def test_hardened(recorded: Recorded) -> None:
    done = recorded.run("calls", HAKMEM_PRESET="hardened")
    _, calls, _ = recorded.only()
    expected = [line.split() for line in done.stdout.splitlines()]
    found = lines(calls, between_marks(calls))
    assert [(what, int(size)) for what, _, _, size, _ in expected] == [
        (what, size) for what, _, _, size in found
    ]


def test_beside_a_profile(recorded: Recorded) -> None:
    done = recorded.run("calls", HAKMEM_PROFILE="on", HAKMEM_PROFILE_RATE="1")
    _, calls, _ = recorded.only()
    assert len(lines(calls, between_marks(calls))) == len(done.stdout.splitlines())


def test_call_paths(recorded: Recorded) -> None:
    recorded.run("paths")
    text = recorded.trace("--top", "100").stdout
    table = text.split("allocated in all")[1].split("\n\n")[0]
    rows = re.findall(r"^ +\S+ \S+ +\S+ +([\d,]+)  (leaf.*)$", table, re.MULTILINE)
    of: dict[str, int] = {}
    for count, path in rows:
        names = [re.sub(r" \(.*", "", part) for part in path.split(" < ")]
        assert names[:2] == ["leaf", "middle"], path
        of[names[2]] = of.get(names[2], 0) + int(count.replace(",", ""))
    assert of["left"] == of["right"] == 3000
    # Of a path that can't be told apart from another one some are counted there.
    assert of["wild"] > 2800


def test_wrappers(recorded: Recorded) -> None:
    recorded.run("paths")
    text = recorded.trace("--top", "9", "--wrapper", "leaf", "--wrapper", "m*dle").stdout
    table = text.split("allocated in all")[1].split("\n\n")[0]
    first = set(re.findall(r"^ +\S+ \S+ +\S+ +[\d,]+  (\w+)", table, re.MULTILINE))
    assert first >= {"left", "right", "deep"} and not first & {"leaf", "middle"}


def test_more_paths_than_numbers(recorded: Recorded) -> None:
    """Later ones lack calls in their middle."""
    recorded.run("maze")
    found, _ = recorded.processes()
    process = next(one for one in found if one.name == recorded.plant.name)
    calls, _ = history(process)
    in_maze = calls.path[calls.size == 5000].tolist()
    assert len(in_maze) == 2**18 and len(set(in_maze)) > 2**16
    stacks = {number: process.path(number) for number in set(in_maze)}
    for end in slice(1), slice(-2, None):
        assert len({stack[end] for stack in stacks.values()}) == 1
    cut = sum(stacks[number].count(symbols.CUT) for number in in_maze)
    assert 2**17 < cut < 3 * 2**16
    assert "leaf" in recorded.trace("--top", "1").stdout


def test_blocks_of_a_single_thread(recorded: Recorded) -> None:
    recorded.run("work", "100000")
    process, calls, held = recorded.only()
    assert (held.unclear, held.unknown_frees) == (0, 0)
    assert process.done is not None and process.done["lost"] == 0
    mine = (calls.size > 15) & (calls.size < 3016) & (calls.kind != FREE)
    assert 99_900 < int(mine.sum()) < 101_000
    assert 900 < int((held.end == NEVER).sum()) < 1100


@pytest.mark.parametrize("count", [4])
def test_blocks_that_cross_threads(recorded: Recorded, count: int) -> None:
    recorded.run("exchange", str(count))
    process, calls, held = recorded.only()
    assert process.done is not None and process.done["lost"] == 0
    assert (calls.kind == FREE).sum() >= 50_000 * count
    # Clocks of processors differ by more than usual where a hypervisor moves them.
    assert held.unclear <= 50 and held.unknown_frees <= 50
    assert int((held.end == NEVER).sum()) < 100
    text = recorded.trace().stdout
    assert "flows between threads" in text and f"by {count + 1} threads" in text
    _, _, flows = text.partition("flows between threads")
    assert len(re.findall("^ +worker +worker  ", flows, re.M)) == 1
    assert len(re.findall("^ +worker +record_plant  ", flows, re.M)) == 1
    _, _, flows = recorded.trace("--threads").stdout.partition("flows between threads")
    pairs = re.findall(r"^ +worker-([0-3]) \d+ +worker-([0-3]) \d+  ", flows, re.M)
    assert len(pairs) > 5 and len(set(pairs)) == len(pairs), flows


FIRST_CHUNKS = 2048 - 16  # for threads alone, of a ring that did not grow


@pytest.mark.parametrize("can_grow", [True, False])
def test_more_threads_than_chunks(recorded: Recorded, can_grow: bool) -> None:
    """The ring grows; where it can't, threads share chunks, with the number of one of them."""
    most = resource.RLIM_INFINITY if can_grow else 12 * 2**20
    recorded.run(
        *("hold", "2500"),
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )
    process, calls, blocks = recorded.only()
    assert process.done is not None and process.done["lost"] == 0
    held = (calls.size == 1000) & (calls.kind != FREE)
    assert held.sum() == 2500
    # While one thread lets the ring grow others share a chunk, which takes long on a busy machine.
    numbers = len(set(calls.thread[held].tolist()))
    assert numbers > FIRST_CHUNKS if can_grow else numbers < 2500
    assert blocks.unknown_frees <= 50  # as above


def test_children_and_exec(recorded: Recorded) -> None:
    recorded.run("children")
    found, whole = recorded.processes()
    assert whole
    first = next(one for one in found if one.facts["parent"] == 0)
    forked = [one for one in found if one.facts["parent"] == first.facts["pid"]]
    assert len(forked) == 3
    for one in forked:
        calls, held = history(one)
        assert (calls.size == 4321).sum() == 1
        assert held.unknown_frees >= 1  # the parent's block
    last = forked[-1].facts["pid"]
    after = [one for one in found if one.facts["pid"] == last and one not in forked]
    assert len(after) == 1
    calls, _ = history(after[0])
    assert len(lines(calls, between_marks(calls))) > 100
    together = recorded.trace("--top", "99")
    table = together.stdout.split("processes: ")[1].split("\n\n")[0].splitlines()[2:]
    rows = [re.split(" {2,}", line.strip()) for line in table]
    assert len(rows) == len(found) + 1 and rows[-1][-1] == "(all)"
    for figure in (-7, -5, -2):  # calls, blocks, blocks at the end
        *each, every = [int(row[figure].replace(",", "")) for row in rows]
        assert sum(each) == every
    in_child = re.search(r"^ .* 3  in_child ", together.stdout, re.MULTILINE)
    assert in_child, "the same stack of three processes is one"
    shown = recorded.trace("--process", str(last)).stdout
    assert shown.startswith(f"process {last}: ") and shown.splitlines()[0].endswith(" calls")


def test_mappings_of_a_program_that_was_executed_since(tmp_path: Path) -> None:
    """They are not those of the program whose ring it is, which is mapped no more."""
    file = tmp_path / "7.8"
    file.write_bytes(b"a ring")
    ring = SimpleNamespace(process=os.getpid(), path=file)
    process = record_command._Process(0, cast(Ring, ring), Looks(os.getpid()))
    if process.descriptor is not None:
        os.close(process.descriptor)
    process.read_maps()
    assert process.found == "" and not process.names
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ):
        process.read_maps()
    assert "libc" in process.found and process.names
    process.looks.close()


def test_folder(recorded: Recorded) -> None:
    """All recordings in it, each at its time."""
    for name in ("one", "two"):
        recorded.run("work", "1000")
        recorded.file.rename(recorded.folder / f"{name}.recording")
    done = ran(str(recorded.hakmem), "trace", "--between", "0", "1000", str(recorded.folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 processes in ")
    begins = re.findall(r"^ +\d+ +([\d.]+) +[\d.]+ .*record_plant work 1000$", done.stdout, re.M)
    assert len(begins) == 2 and float(begins[0]) == 0 < float(begins[1])
    last = re.findall(r" ([\d,]+)  record_plant work 1000$", done.stdout, re.M)[1]
    assert "of that in use after 1000 s: " in done.stdout
    assert f" in {last} blocks.\n" in done.stdout, "the first one has ended"


def test_any_moment(recorded: Recorded) -> None:
    """The program counts what it has in use by path, and prints it at five moments."""
    done = recorded.run("moments")
    process, calls, _ = recorded.only()
    counted: list[dict[str, tuple[int, int]]] = [{} for _ in range(5)]
    for number, line in enumerate(done.stdout.splitlines()):
        kind, _, _, *figures = line.split()
        counted[number // 3][kind] = int(figures[0]), int(figures[1])
    times = calls.time[[calls.size.tolist().index(MARK + 1 + n) for n in range(5)]] / 1e9
    told = traced.traced(process, [(-math.inf, time) for time in times.tolist()])
    for span, expected in zip(told.spans, counted, strict=True):
        found = dict.fromkeys(expected, (0, 0))
        for stack in symbols.named(span.profile).stacks:
            name = next((line.function for line in stack.lines()), "")
            if name in found:
                blocks, size = found[name]
                found[name] = blocks + int(stack.figures[0]), size + int(stack.figures[1])
        assert found == expected
    words = [word for time in times for word in ("--at", repr(float(time)))]
    text = recorded.trace("--top", "9", *words).stdout
    tables = [part for part in text.split("\n\n") if part.startswith("in use after")]
    for table, expected in zip(tables, counted, strict=True):
        for name, (blocks, _) in expected.items():
            assert not blocks or re.search(rf" {blocks:,}  {name} \(", table), table
    between = recorded.trace("--between", *(repr(float(time)) for time in times[1:3])).stdout
    assert "allocated between" in between and "of that in use after" in between


def test_moments_that_are_none(recorded: Recorded) -> None:
    recorded.run("work", "100")
    assert "is to come later" in recorded.trace("--between", "2", "1", status=2).stderr
    assert "neither seconds nor a mark" in recorded.trace("--at", "noon", status=2).stderr
    for words in (("--at", "1000"), ("--between", "1000", "1001")):
        said = recorded.trace(*words, status=2).stderr
        assert f"{' '.join(words)}: process " in said and " was recorded from 0.00 s to " in said
    text = recorded.trace("--between", "0", "1000", "--at", "0.000000012").stdout
    assert "allocated between 0 s and 1000 s: " in text
    assert "in use after 0.000000012 s: nothing.\n" in text


def test_heaptrack_reads_it(recorded: Recorded) -> None:
    """And finds the same figures."""
    tool = shutil.which("heaptrack_print")
    if tool is None:
        pytest.skip("heaptrack is not installed")
    recorded.run("paths")
    made = recorded.folder / "a.heaptrack.gz"
    recorded.trace("-o", str(made))
    found, _ = recorded.processes()
    process = next(one for one in found if one.name == recorded.plant.name)
    told = traced.traced(process)
    done = ran(tool, "-f", str(made))
    assert done.returncode == 0, done.stderr
    assert f"calls to allocation functions: {told.blocks} " in done.stdout
    assert f"temporary memory allocations: {told.temporary} " in done.stdout
    peak = re.search(r"peak heap memory consumption: ([\d.]+)([KMB]*)", done.stdout)
    assert peak is not None
    size = float(peak[1]) * {"K": 1e3, "M": 1e6}.get(peak[2][0], 1)
    assert size == pytest.approx(told.peak, rel=0.01)
    assert "middle\n" in done.stdout and "plant.c:" in done.stdout
