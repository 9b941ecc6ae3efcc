"""The report's files: one page of HTML that needs nothing else, Markdown, and the plots as SVG."""

from __future__ import annotations

import base64
import gzip
import json
from importlib.resources import files
from pathlib import Path

import jinja2

from hakmem_yardstick import in_short, units, words
from hakmem_yardstick.content import Cell, Content, Table, group_title, standing
from hakmem_yardstick.drawing import Plot
from hakmem_yardstick.head import facts, warnings
from hakmem_yardstick.markdown import LOSSES, WINS, text_of
from hakmem_yardstick.model import Kind, Results
from hakmem_yardstick.palette import dark_rules
from hakmem_yardstick.plots import every_plot

PLOTS = "plots"


def write(content: Content, folder: Path) -> list[Path]:
    """The files written, the page first."""
    plots = every_plot(content)
    (folder / PLOTS).mkdir(parents=True, exist_ok=True)
    pictures = [folder / PLOTS / f"{plot.name}.svg" for plot in plots]
    for plot, file in zip(plots, pictures, strict=True):
        file.write_text(plot.svg(), encoding="utf-8")
    page, text = folder / "report.html", folder / "report.md"
    page.write_text(_page(content, plots), encoding="utf-8")
    named = [(f"{PLOTS}/{plot.name}.svg", plot.title) for plot in plots]
    text.write_text(text_of(content, named), encoding="utf-8")
    return [page, text, *pictures]


def _page(content: Content, plots: list[Plot]) -> str:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "against": words.against_text,
        "decimals": words.decimals,
        "digits": lambda value: f"{value:.10g}",
        "emphasis": words.emphasis,
        "goal": words.goal_text,
        "goal_rows": words.goal_rows_text,
        "interval": words.interval,
        "parameters": units.parameters_text,
        "percent": words.percent,
        "ratio": words.ratio_text,
        "reached": words.reached_text,
        "standing": standing,
    }
    source = files("hakmem_yardstick").joinpath("report.html.jinja").read_text(encoding="utf-8")
    drawn = {plot.name: plot.inline() for plot in plots}
    return environment.from_string(source).render(
        content=content,
        in_short=in_short.lines(content),
        key=words.KEY,
        facts=facts(content),
        warnings=warnings(content),
        groups=[(group, group_title(group), _tables(content, group)) for group in content.groups],
        plots=drawn,
        curves=[svg for name in ("frontier", "threads", "sizes") for svg in _named(drawn, name)],
        over_time={g: _named(drawn, f"memory-over-time-{g}") for g in content.groups},
        dark=dark_rules(content.allocators, ".plot "),
        Kind=Kind,
        runs_of=_runs_text,
        rows_text=words.rows_text,
        standings_text=lambda table: words.standings_text(
            content.ours, [line.to_best.standing for line in table.lines if line.to_best]
        ),
        losses=LOSSES,
        not_run=words.not_run_text(content.goals_not_run),
        wins=WINS,
        no_wins=words.no_wins_text(content),
        packed=_packed(content.results),
    )


def _tables(content: Content, group: str) -> list[Table]:
    return [table for table in content.tables if table.group == group]


def _named(drawn: dict[str, str], name: str) -> list[str]:
    """One plot, or those that it was split into."""
    return [svg for key, svg in drawn.items() if key == name or key.startswith(f"{name}-")]


def _runs_text(cell: Cell, scale: units.Scale) -> str:
    """The values that a figure was made of, by round, in the unit of its row."""
    return " ".join(f"{number}:{value / scale.divisor:.5g}" for number, value in cell.by_round)


def _packed(results: Results) -> str:
    """results.json within the page: every run, without what their programs printed besides."""
    record = results.to_json()
    for run in record["runs"]:
        run["raw"] = {}
    text = json.dumps(record, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
