#!/usr/bin/env python3
"""Makes what README.md and docs/benchmarks.md say of the published run, the baseline, from its
packed results.

Usage: yardstick/tools/baseline.py [FOLDER]. FOLDER, which `hakmem bench --full --out FOLDER` wrote,
becomes the baseline: its results are packed into yardstick/docs/baseline.json.gz. Without FOLDER,
the summary, goals, losses and the picture of docs/benchmarks.md, and the tables of README.md, are
made from that file again.
Pages with all tables and plots are not kept: `hakmem bench report` makes them.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "yardstick/python"))

from hakmem_yardstick import compact, report
from hakmem_yardstick.content import Content
from hakmem_yardstick.model import Results
from hakmem_yardstick.plots import Plot, frontier
from hakmem_yardstick.sheet import Part, document
from yardstick.tools import goals
from yardstick.tools.readme import README, readme

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "yardstick/docs/baseline.json.gz"
PAGE = ROOT / "docs/benchmarks.md"
PICTURE = ROOT / "docs/img/baseline-frontier.svg"
BEGIN, END = "<!-- baseline -->", "<!-- end of the baseline -->"


def main() -> None:
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    if sys.argv[1:]:
        DATA.write_bytes(compact.pack(published(compact.read(Path(sys.argv[1]) / "results.json"))))
    content = Content(compact.read(DATA))
    plot = frontier(content)
    if plot is None:
        sys.exit(f"{DATA}: no picture can be made: hakmem ran beside nothing")
    PICTURE.write_text(plot.svg(), encoding="utf-8")
    PAGE.write_text(page(content, plot), encoding="utf-8")
    README.write_text(readme(content, picture(plot, "docs/")), encoding="utf-8")


def published(results: Results) -> Results:
    """Without the folder that it was written to, which is nobody's business."""
    command = re.sub(r" --out \S+", "", results.settings.get("command", ""))
    return replace(results, settings={**results.settings, "command": command})


def page(content: Content, plot: Plot) -> str:
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    assert content.ours is not None
    parts = [*report.head(content), Part("Summary", sheet=report.means(content), level=3)]
    parts += [goals.part(content.results, content.ours), report.losses(content)]
    text = document("", parts, "").removeprefix("# \n\n")
    return f"{before}{BEGIN}\n\n{text}\n{picture(plot, '')}\n\n{END}{after}"


def picture(plot: Plot, docs: str) -> str:
    return f"![{plot.title}]({docs}img/{PICTURE.name})"


if __name__ == "__main__":
    main()
