"""A part of a recording, with the index beside it and without, compared with a plain count."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from hakmem import checkpoints, events, traced
from hakmem.checkpoints import Checkpoints, Index, NoIndex, beside
from hakmem.traced import Traced
from tests.record.made import Made, Truth
from tests.record.recorded import Recorded
from tests.record.test_sums import SEAMS, by_path

ALL = 3000
PARTS = [(0, 100), (500, 700), (2000, 2600), (900, 900), (1500, ALL - 1), (0, ALL - 1)]


@dataclass
class Case:
    file: Path
    truth: Truth

    def bounds(self, first: int, last: int) -> tuple[float, float]:
        """Seconds before one call and after another."""
        ((process,), _) = events.processes(self.file)
        unit = process.scale / 1e9
        times = [time for time, _, _ in self.truth.moments]
        return (times[first] - 0.5) * unit, (times[last] + 0.5) * unit

    def told(self, first: int, last: int, indexed: bool = False) -> Traced:
        ((process,), _) = events.processes(self.file)
        with ExitStack() as opened:
            known = Checkpoints(beside(self.file), [process]) if indexed else None
            if known is not None:
                opened.enter_context(known)
            return traced.traced(process, part=self.bounds(first, last), checkpoints=known)


def indexed(file: Path) -> Traced:
    ((process,), _) = events.processes(file)
    with Index(beside(file), [process]) as index:
        return traced.traced(process, index=index)


@pytest.fixture(params=range(3 * len(SEAMS)))
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Case:
    seed, (least, most, late) = request.param % 3, SEAMS[request.param // 3]
    monkeypatch.setattr(events, "WINDOW_LEAST", least)
    monkeypatch.setattr(events, "WINDOW", most)
    monkeypatch.setattr(events, "LATE", late)
    monkeypatch.setattr(events, "LATE_A_THREAD", 0)
    monkeypatch.setattr(checkpoints, "EACH_CALLS", 200)
    monkeypatch.setattr(checkpoints, "EACH_BLOCKS", 0)
    made = Made(tmp_path / "a.recording", seed, slow=(3, 4))
    made.some(ALL, threads=1 if seed == 0 else 5)
    return Case(made.writer.path, made.end())


def figures(told: Traced) -> dict[str, Any]:
    found = {one.name: getattr(told, one.name) for one in fields(Traced)}
    moments = found.pop("moments")
    del found["process"], found["lives"]
    found["moments"] = [(one.time, one.size, one.changes) for one in moments.found]
    return found | {"lifetimes": told.lifetimes, "ended": told.ended}


def test_with_an_index_and_without(case: Case) -> None:
    whole = indexed(case.file)
    assert whole.calls == case.truth.calls
    for first, last in PARTS:
        one, two = (figures(case.told(first, last, which)) for which in (False, True))
        assert one == two


def test_figures(case: Case) -> None:
    truth = case.truth
    for first, last in PARTS:
        told = case.told(first, last)
        assert told.calls == last - first + 1 and told.begin is not None
        _, size, use = truth.moments[first - 1] if first else (0, 0, {})
        blocks = sum(count for (_, what), count in use.items() if what == 0)
        assert (told.begin.size, told.begin.blocks) == (size, blocks)
        assert told.begin.at == case.bounds(first, last)[0] or first == 0
        inside = truth.moments[first : last + 1]
        assert told.peak == max(size, *(most for _, most, _ in inside))
        assert told.left == inside[-1][1]
        assert by_path(told.profile, 0) == inside[-1][2]
        before = truth.allocated_then[first - 1] if first else {}
        allocated = Counter(truth.allocated_then[last])
        allocated.subtract(before)
        assert by_path(told.profile, 2) == dict(+allocated)
        assert [size for _, size in told.curve][:: len(told.curve) - 1] == [size, told.left]


def with_marks(folder: Path) -> tuple[Case, list[tuple[int, str]]]:
    """A thread's name; and after some calls, and after the last one, marks: bytes in use, and their
    names."""
    made = Made(folder / "a.recording", 1)
    made.some(5, threads=2)
    made.name(2, "early")
    marks = []
    for turn in range(90):
        made.some(10, threads=1)
        made.mark(f"turn {turn}")
        marks.append((made.truth.moments[-1][1], f"turn {turn}"))
    made.now += 1000
    made.mark("done")
    marks.append((marks[-1][0], "done"))
    return Case(made.writer.path, made.end()), marks


def test_marks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checkpoints, "EACH_CALLS", 200)
    monkeypatch.setattr(checkpoints, "EACH_BLOCKS", 0)
    monkeypatch.setattr(events, "WINDOW_LEAST", 64)
    monkeypatch.setattr(events, "WINDOW", 100)
    case, marks = with_marks(tmp_path)
    whole = indexed(case.file)
    assert [(size, name) for _, size, name in whole.marks] == marks
    since, until = case.bounds(500, 799)
    told = [case.told(500, 799, which) for which in (False, True)]
    inside = tuple(mark for mark in whole.marks if since <= mark[0] <= until)
    assert told[0].marks == told[1].marks == inside and len(inside) > 10
    assert told[1].process.names == whole.process.names == {"2": "early"}
    assert told[1].process.first == whole.process.first != {}
    ((process,), _) = events.processes(case.file)
    last = traced.traced(process, part=(inside[-1][0], float("inf")))
    assert last.marks == whole.marks[whole.marks.index(inside[-1]) :]


def test_a_mark_after_the_last_call(recorded: Recorded, tmp_path: Path) -> None:
    recorded.file.write_bytes(with_marks(tmp_path)[0].file.read_bytes())
    said = recorded.trace("--at", "done", "--between", "turn 88", "done").stdout
    assert "in use after" in said and "  done\n" in said


def test_a_part_without_calls(tmp_path: Path) -> None:
    """What was in use before it still is."""
    made = Made(tmp_path / "a.recording", 1)
    made.some(500, threads=1)
    made.now += 10**6
    made.some(500, threads=1)
    case = Case(made.writer.path, made.end())
    times = [time for time, _, _ in case.truth.moments]
    pause = next(at for at in range(len(times) - 1) if times[at + 1] - times[at] > 10**5)
    ((process,), _) = events.processes(case.file)
    unit = process.scale / 1e9
    since, until = ((times[pause] + share * 10**6) * unit for share in (0.2, 0.4))
    told = traced.traced(process, part=(since, until))
    _, size, use = case.truth.moments[pause]
    assert (told.calls, told.threads, told.size) == (0, 0, 0)
    assert told.peak == told.left == size and by_path(told.profile, 0) == use
    assert [one for _, one in told.curve] == [size, size]
    since, until = (times[pause] + 0.2 * 10**6) * unit, (times[-1] + 0.5) * unit
    curve = traced.traced(process, part=(since, until)).curve
    assert [one for _, one in curve[:2]] == [size, size]
    assert curve[1][0] > since + 0.9 * (until - since), "the step comes after the pause"


def test_another_recording(tmp_path: Path) -> None:
    for seed in (1, 2):
        made = Made(tmp_path / f"{seed}.recording", seed)
        made.some(300, threads=2)
        made.end()
        indexed(made.writer.path)
    beside(tmp_path / "2.recording").replace(beside(tmp_path / "1.recording"))
    ((process,), _) = events.processes(tmp_path / "1.recording")
    with pytest.raises(NoIndex, match="of another recording"):
        Checkpoints(beside(tmp_path / "1.recording"), [process])


def test_damaged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Then it is said, or the figures are right: each array has a check."""
    monkeypatch.setattr(checkpoints, "EACH_CALLS", 200)
    monkeypatch.setattr(checkpoints, "EACH_BLOCKS", 0)
    monkeypatch.setattr(events, "WINDOW", 100)
    made = Made(tmp_path / "a.recording", 1)
    made.some(1000, threads=3)
    case = Case(made.writer.path, made.end())
    indexed(case.file)
    whole = beside(case.file).read_bytes()
    expected = figures(case.told(800, 900, True))
    chance = random.Random(7)
    said = 0
    for turn in range(300):
        damaged = bytearray(whole)
        at = chance.randrange(len(damaged))
        if turn % 3:
            damaged[at] ^= 1 << chance.randrange(8)
        else:
            del damaged[at:]
        beside(case.file).write_bytes(damaged)
        try:
            assert figures(case.told(800, 900, True)) == expected
        except NoIndex as why:
            assert "--index makes it anew" in str(why)
            said += 1
    assert said > 100


def test_the_command(recorded: Recorded) -> None:
    recorded.run("work", "3000")
    index = beside(recorded.file)
    assert f"hakmem trace: {index}" in recorded.trace("--index").stderr
    whole = recorded.trace("--from", "0").stdout
    assert "the part from 0.000 s to " in whole and "in use at its begin 0 B in 0 blocks" in whole
    index.write_bytes(b"x")
    done = recorded.trace("--from", "0", "-o", str(recorded.folder / "a.html"))
    assert done.stdout == whole and f"{index}: can't be read" in done.stderr
    page = (recorded.folder / "a.html").read_text()
    assert "This part of the recording" in page and '"part":true' in page
    for words, said in (
        (("--from", "1000"), "give a moment in between"),
        (("--from", "2", "--to", "1"), "is to come later"),
        (("--from", "0", "--at", "0"), "not with --at"),
        (("--from", "0", "-o", "a.heaptrack.gz"), "has every call"),
    ):
        assert said in recorded.trace(*words, status=2).stderr
