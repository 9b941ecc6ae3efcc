"""The page of `hakmem trace`: figures of ranges compared with a plain count, and the page itself in
Chromium, by mouse and by keys, in a wide and in a narrow window."""

from __future__ import annotations

import bisect
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hakmem import events, symbols, trace_page, traced
from hakmem.profile_html import Section
from hakmem.trace_page import Part
from hakmem.traced import Traced
from tests.profile.browser import Browser
from tests.ran import ran
from tests.record.made import Made, Truth

HERE = Path(__file__).parent
SECONDS = 600
SIZES = [(1280, 900), (400, 800)]
SCHEMES = ["dark", "light"]


@dataclass
class Page:
    file: Path
    truth: Truth
    told: Traced

    def figures(self, first: int, last: int) -> tuple[int, dict[str, list[int]]]:
        """In a range of moments the most, and of each path: in use at the end, allocated, in use at
        the peak, growth; blocks and bytes of each."""
        moments = self.told.moments.found
        times = [time for time, _, _ in self.truth.moments]

        def after(moment: int) -> int:
            return bisect.bisect_right(times, moments[moment].time) - 1 if moment >= 0 else -1

        def use(moment: int) -> dict[tuple[int, int], int]:
            return self.truth.moments[after(moment)][2] if after(moment) >= 0 else {}

        def allocated(moment: int) -> dict[tuple[int, int], int]:
            return self.truth.allocated_then[after(moment)] if after(moment) >= 0 else {}

        begin, end = after(first), after(last)
        most = max(size for _, size, _ in self.truth.moments[max(begin, 0) : end + 1])
        inside = range(max(first, 0), last + 1)
        peak = next(moment for moment in inside if moments[moment].size == most)
        found = {}
        for path in {path for path, _ in self.truth.allocated}:
            columns = []
            for unit in range(2):
                key = path, unit
                left, before = use(last).get(key, 0), use(first).get(key, 0)
                new = allocated(last).get(key, 0) - allocated(first).get(key, 0)
                columns.append([left, new, use(peak).get(key, 0), left - before])
            name = f"?+{100 + path:#x}"
            found[name] = [n for pair in zip(*columns, strict=True) for n in pair]
        return peak, found

    def ranges(self) -> list[tuple[int, int]]:
        last = len(self.told.curve) - 1
        return [(-1, last), (-1, 0), (0, 0), (3, 3), (2, 40), (50, last), (last, last), (-1, 77)]


def part(path: Path, seed: int) -> tuple[Truth, Part]:
    made = Made(path, seed)
    made.some(1000 + 2000 * seed, threads=3)
    truth = made.end()
    ((process,), _) = events.processes(path)
    told = traced.traced(process)
    paths = trace_page.paths(told)
    return truth, Part(told, paths, symbols.located(told.profile, trace_page.calls(process, paths)))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("pages")
    truth, made = part(folder / "a.recording", 1)
    sections = (Section("A table", "of nothing", ("bytes", "path"), (("1", "</script>"),)),)
    file = folder / "a.html"
    file.write_text(trace_page.page([made], "made 7", ["a note"], sections))
    return Page(file, truth, made.told)


def test_figures(page: Page) -> None:
    if not shutil.which("node"):
        pytest.skip("there is no node")
    script = Path(trace_page.__file__).with_name("profile_curve.js")
    ranges = page.ranges()
    words = ["node", str(HERE / "measure.cjs"), str(page.file), str(script), json.dumps(ranges)]
    done = ran(*words)
    assert done.returncode == 0, done.stderr
    for (first, last), (peak, found) in zip(ranges, json.loads(done.stdout), strict=True):
        assert (peak, found) == page.figures(first, last), (first, last)


def test_limits(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no room is in one sum."""
    monkeypatch.setattr(trace_page, "NODES", 4)
    paths = trace_page.paths(page.told)
    assert len(paths) == len({path for path, _ in page.truth.allocated})
    names = symbols.located(
        page.told.profile, set().union(*(page.told.process.path(one.number) for one in paths))
    )
    stacks = trace_page._stacks([Part(page.told, paths, names)])
    innermost = [stacks["lines"][stacks["nodes"][2 * node + 1]][0] for node, *_ in stacks["paths"]]
    assert innermost[-1] == "(smaller paths)" and len(innermost) == 3
    for column in range(4):
        sums = [sum(sum(one[3 + column :: 5]) for one in stacks["paths"])]
        sums.append(sum(sum(one.changes[1 + column :: 5]) for one in paths))
        assert sums[0] == sums[1]
    monkeypatch.setattr(trace_page, "CHANGES", len(paths[0].changes) // 5)
    few = trace_page.paths(page.told)
    assert [one.number for one in few] == [paths[0].number, -1]


# ---- in a browser ----


def opened(shown: Browser, page: Page, size: tuple[int, int], scheme: str) -> None:
    shown.open(page.file, *size, scheme)
    shown.run(
        "new Promise(done => { const look = () => flame ? done() : setTimeout(look, 1); look(); })"
    )
    assert shown.complaints == []


def text(shown: Browser, name: str) -> Any:
    return shown.run(f"at({name!r}).textContent")


def compare(shown: Browser, page: Page) -> None:
    first, last = shown.run("state.range")
    _, expected = page.figures(first, last)
    stacks = "profile.stacks.map(one => [name(one.frames[one.frames.length - 1]), one.figures])"
    assert dict(shown.run(stacks)) == expected
    assert text(shown, "spanned").startswith("Allocated ")


def places(*parts: float) -> str:
    """On the curve, from its left to its right edge."""
    xs = ", ".join(f"edge.left + {part} * edge.width, edge.top + 50" for part in parts)
    return f"""(() => {{ at('curve').scrollIntoView({{block: 'center'}});
        const edge = at('curve').getBoundingClientRect(); return [{xs}]; }})()"""


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", SIZES)
def test_by_mouse(shown: Browser, page: Page, size: tuple[int, int], scheme: str) -> None:
    opened(shown, page, size, scheme)
    end = len(page.told.curve) - 1
    assert shown.run("state.range") == [-1, end]
    assert shown.run("document.querySelector('#kinds [aria-pressed=true]').textContent") == "peak"
    assert shown.run("document.documentElement.scrollWidth <= innerWidth"), "cut off on the right"
    compare(shown, page)
    times = [second for second, _ in page.told.curve]
    whole = times[-1]
    shown.drag(places(0.75, 0.5, 0.25))
    first, last = shown.run("state.range")
    assert times[first] == pytest.approx(whole / 4, abs=whole / 50)
    assert times[last] == pytest.approx(whole * 3 / 4, abs=whole / 50)
    compare(shown, page)
    shown.click("document.querySelectorAll('#kinds button')[3]")
    assert (
        shown.run("flame.boxes[0].node.sum") == page.told.curve[last][1] - page.told.curve[first][1]
    )
    shown.drag(places(0.5))
    first, last = shown.run("state.range")
    assert first == -1 and times[last] == pytest.approx(whole / 2, abs=whole / 50)
    assert shown.run("document.querySelector('#kinds [aria-pressed=true]').textContent") == "in use"
    assert shown.run("flame.boxes[0].node.sum") == page.told.curve[last][1]
    compare(shown, page)
    shown.click("at('always')")
    assert shown.run("state.range") == [-1, end]
    assert shown.run("at('sections').innerText.includes('</script>')")
    assert text(shown, "notes") == "a note"
    assert shown.complaints == []


def test_by_keys(shown: Browser, page: Page) -> None:
    opened(shown, page, SIZES[0], "light")
    end = len(page.told.curve) - 1
    shown.run("at('curve').focus()")
    for _ in range(3):
        shown.key("ArrowLeft")
    for _ in range(3):
        shown.key("ArrowRight", shift=True)
    assert shown.run("state.range") == [2, end - 3]
    compare(shown, page)
    shown.key("Escape")
    assert shown.run("state.range") == [-1, end]
    for name, moment in (("until", 60), ("since", 20)):
        second = page.told.curve[moment][0]
        shown.run(f"at({name!r}).value = {second}; at({name!r}).dispatchEvent(new Event('change'))")
    assert shown.run("state.range") == [20, 60]
    compare(shown, page)


def test_part(shown: Browser, tmp_path: Path) -> None:
    """Of a part, what was in use at its begin is there from the first moment on."""
    made = Made(tmp_path / "a.recording", 1)
    made.some(3000, threads=3)
    truth = made.end()
    ((process,), _) = events.processes(made.writer.path)
    unit = process.scale / 1e9
    since, until = ((truth.moments[call][0] + 0.5) * unit for call in (999, 1999))
    told = traced.traced(process, part=(since, until))
    paths = trace_page.paths(told)
    names = symbols.located(told.profile, trace_page.calls(process, paths))
    page = Page(tmp_path / "part.html", truth, told)
    page.file.write_text(trace_page.page([Part(told, paths, names)], "part", [], ()))
    opened(shown, page, SIZES[0], "light")
    end = len(told.curve) - 1
    (_, before, _), (_, left, _) = (truth.moments[call] for call in (999, 1999))
    assert shown.run("[state.range, sum(profile.stacks, 7)]") == [[0, end], left - before]
    assert shown.run("[sum(profile.stacks, 1), sum(profile.stacks, 3)]") == [left, told.size]
    shown.drag(places(0.5))
    first, last = shown.run("state.range")
    assert (first, shown.run("sum(profile.stacks, 1)")) == (0, told.curve[last][1])
    shown.key("Escape")
    assert shown.complaints == []


def test_processes(shown: Browser, tmp_path: Path) -> None:
    """Each can be switched off."""
    both = [part(tmp_path / f"{seed}.recording", seed) for seed in (0, 1)]
    file = tmp_path / "both.html"
    file.write_text(trace_page.page([made for _, made in both], "both", [], ()))
    pages = [Page(file, truth, made.told) for truth, made in both]
    wholes = [one.figures(-1, len(one.told.curve) - 1)[1] for one in pages]
    opened(shown, pages[0], SIZES[0], "light")
    found = "profile.stacks.map(one => [name(one.frames[one.frames.length - 1]), one.figures])"
    every = dict(shown.run(found))
    for name, figures in every.items():
        first, last = (one.get(name, [0] * 8) for one in wholes)
        assert figures[2:4] == [a + b for a, b in zip(first[2:4], last[2:4], strict=True)]
        assert figures[:2] == last[:2], "the first one had ended"
    for off, left in ((1, 0), (0, 1)):
        for box in (left, off):
            on = shown.run(f"document.querySelectorAll('#processes input')[{box}].checked")
            if on == (box == off):
                shown.click(f"document.querySelectorAll('#processes input')[{box}]")
        assert shown.run("recorded.sizes") == [size for _, size in pages[left].told.curve]
        some = {name: figures for name, figures in shown.run(found) if any(figures)}
        assert some == wholes[left]
    assert shown.complaints == []
