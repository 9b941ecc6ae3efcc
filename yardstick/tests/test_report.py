"""The report of a small real session: every figure in it comes from runs, and a page needs nothing.

The figures are worked out here once more, from results.json alone and without hakmem's statistics.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from hakmem_yardstick import compact, report
from hakmem_yardstick.content import Content
from hakmem_yardstick.machine import Pressure
from hakmem_yardstick.model import results_of
from yardstick.tests import made
from yardstick.tools import goals

ROWS = "pair-64,own-1k-2t,pair-8,pair-1k,pair-64k"
ROUNDS = 6
FEW = "too few rounds for a verdict"
MEASURES_ITSELF = """<script>
const root = document.documentElement;
parent.postMessage(`${innerWidth} wide, cut off: ${root.scrollWidth > root.clientWidth + 1}`, "*");
</script>"""
IN_A_FRAME = """<!doctype html><script>onmessage = said => { document.title = said.data; }</script>
<iframe src="page.html" width="WIDTH" height="1000" style="border: 0"></iframe>"""
VOID = {"meta", "link", "br", "hr", "img", "input"}
Record = dict[str, Any]
Browse = Callable[..., subprocess.CompletedProcess[str]]


# ---- the session, and its report taken apart ----


@dataclass
class Page(HTMLParser):
    """What a browser would load; that what is opened is closed."""

    loads: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = {name: value or "" for name, value in attrs}
        self.ids += [own["id"]] if "id" in own else []
        for name in ("src", "href", "xlink:href", "data", "action", "poster", "srcset"):
            if name in own:
                (self.links if own[name].startswith("#") else self.loads).append(own[name])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        opened = self.open.pop()
        assert opened == tag, f"<{opened}> is closed by </{tag}>"


def parsed(file: Path) -> Page:
    page = Page()
    page.feed(file.read_text())
    page.close()
    assert page.open == []
    return page


@pytest.fixture(scope="session")
def folder(command: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a session with an allocator that crashes."""
    out = tmp_path_factory.mktemp("report") / "session"
    broken = made.bad(out.parent, "broken", **made.IN_THE_SUITE)
    words = ["bench", "--rows", ROWS, "--rounds", str(ROUNDS), "--scale", "0.001"]
    words += ["--lib", f"broken={broken}", "--vs", "glibc,jemalloc,broken", "--out", str(out)]
    done = subprocess.run([command, *words], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="session")
def record(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return loaded


# ---- the same figures, from the runs ----


@dataclass
class Runs:
    record: dict[str, Any]

    def values(self, row: str, allocator: str, measure: str) -> dict[int, float]:
        return {
            run["round"]: run["values"][measure]
            for run in self.record["runs"]
            if (run["row"], run["allocator"], run["outcome"]) == (row, allocator, "ok")
            and measure in run["values"]
        }

    def best(self, row: str, measure: str) -> str:
        peers: list[str] = [a["name"] for a in self.record["allocators"] if a["kind"] == "peer"]
        found = {name: values for name in peers if (values := self.values(row, name, measure))}
        return min(found, key=lambda name: median(found[name].values()))

    def logs(self, row: str, other: str, measure: str) -> list[float]:
        """Of the ratios of hakmem to another, round by round."""
        ours, theirs = (self.values(row, name, measure) for name in ("hakmem", other))
        return [math.log(ours[n] / theirs[n]) for n in sorted(ours.keys() & theirs.keys())]


@pytest.fixture(scope="session")
def runs(record: Record) -> Runs:
    return Runs(record)


@pytest.fixture(scope="session")
def content(record: Record) -> Content:
    return Content(results_of(record))


def lies_within(logs: list[float], ratio: float) -> bool:
    return min(logs) - 1e-9 <= math.log(ratio) <= max(logs) + 1e-9


def test_every_figure_is_of_its_runs(content: Content, runs: Runs) -> None:
    told = []
    for table in content.tables:
        for line, cell in ((at, cell) for at in table.lines for cell in at.cells):
            values = runs.values(cell.row, cell.allocator, cell.measure)
            told.append((cell.row, cell.allocator, cell.measure))
            assert dict(cell.by_round) == values
            if not values:
                assert cell.value is None and cell.spread is None
                continue
            assert cell.value == pytest.approx(median(values.values()))
            shown = float(re.sub(r"[^\d.e]", "", cell.text)) * line.scale.divisor
            assert shown == pytest.approx(median(values.values()), rel=0.006)
            low, _, high = quantiles(values.values(), n=4, method="inclusive")
            assert cell.spread == pytest.approx((high - low) / 2 / median(values.values()))
    assert sorted(told) == sorted(
        (row["name"], allocator["name"], measure)
        for row in runs.record["rows"]
        for allocator in runs.record["allocators"]
        for measure in row["judged"]
    )


def test_every_ratio_is_of_its_runs(content: Content, runs: Runs) -> None:
    """How it is made of them is test_stats.py's."""
    for table in content.tables:
        measure = table.measure.name
        for line in table.lines:
            row, best, system = line.row.name, line.to_best, line.to_system
            assert best is not None and system is not None
            assert (best.other, system.other) == (runs.best(row, measure), "glibc")
            for against in (best, system):
                logs, ratio = runs.logs(row, against.other, measure), against.ratio
                assert ratio.rounds == len(logs) == ROUNDS
                assert lies_within(logs, ratio.value)
                word = "better" if ratio.high < 1 else "worse" if ratio.low > 1 else "level"
                assert against.standing == word


def test_every_mean_is_of_its_rows(content: Content, runs: Runs) -> None:
    groups = {row["name"]: row["group"] for row in runs.record["rows"]}
    titles = {"Seed set": "seed", "Micro": "micro"}
    for means in content.means:
        measure = means.measure.name
        rows = [
            row["name"]
            for row in runs.record["rows"]
            if measure in row["judged"]
            and (means.scope == "all rows" or titles[means.scope] == groups[row["name"]])
        ]
        assert means.to_system is not None and sorted(means.rows) == sorted(rows)
        by_round = zip(*(runs.logs(row, "glibc", measure) for row in rows), strict=True)
        assert lies_within([fmean(logs) for logs in by_round], means.to_system.ratio.value)


def test_goals_are_of_their_rows(content: Content) -> None:
    """However good it is in a part of them, it reaches no goal."""
    verdicts = goals.verdicts(content.results, "hakmem")
    pairs = next(verdict for verdict in verdicts if "pair-64" in verdict.goal.rows)
    assert (pairs.rows, pairs.of, pairs.is_whole) == (("pair-64",), 4, False)


# ---- the files ----


def test_all_figures_are_in_all_forms(content: Content, folder: Path) -> None:
    text, page = ((folder / f"report.{kind}").read_text() for kind in ("md", "html"))
    in_terminal = printed(content)
    for table in content.tables:
        for cell in (cell for line in table.lines for cell in line.cells):
            for form in (text, page, in_terminal):
                assert cell.text in form
    assert re.search(r"1\. \S+ on broken, all runs: SIGABRT", text)
    assert "SIGABRT [1]" in page


def test_the_page_needs_nothing_else(folder: Path) -> None:
    page = parsed(folder / "report.html")
    assert set(page.loads) == {"data:,"}
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    text = (folder / "report.html").read_text()
    assert not re.search(r"@import|url\((?!#)|<script", text)
    assert len(text) < 5 << 20


def test_plots_are_whole_and_small(folder: Path) -> None:
    plots = {file.stem: file for file in (folder / "plots").glob("*.svg")}
    assert {"frontier", "ratio-seed-time", "sizes"} <= plots.keys()
    for file in plots.values():
        assert ElementTree.parse(file).getroot().get("aria-label")
        assert "prefers-color-scheme:dark" in file.read_text()
        assert file.stat().st_size < 300_000


def test_markdown_tables_are_well_formed(folder: Path) -> None:
    text = (folder / "report.md").read_text()
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) > 6
    for table in tables:
        lines = table.splitlines()
        columns = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
        assert len(columns) == 1, table
        assert re.fullmatch(r"\|( -+:? \|)+", lines[1]), table
    for file in re.findall(r"!\[.*\]\((.*)\)", text):
        assert (folder / file).is_file()


def printed(content: Content, width: int = 300) -> str:
    out = StringIO()
    report.show(content, Console(file=out, width=width))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120, 300])
def test_a_terminal_gets_what_fits(content: Content, width: int) -> None:
    lines = printed(content, width).splitlines()
    assert max(map(len, lines)) <= width
    heads = next(line for line in lines if line.lstrip().startswith("row "))
    assert "hakmem" in heads
    assert "to the best peer" in heads
    assert ("broken" in heads) is (width > 80)


@pytest.fixture
def browse(tmp_path: Path) -> Browse:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("needs chromium")

    def run(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
        always = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
        line = [browser, *always, f"--user-data-dir={tmp_path / 'profile'}", *options]
        done = subprocess.run(
            [*line, f"file://{page}"], capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        return done

    return run


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_cut_off(browse: Browse, folder: Path, tmp_path: Path, width: int) -> None:
    """The page measures itself."""
    page = (folder / "report.html").read_text().replace("Content-Security-Policy", "x")
    (tmp_path / "page.html").write_text(page.replace("</body>", f"{MEASURES_ITSELF}</body>"))
    # A window can't be so narrow.
    (tmp_path / "frame.html").write_text(IN_A_FRAME.replace("WIDTH", str(width)))
    options = ["--virtual-time-budget=20000", "--window-size=1400,1000", "--dump-dom"]
    done = browse(tmp_path / "frame.html", *options)
    (found,) = re.findall(r"<title>(.*)</title>", done.stdout)
    assert found == f"{width} wide, cut off: false"


def test_a_report_is_made_again_from_its_results(
    command: Path, folder: Path, tmp_path: Path
) -> None:
    words = ["bench", "report", str(folder / "results.json"), "--out", str(tmp_path / "again")]
    done = subprocess.run([command, *words], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "to the best peer" in done.stdout
    for name in ("report.html", "report.md", "plots/frontier.svg"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_packed_results_are_the_same(record: Record, tmp_path: Path) -> None:
    results = results_of(record)
    file = tmp_path / "results.json.gz"
    file.write_bytes(compact.pack(results))
    assert file.stat().st_size < len(json.dumps(record)) / 10
    runs = [replace(run, raw={}) for run in results.runs]
    assert compact.read(file) == replace(results, runs=runs)
    assert any(not run.is_ok for run in runs)


def test_other_files_are_refused(command: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"schema": 999}')
    half = tmp_path / "half.json.gz"
    half.write_bytes(gzip.compress(b'{"schema": 1}' * 99)[:20])
    for file in (other, half, tmp_path / "missing.json"):
        done = subprocess.run([command, "bench", "report", file], capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr.startswith(f"hakmem bench: report {file}: ")


def without_runs(record: Record) -> Record:
    return {**record, "runs": []}


def without_ours(record: Record) -> Record:
    runs = [run for run in record["runs"] if run["allocator"] != "hakmem"]
    allocators = [a for a in record["allocators"] if a["name"] != "hakmem"]
    return {**record, "runs": runs, "allocators": allocators}


def with_ours_failing(record: Record) -> Record:
    runs = [
        {**run, "outcome": "hang", "values": {}} if run["allocator"] == "hakmem" else run
        for run in record["runs"]
    ]
    return {**record, "runs": runs}


@pytest.mark.parametrize("change", [without_runs, without_ours, with_ours_failing])
def test_what_is_left_is_reported(
    record: Record, change: Callable[[Record], Record], tmp_path: Path
) -> None:
    content = Content(results_of(change(record)))
    printed(content)
    assert tmp_path / "report.html" in report.write(content, tmp_path)
    parsed(tmp_path / "report.html")
    if change is with_ours_failing:
        cells = [c for t in content.tables for line in t.lines for c in line.cells]
        assert {cell.text for cell in cells if cell.allocator == "hakmem"} == {"hang"}


def test_what_is_from_elsewhere_is_no_markup(record: Record, tmp_path: Path) -> None:
    missing = [{"name": "<script>alert(1)</script>", "why": "a|b\n</table>"}]
    report.write(Content(results_of({**record, "missing": missing})), tmp_path)
    parsed(tmp_path / "report.html")
    assert "<script>alert" not in (tmp_path / "report.html").read_text()
    assert "a\\|b \\</table\\>" in (tmp_path / "report.md").read_text()


def test_what_speaks_against_the_figures_comes_first(record: Record, tmp_path: Path) -> None:
    """In the report, in its page, and above the summary in a terminal."""
    reason = "cargo could not fetch libmimalloc-sys: the network is unreachable"
    pressure = Pressure()
    pressure.add(0.0, 2.4, 10.0)
    machine = {**record["machine"], "busy_at_start": "load 9", "busy_during": pressure.warning}
    missing = [{"name": "mimalloc3", "why": f"{reason}\n" + "x" * 1000}]
    results = results_of({**record, "machine": machine, "missing": missing})
    busy = "Measured on a busy machine: in 24% of the time another task waited for a processor"
    left_out = f"Left out: mimalloc3 ({reason}"
    report.write(Content(results), tmp_path)
    lines = (tmp_path / "report.md").read_text().splitlines()
    assert lines[:2] == ["# hakmem bench", ""]
    assert lines[2].startswith(busy) and lines[4].startswith(left_out) and len(lines[4]) < 250
    page = (tmp_path / "report.html").read_text()
    places = [page.index(words) for words in ("</h1>", busy, left_out, "in short", 'id="Summary"')]
    assert places == sorted(places)
    said = printed(Content(results))
    in_terminal = (busy, left_out, "time: ", "largest wins: ", "Geometric means, to")
    places = [said.rindex(words) for words in in_terminal]
    assert places == sorted(places)


def test_one_round_shows_nothing(record: Record) -> None:
    """A single figure of a row that does not repeat exactly is not known exactly."""
    runs = [run for run in record["runs"] if run["round"] == 0]
    content = Content(results_of({**record, "runs": runs}))
    verdicts = goals.verdicts(content.results, "hakmem")
    assert {verdict.is_reached for verdict in verdicts} == {None}
    for means in content.means:
        assert not any(mean.ratio.is_known for mean in means.to_best.values())


def test_nine_lines_say_it_in_short(record: Record, content: Content) -> None:
    lines = report.in_short(content)
    assert len(lines) <= 9
    said = dict(lines)
    assert said["time"].endswith("of glibc's; 5 rows")
    assert said["best other allocator"].startswith(("glibc in time", "jemalloc in time"))
    assert re.fullmatch(r"\d / \d / \d", said["rows better / level / worse, time"])
    failed = sum(run["outcome"] != "ok" for run in record["runs"])
    assert failed and said["runs"] == f"{len(record['runs'])} in up to 6 rounds, {failed} failed"


def test_too_few_rounds_are_no_zeros(record: Record, tmp_path: Path) -> None:
    runs = [run for run in record["runs"] if run["round"] < 3]
    content = Content(results_of({**record, "runs": runs}))
    said = dict(report.in_short(content))
    assert said["rows better / level / worse, time"] == said["largest wins"] == FEW
    report.write(content, tmp_path)
    for form in (*(tmp_path / f"report.{kind}" for kind in ("md", "html")), None):
        text = printed(content) if form is None else form.read_text()
        assert FEW in text and "0 / 0 / 0" not in text
