"""Results as tables for a terminal."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.seed.report import figures, prototype
from bench.seed.report.allocators import FOUR, OURS, SYSTEM, Kind
from bench.seed.report.figures import Ratio
from bench.seed.report.rounds import Results

_GOOD, _BAD, _QUIET = "green", "red", "dim"


def _table(title: str, note: str) -> Table:
    return Table(
        title=title, caption=note, box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left"
    )


def number(value: float) -> str:
    """Of three digits, or as many as stand before the point."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _ratio(ratio: Ratio | None, *, high_is_good: bool = True) -> Text:
    if ratio is None:
        return Text("-", _QUIET)
    text = f"{ratio.value:.2f}"
    if not ratio.is_known:
        return Text(text)
    style = ""
    if ratio.shown_above_one:
        style = _GOOD if high_is_good else _BAD
    elif ratio.shown_below_one:
        style = _BAD if high_is_good else _GOOD
    return Text(f"{text} [{ratio.low:.2f}, {ratio.high:.2f}]", style)


def _cell(results: Results, row: str, name: str, measure: figures.Measure, unit: float) -> Text:
    failure = results.failures.get((row, name))
    if failure is not None:
        floor = name in results.names(Kind.FLOOR)
        return Text(failure.cell, _QUIET if floor else _BAD)
    value = figures.middle(results, row, name, measure)
    return Text("-", _QUIET) if value is None else Text(number(value / unit))


def _verdict(ratio: Ratio | None) -> Text:
    if ratio is None or not ratio.is_known:
        return Text("not known", _QUIET)
    if ratio.shown_below_one:
        return Text("SLOWER", _BAD)
    return Text("faster" if ratio.shown_above_one else "not slower", _GOOD)


def _has(results: Results, *names: str) -> bool:
    return set(names) <= {a.name for a in results.allocators}


def speed_table(results: Results) -> Table:
    names = [a.name for a in results.allocators]
    table = _table(
        "Speed, M operations a second (median)",
        "Ratios of speed: above 1 is faster; intervals of 95% over paired rounds. An operation is "
        "one call, in chase-48 one node.",
    )
    table.add_column("row", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", style="bold" if name == OURS else None)
    table.add_column(f"{OURS} to best peer", no_wrap=True)
    table.add_column("best", no_wrap=True)
    table.add_column(f"to {SYSTEM}", no_wrap=True)
    table.add_column(f"than {SYSTEM}", no_wrap=True)
    for row in results.rows:
        best = figures.vs_fastest(results, row.row)
        system = figures.vs_system(results, row.row)
        peer = figures.fastest(results, row.row, results.names(Kind.PEER))
        table.add_row(
            row.row,
            *(_cell(results, row.row, name, figures.speed, 1e6) for name in names),
            _ratio(best[1] if best else None),
            peer or "-",
            _ratio(system),
            _verdict(system),
        )
    return table


def memory_table(results: Results) -> Table:
    names = results.names(Kind.PEER, Kind.OURS)
    table = _table(
        "Peak resident memory, MiB, and minor page faults in the measured part (medians)",
        "Ratio of peaks: below 1 is leaner. 'end' is what is resident after the last free.",
    )
    table.add_column("row", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", style="bold" if name == OURS else None)
    table.add_column(f"{OURS} to leanest", no_wrap=True)
    table.add_column("leanest", no_wrap=True)
    table.add_column(f"{OURS} end", justify="right")
    for name in names:
        table.add_column(f"faults {name}", justify="right")
    for row in results.rows:
        best = figures.vs_leanest(results, row.row)
        end = figures.middle(results, row.row, OURS, lambda run: run.rss_end_kib / 1024)
        faults = (
            figures.middle(results, row.row, name, lambda run: run.minor_faults) for name in names
        )
        table.add_row(
            row.row,
            *(_cell(results, row.row, name, figures.peak, 1024) for name in names),
            _ratio(best[1] if best else None, high_is_good=False),
            figures.leanest(results, row.row, results.names(Kind.PEER)) or "-",
            "-" if end is None else number(end),
            *("-" if count is None else f"{count:.0f}" for count in faults),
        )
    return table


def means_table(results: Results) -> Table:
    table = _table(
        "Geometric means, relative to the best peer of each row (1.00 = best in every row)",
        "Time and memory: below 1 is better. A peer's own mean cannot fall below 1.",
    )
    for column in ("allocator", "rows", "of rows", "time", "peak memory"):
        table.add_column(column, no_wrap=True)
    if _has(results, SYSTEM):
        table.add_column(f"time to {SYSTEM}", no_wrap=True)
        table.add_column(f"peak to {SYSTEM}", no_wrap=True)
    for title, rows in figures.thread_groups(results):
        for name in results.names(Kind.PEER, Kind.OURS):
            time = figures.geometric_mean(results, rows, name, figures.speed)
            memory = figures.geometric_mean(results, rows, name, figures.peak)
            cells = [
                _ratio(mean.ratio if mean else None, high_is_good=False) for mean in (time, memory)
            ]
            if _has(results, SYSTEM):
                for measure in (figures.speed, figures.peak):
                    mean = figures.geometric_mean(results, rows, name, measure, to_system=True)
                    cells.append(_ratio(mean.ratio if mean else None, high_is_good=False))
            count = f"{time.rows if time else 0}/{len(rows)}"
            style = "bold" if name == OURS else None
            table.add_row(name, title, count, *cells, style=style)
        table.add_section()
    return table


def _beside_prototype(ratio: Ratio | None, theirs: float) -> Text:
    word = prototype.beside(ratio, theirs)
    return Text(word, {"not known": _QUIET, "behind": _BAD}.get(word, _GOOD))


def prototype_table(results: Results) -> Table | None:
    known = prototype.load()
    measured = {row.row for row in results.rows}
    rows = [row for row in known.rows if row.seed in measured]
    if not rows or not _has(results, OURS):
        return None
    table = _table(
        f"The design's rows: speed to the best of {', '.join(FOUR)}; ours and the prototype's",
        f"Prototype's columns: {known.source}. 'behind' and 'ahead' where the interval says so.",
    )
    for column in ("design's row", "row", "ours to best of the four", "best"):
        table.add_column(column, no_wrap=True)
    for column in ("prototype to best of the four", "ours beside it", "prototype to best of all"):
        table.add_column(column)
    for row in rows:
        best = figures.vs_fastest(results, row.seed, FOUR)
        ratio = best[1] if best else None
        table.add_row(
            row.title,
            row.seed,
            _ratio(ratio),
            best[0] if best else "-",
            f"{row.to_debian:.2f}",
            _beside_prototype(ratio, row.to_debian),
            f"{row.to_all:.2f} ({row.best_of_all})",
        )
    return table


def print_all(results: Results, console: Console) -> None:
    console.print(speed_table(results))
    console.print(memory_table(results))
    if _has(results, OURS):
        console.print(means_table(results))
    beside = prototype_table(results)
    if beside is not None:
        console.print(beside)

    slower = [r.row for r in results.rows if _is_slower(results, r.row)]
    if _has(results, OURS, SYSTEM):
        if slower:
            console.print(f"Shown slower than {SYSTEM}: {', '.join(slower)}", style=_BAD)
        else:
            known = [r for r in results.rows if _is_known(results, r.row)]
            console.print(
                f"No row is shown slower than {SYSTEM}; {len(known)} of {len(results.rows)} "
                "have an interval."
            )
    floors = results.names(Kind.FLOOR)
    for (row, name), failure in results.failures.items():
        if name not in floors:
            console.print(f"{row} with {name}: {failure.detail}", style=_BAD, markup=False)
    if results.repeated:
        console.print(
            f"{results.repeated} runs of one thread had to wait for a core and were run again; "
            f"{results.disturbed} kept figures still did."
        )
    if results.interrupted:
        console.print("Interrupted: the figures are those of the runs that had finished.")


def _is_slower(results: Results, row: str) -> bool:
    ratio = figures.vs_system(results, row)
    return ratio is not None and ratio.shown_below_one


def _is_known(results: Results, row: str) -> bool:
    ratio = figures.vs_system(results, row)
    return ratio is not None and ratio.is_known
