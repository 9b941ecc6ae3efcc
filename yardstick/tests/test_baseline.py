"""The published run: its data is small, and the pages that are committed are made from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from hakmem_yardstick import compact
from hakmem_yardstick.content import Content
from hakmem_yardstick.plots import frontier
from yardstick.tools import baseline

MOST_BYTES = 500_000


@pytest.fixture(scope="session")
def content() -> Content:
    return Content(compact.read(baseline.DATA))


def test_no_page_or_data_is_large() -> None:
    files = [file for file in baseline.DATA.parent.iterdir() if file.is_file()]
    assert [file.name for file in files if file.stat().st_size > MOST_BYTES] == []


def test_pages_are_what_the_data_gives(content: Content) -> None:
    plot = frontier(content)
    assert plot is not None
    for file, text in baseline.pages(content, plot).items():
        assert file.read_text() == text, f"{file} is out of date: run yardstick/tools/baseline.py"
    # Where fonts differ, so do the places of letters.
    assert plot.title.split(": ")[1] in baseline.PICTURE.read_text()


def test_the_page_with_all_plots_can_be_made(command: Path, tmp_path: Path) -> None:
    """As docs/benchmarks.md says it."""
    words = ["bench", "report", str(baseline.DATA), "--out", str(tmp_path)]
    done = subprocess.run([command, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text()
    for row in compact.read(baseline.DATA).rows:
        assert f">{row.name}<" in page, row.name
    pictures = {file.stem for file in (tmp_path / "plots").glob("*.svg")}
    assert {"summary", "frontier", "ratio-micro-time", "threads", "sizes"} <= pictures
    assert page.count("<svg") == len(pictures)
