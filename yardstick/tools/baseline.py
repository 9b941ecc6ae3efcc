#!/usr/bin/env python3
"""Publishes the report of a run of the benchmarks as the project's baseline.

Usage: yardstick/tools/baseline.py FOLDER, which `hakmem bench --full --out FOLDER` wrote. The
report goes to yardstick/docs/, its summary into docs/benchmarks.md, that page's pictures to
docs/img/.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = Path(__file__).resolve().parents[1] / "docs"
PICTURES = ("summary", "frontier")
BEGIN, END = "<!-- baseline -->", "<!-- end of the baseline -->"
_IMAGE = re.compile(r"^!\[(?P<words>.*)\]\(plots/(?P<name>.*)\.svg\)\n\n?", re.MULTILINE)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    # Where it was written is nobody's business.
    html, text = (
        (folder / f"report.{kind}").read_text().replace(f" --out {folder}", "")
        for kind in ("html", "md")
    )
    (PAGES / "baseline.html").write_text(html)
    (PAGES / "baseline.md").write_text(pictured(text, "../../docs/img"))
    for name in PICTURES:
        shutil.copyfile(folder / "plots" / f"{name}.svg", DOCS / "img" / f"baseline-{name}.svg")
    page = DOCS / "benchmarks.md"
    before, rest = page.read_text().split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{summary(pictured(text, 'img'))}\n{END}{after}")


def pictured(text: str, images: str) -> str:
    """With the pictures that are published beside it; the page of HTML has all of them."""

    def image(found: re.Match[str]) -> str:
        if found["name"] not in PICTURES:
            return ""
        return f"![{found['words']}]({images}/baseline-{found['name']}.svg)\n\n"

    return _IMAGE.sub(image, text)


def summary(report: str) -> str:
    """Its head and its summary, one level of headings lower."""
    kept = report[: report.index("\n## Tables")].removeprefix("# hakmem bench\n")
    return "\n".join(f"#{line}" if line.startswith("#") else line for line in kept.splitlines())


if __name__ == "__main__":
    main()
