"""The published run: its data is small, and what the documentation has of it is made from it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from hakmem_yardstick import compact
from hakmem_yardstick.content import Content
from hakmem_yardstick.plots import frontier
from yardstick.tools import baseline, readme

MOST_BYTES = 500_000
SVG = "{http://www.w3.org/2000/svg}"
LETTER = 7 / 12  # of its height, in a wide font
IN_SIGHT = 1100  # pixels from a legend to the last panel that it explains


@pytest.fixture(scope="session")
def content() -> Content:
    return Content(compact.read(baseline.DATA))


def test_no_page_or_data_is_large() -> None:
    files = [file for file in baseline.DATA.parent.iterdir() if file.is_file()]
    assert [file.name for file in files if file.stat().st_size > MOST_BYTES] == []


def test_the_pages_are_what_the_data_gives(content: Content) -> None:
    plot = frontier(content)
    assert plot is not None
    made = baseline.page(content, plot)
    assert baseline.PAGE.read_text() == made, "out of date: run yardstick/tools/baseline.py"
    made = readme.readme(content, baseline.picture(plot, "docs/"))
    assert readme.README.read_text() == made, "out of date: run yardstick/tools/baseline.py"
    # Where fonts differ, so do the places of letters.
    assert plot.title.split(": ")[1] in baseline.PICTURE.read_text()


@pytest.fixture(scope="session")
def folder(command: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report with all plots, made as docs/benchmarks.md says it."""
    out = tmp_path_factory.mktemp("report")
    words = ["bench", "report", str(baseline.DATA), "--out", str(out)]
    done = subprocess.run([command, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def test_the_page_has_all_rows_and_plots(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    for row in compact.read(baseline.DATA).rows:
        assert f">{row.name}<" in page, row.name
    pictures = {file.stem for file in (folder / "plots").glob("*.svg")}
    assert {"summary", "frontier", "ratio-micro-time", "threads", "sizes"} <= pictures
    assert page.count("<svg") == len(pictures)


def lines_of(node: ElementTree.Element, x: float = 0.0) -> Iterator[tuple[str, float, float]]:
    """Each line of text that is not turned, with its left and right end if the font is wide."""
    move = node.get("transform", "")
    if found := re.match(r"translate\(([-\d.]+)", move):
        x += float(found[1])
    if node.tag == f"{SVG}text" and "rotate" not in move:
        size = float(node.get("font-size", "12px").removesuffix("px"))
        for line in [span.text or "" for span in node] or [node.text or ""]:
            wide = LETTER * size * len(line)
            left = (
                x
                - {"start": 0.0, "middle": wide / 2, "end": wide}[node.get("text-anchor", "start")]
            )
            yield line, left, left + wide
    for child in node:
        yield from lines_of(child, x)


def test_no_text_is_cut_off_and_each_legend_is_in_sight(folder: Path, content: Content) -> None:
    for file in (folder / "plots").glob("*.svg"):
        root = ElementTree.parse(file).getroot()
        lines = list(lines_of(root))
        assert {a.name for a in content.drawn} & {line for line, _, _ in lines}, file.name
        width, height = float(root.get("width", "0")), float(root.get("height", "0"))
        cut = [line for line, left, right in lines if left < 0 or right > width]
        assert not cut, (file.name, cut)
        if file.stem.startswith(("memory-over-time", "threads", "sizes")):
            assert height < IN_SIGHT, file.name
