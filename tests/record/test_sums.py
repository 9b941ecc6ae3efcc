"""What `hakmem trace` says, compared with a plain count by the test, which made the recording."""

from __future__ import annotations

import bisect
import itertools
import math
import statistics
import sys
from collections import Counter
from pathlib import Path

import pytest

from hakmem import events, moments, traced
from hakmem.events import Process
from hakmem.heap_profile import Profile
from hakmem.history import NEVER, history
from hakmem.recording import FREE, MALLOC, Chunks, Writer, numpy
from hakmem.traced import SIZES, Traced
from tests.ran import ran
from tests.record.made import Made, Truth

# Of calls in a window, and of events that make a chunk late: the smaller, the more seams.
SEAMS = ((1, 2, 64), (64, 128, 200), (1000, 4000, 10**6), (10**6, 10**6, 10**6))


@pytest.fixture(params=SEAMS)
def seams(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    least, most, late = request.param
    monkeypatch.setattr(events, "WINDOW_LEAST", least)
    monkeypatch.setattr(events, "WINDOW", most)
    monkeypatch.setattr(events, "LATE", late)
    monkeypatch.setattr(events, "LATE_A_THREAD", 0)


def _made(path: Path, seed: int, early: float = 0) -> tuple[Truth, Process]:
    made = Made(path, seed, slow=(3, 4))
    made.some(3000, threads=1 if seed == 0 else 5, early=early)
    truth = made.end()
    found, whole = events.processes(path)
    assert whole and len(found) == 1
    return truth, found[0]


def by_path(profile: Profile, at: int) -> dict[tuple[int, int], int]:
    """Blocks and bytes of the paths that have any; `at` is where the blocks are."""
    found = {}
    for site in profile.sites:
        assert len(site.stack) == 3 and site.stack[1:] == (201, 301)
        for what in range(2):
            if site.figures[at + what]:
                found[site.stack[0] - 101, what] = round(site.figures[at + what])
    return found


@pytest.mark.parametrize("seed", range(6))
def test_all_figures(seed: int, seams: None, tmp_path: Path) -> None:
    _compare(*_made(tmp_path / "a.recording", seed))


@pytest.mark.parametrize("seed", range(1, 4))
def test_frees_that_are_noted_too_early(seed: int, tmp_path: Path) -> None:
    truth, process = _made(tmp_path / "a.recording", seed, early=0.2)
    assert truth.lives.count((50, 0)) > 5
    _compare(truth, process)
    calls, held = history(process)
    assert ((held.end < held.begin).sum(), held.unclear) == (truth.early, 0)
    assert (calls.kind[held.end[held.end < held.begin]] == FREE).all()


def _compare(truth: Truth, process: Process) -> None:
    told = traced.traced(process)
    assert (told.calls, told.unknown_frees, told.unclear) == (truth.calls, truth.unknown, 0)
    _compare_use(told, truth)
    assert by_path(told.profile, 2) == dict(truth.allocated)
    assert by_path(told.temporaries, 2) == dict(truth.brief)
    assert told.temporary == sum(n for (_, what), n in truth.brief.items() if what == 0)
    flows = {(one.giver, one.taker, 0): one.blocks for one in told.flows}
    flows |= {(one.giver, one.taker, 1): one.size for one in told.flows}
    assert flows == dict(truth.flows)
    assert told.threads == len(truth.threads)


def _compare_use(told: Traced, truth: Truth) -> None:
    last, left, use_at_end = truth.moments[-1]
    top = max(truth.moments, key=lambda one: one[1])
    assert (told.peak, told.left) == (top[1], left)
    assert by_path(told.profile, 4) == top[2]
    assert by_path(told.profile, 0) == use_at_end
    scale = told.process.scale
    assert told.peak_at == pytest.approx(top[0] * scale / 1e9)
    assert told.seconds == pytest.approx(last * scale / 1e9)
    _, _, half = next(one for one in truth.moments if one[0] >= last // 2)
    growth = {key: value - half.get(key, 0) for key, value in use_at_end.items()}
    assert by_path(told.growth, 0) == {key: value for key, value in growth.items() if value > 0}
    _compare_moments(told, truth)
    _compare_parts(told, truth)


def _compare_moments(told: Traced, truth: Truth) -> None:
    """At each what was in use, and what was allocated up to then; of some paths, and of the
    others."""
    times = [time for time, _, _ in truth.moments]
    for most in (2, 100):
        paths = told.moments.paths(most, 10**9)
        shown = {path.number for path in paths}
        added: list[Counter[tuple[int, int]]] = [Counter() for _ in told.moments.found]
        for one in paths:
            for at in range(0, len(one.changes), 5):
                moment, *sums = one.changes[at : at + 5]
                added[moment].update({(one.number, what): n for what, n in enumerate(sums)})
        found: Counter[tuple[int, int]] = Counter()
        for number, place in enumerate(told.moments.found):
            last = bisect.bisect_right(times, place.time) - 1
            assert place.size == truth.moments[last][1]
            expected: Counter[tuple[int, int]] = Counter()
            for at, by_path in ((0, truth.allocated_then[last]), (2, truth.moments[last][2])):
                for (path, what), value in by_path.items():
                    expected[path if path in shown else -1, at + what] += value
            found.update(added[number])
            assert +found == +expected, number


def _compare_parts(told: Traced, truth: Truth) -> None:
    """The most of each part of the time is a moment."""
    scale = told.process.scale
    found = [(moment.time, moment.size) for moment in told.moments.found]
    assert [time for time, _ in found] == sorted(time for time, _ in found)
    assert told.curve == tuple((time * scale / 1e9, size) for time, size in found)
    last = truth.moments[-1][0]
    assert found[-1] == truth.moments[-1][:2]
    ends = [last * part / moments.PARTS for part in range(moments.PARTS + 1)]
    for begin, end in itertools.pairwise(ends):
        calls = [use for time, use, _ in truth.moments if begin < time <= end]
        tops = [size for time, size in found if begin < time <= end]
        assert not calls or max(calls) == max(tops)


@pytest.mark.parametrize("seed", range(3))
def test_any_moment(seed: int, seams: None, tmp_path: Path) -> None:
    truth, process = _made(tmp_path / "a.recording", seed)
    last = truth.moments[-1][0]
    places = [0, 1, last // 3, last // 2, last - 1, last, last + 100]
    unit = process.scale / 1e9
    asked = [(-math.inf, (place + 0.5) * unit) for place in places]
    for (_, until), span in zip(asked, traced.traced(process, asked).spans, strict=True):
        before = [use for time, _, use in truth.moments if time <= until / unit]
        assert by_path(span.profile, 0) == (before[-1] if before else {})


def test_a_process_that_came_later(tmp_path: Path) -> None:
    """All times are since the recording began."""
    file = tmp_path / "two.recording"
    writer = Writer(file)
    for number, time in enumerate((7 * 10**9, 5 * 10**9)):
        facts = {"process": number, "pid": 7 + number, "parent": 0, "command": ["made"]}
        writer.said(b"PROC", facts | {"tick_shift": 0, "ticks": time, "time": time})
    writer.close()
    assert [one.since for one in events.processes(file)[0]] == [2, 0]
    truth, process = _made(tmp_path / "a.recording", 1)
    before = traced.traced(process)
    process.since = 100
    middle, _, use = truth.moments[1000]
    told = traced.traced(process, [(-math.inf, 100 + middle * process.scale / 1e9)])
    assert by_path(told.spans[0].profile, 0) == use
    assert told.peak_at == pytest.approx(100 + before.peak_at)
    assert told.curve[0][0] == pytest.approx(100 + before.curve[0][0])
    assert told.seconds == before.seconds


def test_a_child_of_a_process_that_executed_another_program(tmp_path: Path) -> None:
    """It has the mappings that its parent had at the fork, not those of the other program."""
    file = tmp_path / "three.recording"
    writer = Writer(file)
    for number, (pid, parent, time) in enumerate([(7, 0, 1), (8, 7, 2), (7, 0, 3)]):
        facts = {"process": number, "pid": pid, "parent": parent, "command": ["made"]}
        writer.said(b"PROC", facts | {"tick_shift": 0, "ticks": time, "time": time})
    for number, name in ((0, "first"), (2, "second")):
        line = f"{number + 1}000-{number + 1}fff r-xp 00000000 fe:00 1 /{name}\n"
        writer.said(b"MAPS", {"process": number, "maps": line})
    writer.close()
    child = events.processes(file)[0][1]
    assert [line.rpartition("/")[2] for line in child.maps.values()] == ["first"]


def test_between(seams: None, tmp_path: Path) -> None:
    """All that was allocated until the end of a span was so before it or in it."""
    truth, process = _made(tmp_path / "a.recording", 1)
    middle, end = (truth.moments[at][0] * process.scale / 1e9 for at in (1000, -1))
    told = traced.traced(process, [(-math.inf, middle), (middle + 1e-9, end + 1), (0, end + 1)])
    first, second, whole = told.spans
    for at in (2, 3):
        sums = [sum(site.figures[at] for site in span.profile.sites) for span in told.spans]
        assert sums[0] + sums[1] == sums[2] and min(sums) > 0
    assert by_path(whole.profile, 0) == truth.moments[-1][2]
    left, before = by_path(second.profile, 0), by_path(first.profile, 0)
    for key, value in truth.moments[-1][2].items():
        assert left.get(key, 0) <= value <= left.get(key, 0) + before.get(key, 0)


@pytest.mark.parametrize("seed", range(3))
def test_lifetimes(seed: int, seams: None, tmp_path: Path) -> None:
    truth, process = _made(tmp_path / "a.recording", seed)
    told = {one.most: one for one in traced.traced(process).lifetimes}
    least = 0
    for most in SIZES:
        lives = sorted(time for size, time in truth.lives if least <= size <= most)
        least = most + 1
        assert (most in told) == bool(lives)
        if not lives:
            continue
        one = told[most]
        assert one.blocks == len(lives)
        found = [value / process.scale for value in (one.median, one.p90, one.longest)]
        assert found[2] == pytest.approx(lives[-1])
        assert found[0] == pytest.approx(statistics.median(lives), rel=0.01)
        assert found[1] == pytest.approx(statistics.quantiles(lives, n=10, method="inclusive")[8],
                                         rel=0.01)  # fmt: skip


def test_lifetimes_of_several(tmp_path: Path) -> None:
    """Those of a process that is there twice."""
    _, process = _made(tmp_path / "a.recording", 1)
    told = traced.traced(process)
    for one, both in zip(told.lifetimes, traced.lifetimes_of([told, told]), strict=True):
        assert (both.blocks, both.size, both.longest) == (2 * one.blocks, 2 * one.size, one.longest)
        assert both.p90 == pytest.approx(one.p90, rel=0.1)


def test_all_at_once(seams: None, tmp_path: Path) -> None:
    """As `hakmem replay` takes it."""
    truth, process = _made(tmp_path / "a.recording", 1)
    calls, held = history(process)
    assert len(calls.kind) == truth.calls
    assert (calls.time[1:] >= calls.time[:-1]).all()
    ended = held.end != NEVER
    lives = zip(
        held.size[ended].tolist(),
        ((calls.time[held.end[ended]] - calls.time[held.begin[ended]]) / process.scale).tolist(),
        strict=True,
    )
    assert sorted((size, round(time)) for size, time in lives) == sorted(truth.lives)


def test_small_paths_are_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    truth, process = _made(tmp_path / "a.recording", 1)
    monkeypatch.setattr(traced, "MOST", 2)
    told = traced.traced(process)
    sizes = {path: size for (path, what), size in truth.allocated.items() if what}
    *paths, small = told.profile.sites
    assert 2 <= len(paths) < len(sizes) and not small.stack
    assert small.name == f"({len(sizes) - len(paths)} smaller paths)"
    assert sum(site.figures[3] for site in told.profile.sites) == sum(sizes.values())
    largest = max(sizes, key=lambda path: sizes[path])
    assert largest in {site.stack[0] - 101 for site in paths}


RESIDENT = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from hakmem import events, traced
found, _ = events.processes(Path(sys.argv[2]))
told = traced.traced(found[0])
print(told.calls, told.left_blocks, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def _resident(path: Path, blocks: int) -> int:
    """KiB that it takes to read so many blocks of events, of the same 1,000 blocks of memory."""
    np = numpy()
    count = 2**17
    number = np.arange(count, dtype="<u8") // 2
    is_free = np.arange(count, dtype="<u8") % 2
    grain = 1000 + number % 1000
    kind = np.where(is_free == 1, FREE, MALLOC).astype("<u8")
    writer = Writer(path)
    facts = {"process": 0, "pid": 7, "parent": 0, "command": ["made"]}
    writer.said(b"PROC", facts | {"tick_shift": 0, "ticks": 0, "time": 0})
    for block in range(blocks):
        time = np.arange(block * count, (block + 1) * count, dtype="<u8") & 2**32 - 1
        words = np.stack([grain | kind << 44, time | 100 << 32], axis=1)
        begun = np.array([block * count], dtype="<u8")
        one, length = np.array([7], dtype="<u4"), np.array([count], dtype="<u4")
        writer.events(0, Chunks(one, length, begun, begun, begun, words))
    writer.said(b"DONE", {"process": 0, "lost": 0, "waited_ns": 0})
    writer.close()
    words = [sys.executable, "-c", RESIDENT, str(Path(events.__file__).parents[1]), str(path)]
    done = ran(*words, check=True)
    calls, left, resident = map(int, done.stdout.split())
    assert (calls, left) == (blocks * count, 0)
    return resident


def test_memory_does_not_grow_with_the_length(tmp_path: Path) -> None:
    """A byte for each event would be more."""
    path = tmp_path / "a.recording"
    assert _resident(path, 80) - _resident(path, 16) < 64 * 2**17 / 1024


def test_a_late_chunk_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(events, "LATE", 64)
    monkeypatch.setattr(events, "LATE_A_THREAD", 0)
    _, process = _made(tmp_path / "a.recording", 2)
    assert process.late
