"""The published run: its data is small, and what the documentation has of it is made from it."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import pytest

from hakmem_yardstick import compact
from hakmem_yardstick.content import Content
from hakmem_yardstick.plots import frontier
from yardstick.tools import baseline, readme

MOST_BYTES = 500_000


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
    assert f'aria-label="{plot.title}"' in baseline.PICTURE.read_text()


# ---- each loss has a reason ----

GROUP = re.compile(r"((?:`[^`]+`\s*)+)\(([^)]*)\)")
LOSS = re.compile(r"^\| `([^`]+)` \| ([^|]+) \|", re.MULTILINE)


def lost(report: str) -> list[tuple[str, str]]:
    part = report[report.index("### Losses") :]
    return [(row, measure.strip()) for row, measure in LOSS.findall(part)]


def given(page: str) -> set[tuple[str, tuple[str, ...]]]:
    """Patterns, each with its measures, of the paragraphs that begin with "Rows:"."""
    return {
        (glob, tuple(re.split(r",\s*", measures.replace("\n", " "))))
        for paragraph in page.split("\n\n")
        if paragraph.startswith("Rows:")
        for globs, measures in GROUP.findall(paragraph)
        for glob in re.findall(r"`([^`]+)`", globs)
    }


def test_each_loss_has_a_reason_and_each_reason_a_loss() -> None:
    """docs/benchmarks/losses.md names rows by patterns and their measures: `pair-*` (time)."""
    docs = baseline.PAGE.parent
    losses = lost((docs / "benchmarks.md").read_text())
    reasons = given((docs / "benchmarks/losses.md").read_text())
    assert losses and reasons
    why = {
        loss: {(glob, of) for glob, of in reasons if loss[1] in of and fnmatchcase(loss[0], glob)}
        for loss in losses
    }
    assert [loss for loss, found in why.items() if not found] == []
    assert reasons - set().union(*why.values()) == set()
