"""The report of a small real session: every figure in it comes from runs, and a page needs nothing.

The figures are worked out here once more, from results.json alone and without hakmem's statistics.
"""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from hakmem_yardstick import compact, in_short, report, tables, units
from hakmem_yardstick.content import Content
from hakmem_yardstick.goals import Verdict
from hakmem_yardstick.machine import Pressure
from hakmem_yardstick.model import results_of
from hakmem_yardstick.words import goal_rows_text, reached_text
from yardstick.tests.faulty import FAULTY

ROWS = "pair-64,own-1k-2t,pair-8,pair-1k,pair-64k"
ROUNDS = 6
THIN = "\N{NARROW NO-BREAK SPACE}"
FEW = "too few rounds for a verdict"
MEASURES_ITSELF = """<script>
const boxes = [document.documentElement, ...document.querySelectorAll(".box, .plot, nav div")];
const cut = boxes.filter(box => box.scrollWidth > box.clientWidth + 1);
const names = cut.map(box => box.outerHTML.slice(0, 60));
parent.postMessage(`${innerWidth} wide, cut off: ${names}`, "*");
</script>"""
IN_A_FRAME = """<!doctype html><script>onmessage = said => { document.title = said.data; }</script>
<iframe src="page.html" width="WIDTH" height="1000" style="border: 0"></iframe>"""
VOID = {"meta", "link", "br", "hr", "img", "input"}
Attributes = dict[str, str]
Record = dict[str, Any]
Browse = Callable[..., subprocess.CompletedProcess[str]]


# ---- the session, and its report taken apart ----


@dataclass
class Page(HTMLParser):
    """Cells with what they say of themselves, and what a browser would load."""

    cells: list[tuple[Attributes, str]] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    packed: str = ""
    open: list[tuple[str, Attributes]] = field(default_factory=list)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = {name: value or "" for name, value in attrs}
        self.ids += [own["id"]] if "id" in own else []
        for name in ("src", "href", "xlink:href", "data", "action", "poster", "srcset"):
            if name in own:
                (self.links if own[name].startswith("#") else self.loads).append(own[name])
        if tag == "td":
            self.text = ""
        if tag not in VOID:
            self.open.append((tag, own))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        opened, own = self.open.pop()
        assert opened == tag, f"<{opened}> is closed by </{tag}>"
        if tag == "td":
            self.cells.append((own, self.text.strip()))

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1][1].get("id") == "packed":
            self.packed += data

    def of_kind(self, kind: str) -> list[tuple[Attributes, str]]:
        found = [cell for cell in self.cells if cell[0].get("data-kind") == kind]
        assert found, f"no cell of the kind {kind}"
        return found


def parsed(file: Path) -> Page:
    page = Page()
    page.feed(file.read_text())
    page.close()
    assert page.open == []
    return page


@pytest.fixture(scope="session")
def folder(
    command: Path, compiled: Callable[[str, str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Of a session with an allocator that crashes."""
    out = tmp_path_factory.mktemp("report") / "session"
    broken = compiled("broken", FAULTY.replace("ACTION", "abort()"))
    words = ["bench", "--rows", ROWS, "--rounds", str(ROUNDS), "--scale", "0.001"]
    words += ["--lib", f"broken={broken}", "--vs", "glibc,jemalloc,broken", "--out", str(out)]
    done = subprocess.run([command, *words], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="session")
def record(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return loaded


@pytest.fixture(scope="session")
def page(folder: Path) -> Page:
    return parsed(folder / "report.html")


# ---- the same figures, from the runs ----

Logs = list[float]
Interval = tuple[float, float, float]


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

    @property
    def peers(self) -> list[str]:
        return [a["name"] for a in self.record["allocators"] if a["kind"] == "peer"]

    def best(self, row: str, measure: str, but_round: int | None = None) -> str:
        medians = {}
        for name in self.peers:
            values = self.values(row, name, measure)
            kept = [value for number, value in values.items() if number != but_round]
            if kept:
                medians[name] = median(kept)
        return min(medians, key=lambda name: medians[name])

    def logs(self, row: str, a: str, b: str, measure: str) -> Logs:
        ours, theirs = self.values(row, a, measure), self.values(row, b, measure)
        return [math.log(ours[n] / theirs[n]) for n in sorted(ours.keys() & theirs.keys())]

    def logs_to_best(self, row: str, name: str, measure: str) -> tuple[Logs, Logs]:
        """To the best of all rounds, and in each round to the best of the others."""
        ours = self.values(row, name, measure)
        others = [
            math.log(ours[n] / self.values(row, self.best(row, measure, n), measure)[n])
            for n in sorted(ours)
        ]
        return self.logs(row, name, self.best(row, measure), measure), others


def interval(logs: Logs) -> Interval:
    """Hodges and Lehmann's estimate, and the interval that Wilcoxon's signed ranks give: between
    the two means of pairs that leave out just less and just more than 2.5% on either side."""
    count = len(logs)
    means = sorted((logs[i] + logs[j]) / 2 for i in range(count) for j in range(i, count))
    sums = [
        sum(rank for rank, sign in enumerate(signs, 1) if sign)
        for signs in itertools.product((0, 1), repeat=count)
    ]
    chance = [sum(s <= limit for s in sums) / len(sums) for limit in range(max(sums) + 1)]
    k = sum(1 for c in chance if c <= 0.025)
    assert k > 0, "too few rounds"
    inward = (0.025 - chance[k - 1]) / (chance[k] - chance[k - 1])
    low = means[k - 1] + inward * (means[k] - means[k - 1])
    high = means[-k] + inward * (means[-k - 1] - means[-k])
    return math.exp(median(means)), math.exp(low), math.exp(high)


def wider(plain: Interval, other: Interval) -> Interval:
    return plain[0], min(plain[1], other[1]), max(plain[2], other[2])


def over_rows(rows: Iterable[Logs]) -> Logs:
    return [sum(logs) / len(logs) for logs in zip(*rows, strict=True)]


def said(own: Attributes) -> Interval:
    return float(own["data-value"]), float(own["data-low"]), float(own["data-high"])


def shown(text: str) -> float:
    return numbers(text)[0]


def numbers(text: str) -> list[float]:
    """Of a figure with its spread, or of a ratio with its interval."""
    found = re.findall(r"(?<![a-z\d])[\d.]+(?:e\d+)?", text.replace(THIN, ""))
    assert found, text
    return [float(number) for number in found]


@pytest.fixture(scope="session")
def runs(record: dict[str, Any]) -> Runs:
    return Runs(record)


def test_every_median_is_of_its_runs(page: Page, runs: Runs) -> None:
    cells = page.of_kind("median")
    told = [(own["data-row"], own["data-allocator"], own["data-measure"]) for own, _ in cells]
    assert sorted(told) == sorted(
        (row["name"], allocator["name"], measure)
        for row in runs.record["rows"]
        for allocator in runs.record["allocators"]
        for measure in row["judged"]
    )
    for (own, text), key in zip(cells, told, strict=True):
        values = runs.values(*key)
        if not values:
            assert "data-value" not in own
            continue
        assert float(own["data-value"]) == pytest.approx(median(values.values()))
        divisor = float(own["data-divisor"])
        assert shown(text) * divisor == pytest.approx(median(values.values()), rel=0.006)
        low, _, high = quantiles(values.values(), n=4, method="inclusive")
        spread = re.search(r"±([\d.]+)%", text)
        assert spread
        half = (high - low) / 2 / median(values.values()) * 100
        assert float(spread.group(1)) == pytest.approx(half, abs=0.51 if half >= 0.95 else 0.051)
        by_round = dict(re.findall(r"(\d+):([\d.e+-]+)", own["title"].partition("by round")[2]))
        assert {int(n): float(v) * divisor for n, v in by_round.items()} == pytest.approx(
            values, rel=1e-4
        )


def test_every_ratio_is_of_its_runs(page: Page, runs: Runs) -> None:
    for own, text in page.of_kind("to-best") + page.of_kind("to-system"):
        row, measure, other = own["data-row"], own["data-measure"], own["data-other"]
        expected = interval(runs.logs(row, "hakmem", other, measure))
        if own["data-kind"] == "to-best":
            assert other == runs.best(row, measure)
            expected = wider(expected, interval(runs.logs_to_best(row, "hakmem", measure)[1]))
        assert said(own) == pytest.approx(expected)
        # No interval is written where its ends are the same.
        ends = 1 if expected[1] == expected[2] else 3
        assert numbers(text)[:ends] == pytest.approx(expected[:ends], rel=0.06)
        sign = "▼" if expected[2] < 1 else "▲" if expected[1] > 1 else "≈"
        assert text.startswith(sign)


def test_every_mean_is_of_its_rows(page: Page, runs: Runs) -> None:
    groups = {row["name"]: row["group"] for row in runs.record["rows"]}
    titles = {"Seed set": "seed", "Micro": "micro"}
    for own, text in page.of_kind("mean-to-best") + page.of_kind("mean-to-system"):
        measure, name, scope = own["data-measure"], own["data-allocator"], own["data-scope"]
        rows = [
            row["name"]
            for row in runs.record["rows"]
            if measure in row["judged"]
            and (scope == "all rows" or titles[scope] == groups[row["name"]])
        ]
        if own["data-kind"] == "mean-to-system":
            expected = interval(over_rows(runs.logs(row, name, "glibc", measure) for row in rows))
        else:
            both = [runs.logs_to_best(row, name, measure) for row in rows]
            plain, others = (interval(over_rows(pair[side] for pair in both)) for side in (0, 1))
            expected = wider(plain, others)
        assert said(own) == pytest.approx(expected)
        ends = 3 if name == "hakmem" and expected[1] < expected[2] else 1
        assert numbers(text)[:ends] == pytest.approx(expected[:ends], rel=0.06)


def test_goals_and_counts_are_of_their_rows(page: Page, runs: Runs) -> None:
    for own, _ in page.of_kind("goal"):
        measure, other, rows = own["data-measure"], own["data-other"], own["data-rows"].split()
        logs = [
            runs.logs_to_best(row, "hakmem", measure)[0]
            if other == "best"
            else runs.logs(row, "hakmem", other, measure)
            for row in rows
        ]
        assert float(own["data-value"]) == pytest.approx(interval(over_rows(logs))[0])
    whole = [
        own
        for own, _ in page.of_kind("to-best")
        if own["data-measure"] == "time" and own["class"] in ("ratio better", "ratio worse")
    ]
    in_tables = {(own["data-row"], own["class"]) for own in whole}
    for standing in ("better", "worse"):
        (count,) = (
            int(text)
            for own, text in page.of_kind("count")
            if (own["data-scope"], own["data-measure"]) == ("all rows", "time")
            and own["data-standing"] == standing
        )
        assert count == sum(kind == f"ratio {standing}" for _, kind in in_tables)


# ---- the page ----


def test_a_failed_cell_shows_its_word(page: Page, folder: Path) -> None:
    broken = [text for own, text in page.of_kind("median") if own["data-allocator"] == "broken"]
    # The word, then the number of its footnote.
    assert broken
    assert all(re.fullmatch(r"SIGABRT\d+", text) for text in broken), broken
    text = (folder / "report.md").read_text()
    assert re.search(r"1\. \S+ on broken, all runs: SIGABRT", text)


def test_the_page_needs_nothing_else(page: Page, folder: Path) -> None:
    assert set(page.loads) == {"data:,"}
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    text = (folder / "report.html").read_text()
    assert not re.search(r"@import|url\((?!#)|\bfetch\(|XMLHttpRequest", text)
    assert len(text) < 5 << 20


def test_the_page_holds_its_results(page: Page, record: dict[str, Any]) -> None:
    held = json.loads(gzip.decompress(base64.b64decode(page.packed)))
    for run in record["runs"]:
        run = {**run, "raw": {}}
        assert run in held["runs"]
    assert results_of(held).to_json() == held


def test_plots_are_whole_and_small(folder: Path) -> None:
    plots = {file.stem: file for file in (folder / "plots").glob("*.svg")}
    assert {"summary", "frontier", "ratio-seed-figures", "sizes"} <= plots.keys()
    for file in plots.values():
        root = ElementTree.parse(file).getroot()
        assert root.get("aria-label")
        assert "prefers-color-scheme:dark" in file.read_text()
        assert file.stat().st_size < 300_000
    assert plots["summary"].stat().st_size < 60_000


def test_markdown_tables_are_well_formed(folder: Path) -> None:
    text = (folder / "report.md").read_text()
    tables_found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables_found) > 6
    for table in tables_found:
        lines = table.splitlines()
        columns = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
        assert len(columns) == 1, table
        assert re.fullmatch(r"\|( -+:? \|)+", lines[1]), table
    for file in re.findall(r"!\[.*\]\((.*)\)", text):
        assert (folder / file).is_file()


def printed(content: Content, width: int = 300) -> str:
    out = StringIO()
    tables.print_tables(content, Console(file=out, width=width))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120, 300])
def test_a_terminal_gets_what_fits(record: dict[str, Any], width: int) -> None:
    lines = printed(Content(results_of(record)), width).splitlines()
    assert max(map(len, lines)) <= width
    heads = next(line for line in lines if line.lstrip().startswith("row "))
    assert "hakmem" in heads
    assert "to best peer" in heads
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


def test_a_browser_shows_it(browse: Browse, folder: Path, tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    options = ["--window-size=1200,2400", f"--screenshot={picture}"]
    done = browse(folder / "report.html", *options)
    assert "CONSOLE" not in done.stderr, done.stderr
    # A blank page of this size takes about 12 KB.
    assert picture.stat().st_size > 100_000


@pytest.mark.parametrize("width", [1280, 420])
def test_nothing_is_cut_off(browse: Browse, folder: Path, tmp_path: Path, width: int) -> None:
    """The page measures itself."""
    page = (folder / "report.html").read_text()
    (tmp_path / "page.html").write_text(page.replace("</body>", f"{MEASURES_ITSELF}</body>"))
    # A window can't be so narrow.
    (tmp_path / "frame.html").write_text(IN_A_FRAME.replace("WIDTH", str(width)))
    options = ["--virtual-time-budget=20000", "--window-size=1400,1000", "--dump-dom"]
    done = browse(tmp_path / "frame.html", *options)
    (found,) = re.findall(r"<title>(.*)</title>", done.stdout)
    assert found == f"{width} wide, cut off: "


def test_a_report_is_made_again_from_its_results(
    command: Path, folder: Path, tmp_path: Path
) -> None:
    words = ["bench", "report", str(folder / "results.json"), "--out", str(tmp_path / "again")]
    done = subprocess.run([command, *words], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "to best peer" in done.stdout
    for name in ("report.html", "report.md", "plots/summary.svg"):
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
        done = subprocess.run([command, "bench", "--show", file], capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr.startswith(f"hakmem bench: report {file}: ")


def without_runs(record: Record) -> Record:
    return {**record, "runs": []}


def without_ours(record: Record) -> Record:
    runs = [run for run in record["runs"] if run["allocator"] != "hakmem"]
    allocators = [a for a in record["allocators"] if a["name"] != "hakmem"]
    return {**record, "runs": runs, "allocators": allocators}


def with_ours_failing(record: Record, row: str = "") -> Record:
    runs = [
        {**run, "outcome": "hang", "values": {}}
        if run["allocator"] == "hakmem" and row in ("", run["row"])
        else run
        for run in record["runs"]
    ]
    return {**record, "runs": runs}


@pytest.mark.parametrize("change", [without_runs, without_ours, with_ours_failing])
def test_what_is_left_is_reported(
    record: Record, change: Callable[[Record], Record], tmp_path: Path
) -> None:
    results = results_of(change(record))
    printed(Content(results))
    assert tmp_path / "report.html" in report.write(Content(results), tmp_path)
    parser = parsed(tmp_path / "report.html")
    words = [text for own, text in parser.cells if own.get("data-allocator") == "hakmem"]
    if change is with_ours_failing:
        assert words
        assert all(text.startswith("hang") for text in words if text)


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
    assert lines[2].startswith(f"- **{busy}") and lines[3].startswith(f"- **{left_out}")
    assert len(lines[3]) < 250
    page = (tmp_path / "report.html").read_text()
    on_page = ("</h1>", busy, left_out, 'id="in-short"', 'id="facts"', "Summary</a></h2>")
    places = [page.index(words) for words in on_page]
    assert places == sorted(places)
    said = printed(Content(results))
    in_terminal = (busy, left_out, "time: ", "largest wins: ", "Geometric means")
    places = [said.rindex(words) for words in in_terminal]
    assert places == sorted(places)
    assert said.rindex("to best peer") < said.index(busy)  # the tables of groups


def test_a_part_of_its_rows_reaches_no_goal(record: Record) -> None:
    """However good it is in them; and a row that ours fails on is not forgotten."""
    rows = record["rows"]
    content = Content(results_of(record))
    pairs = next(verdict for verdict in content.goals if "pair-64" in verdict.goal.rows)
    assert (pairs.rows, pairs.of, pairs.is_whole) == (("pair-64",), 4, False)
    assert goal_rows_text(pairs) == "1 of 4"
    assert reached_text(pairs).endswith(" in these rows")

    def over_all(record: Record) -> Verdict:
        found = Content(results_of(record)).goals
        return next(v for v in found if (v.goal.name, v.goal.measure) == ("all rows", "time"))

    left_out = record["settings"]["rows_left_out"]
    judged = sum("time" in row["judged"] for row in rows)
    others = sum(measures.get("time", 0) for measures in left_out.values())
    assert others > 50
    assert over_all(record).of == judged + others
    whole = {**record, "settings": {**record["settings"], "rows_left_out": {}}}
    assert over_all(whole).is_whole
    failing = over_all(with_ours_failing(whole, "pair-64"))
    assert (failing.of, len(failing.rows), failing.is_whole) == (judged, judged - 1, False)


def test_one_round_shows_nothing(record: Record) -> None:
    """A single figure of a row that does not repeat exactly is not known exactly."""
    runs = [run for run in record["runs"] if run["round"] == 0]
    content = Content(results_of({**record, "runs": runs}))
    assert content.goals
    assert {verdict.is_reached for verdict in content.goals} == {None}
    for means in content.means:
        assert not any(mean.ratio.is_known for mean in means.to_best.values())


def test_nine_lines_say_it_in_short(record: Record) -> None:
    lines = in_short.lines(Content(results_of(record)))
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
    said = dict(in_short.lines(content))
    assert said["rows better / level / worse, time"] == FEW
    assert said["goals"] == said["largest wins"] == FEW
    report.write(content, tmp_path)
    text, page = ((tmp_path / f"report.{kind}").read_text() for kind in ("md", "html"))
    assert f"| {FEW} |" in text and "0 / 0 / 0" not in text
    assert text[text.index("### Wins") :].split("\n\n")[2] == f"{FEW.capitalize()}."
    assert 'data-kind="too-few"' in page and "data-standing" not in page
    assert f"<p>{FEW.capitalize()}.</p>" in page
    assert FEW in printed(content) and "0 / 0 / 0" not in printed(content)


@pytest.mark.parametrize(
    ("most", "shown"),
    [(8192 * 1024, ("GiB", 8)), (2047, ("KiB", 2047)), (1500 * 1024, ("MiB", 1500))],
)
def test_axes_are_as_people_write_them(most: float, shown: tuple[str, float]) -> None:
    unit, kib = units.axis_of_kib(most)
    assert (unit, most / kib) == shown
