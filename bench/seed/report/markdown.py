"""Results as a page of Markdown."""

from collections.abc import Callable, Iterable, Iterator

from bench.seed.report import figures, prototype
from bench.seed.report.allocators import FOUR, OURS, SYSTEM, Kind
from bench.seed.report.figures import Ratio
from bench.seed.report.rounds import Results
from bench.seed.report.tables import number

Lines = Iterator[str]


def _table(head: list[str], align: str, body: Iterable[list[str]]) -> Lines:
    """`align` has an l or an r for each column."""
    yield _line(head)
    yield _line(["---:" if side == "r" else ":---" for side in align])
    for cells in body:
        yield _line(cells)
    yield ""


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _ratio(ratio: Ratio | None, *, high_is_good: bool = True) -> str:
    if ratio is None:
        return "-"
    text = f"{ratio.value:.2f}"
    if not ratio.is_known:
        return text
    good = ratio.shown_above_one if high_is_good else ratio.shown_below_one
    bad = ratio.shown_below_one if high_is_good else ratio.shown_above_one
    mark = "**" if good else "*" if bad else ""
    return f"{mark}{text}{mark} [{ratio.low:.2f}, {ratio.high:.2f}]"


def _cell(results: Results, row: str, name: str, measure: figures.Measure, unit: float) -> str:
    failure = results.failures.get((row, name))
    if failure is not None:
        return failure.cell
    value = figures.middle(results, row, name, measure)
    return "-" if value is None else number(value / unit)


def _setting(results: Results) -> Lines:
    setting = results.setting
    processors = f"{setting.processors} processors"
    if setting.processor:
        processors = f"{setting.processor}, {processors}"
    work = f" of {setting.scale:g} of the work" if setting.scale not in (0.0, 1.0) else ""
    yield f"{setting.date}; {processors}, {setting.kernel}; {results.rounds} rounds{work}."
    known = [
        f"{name} ({setting.versions[name]})" if name in setting.versions else name
        for name in results.names(Kind.PEER)
    ]
    if known:
        yield f"Peers: {', '.join(known)}."
    if results.interrupted:
        yield "Interrupted: the figures are those of the runs that had finished."
    yield ""
    yield (
        "Medians over rounds; ratios are paired by round, with intervals of 95%. **Bold**: the "
        "interval lies on the better side of 1; *italic*: on the worse side; plain: it holds 1."
    )
    yield ""


def _means(results: Results) -> Lines:
    yield "## Geometric means"
    yield ""
    yield (
        "Relative to the best peer of each row; below 1 is better, and a peer's own mean cannot "
        "fall below 1."
    )
    yield ""
    to_system = SYSTEM in results.names(Kind.PEER)
    head = ["rows", "allocator", "time", "peak memory"]
    if to_system:
        head += [f"time to {SYSTEM}", f"peak to {SYSTEM}"]

    def body() -> Iterator[list[str]]:
        for title, rows in figures.thread_groups(results):
            for name in results.names(Kind.PEER, Kind.OURS):
                cells: list[str] = []
                used = len(rows)
                for system in (False, True) if to_system else (False,):
                    for measure in (figures.speed, figures.peak):
                        mean = figures.geometric_mean(
                            results, rows, name, measure, to_system=system
                        )
                        cells.append(_ratio(mean.ratio if mean else None, high_is_good=False))
                        used = min(used, mean.rows if mean else 0)
                count = f"{used} of {len(rows)}" if used < len(rows) else f"{len(rows)}"
                shown = f"**{name}**" if name == OURS else name
                yield [f"{title} ({count})", shown, *cells]

    yield from _table(head, "ll" + "r" * (len(head) - 2), body())


def _rows(
    results: Results,
    title: str,
    note: str,
    measure: figures.Measure,
    unit: float,
    best: Callable[[str], tuple[str, Ratio] | None],
    *,
    high_is_good: bool,
) -> Lines:
    yield f"## {title}"
    yield ""
    yield note
    yield ""
    names = results.names(Kind.PEER, Kind.OURS)
    superlative = "best" if high_is_good else "leanest"
    head = ["row", *names, f"{OURS} to {superlative} peer", f"{superlative} peer"]

    def body() -> Iterator[list[str]]:
        for group, rows in figures.row_groups(results):
            yield [f"**{group}**", *[""] * (len(head) - 1)]
            for row in rows:
                to = best(row)
                yield [
                    f"`{row}`",
                    *(_cell(results, row, name, measure, unit) for name in names),
                    _ratio(to[1] if to else None, high_is_good=high_is_good),
                    to[0] if to else "-",
                ]

    yield from _table(head, "l" + "r" * len(names) + "rl", body())


def _prototype(results: Results) -> Lines:
    known = prototype.load()
    measured = {row.row for row in results.rows}
    rows = [row for row in known.rows if row.seed in measured]
    if not rows or not results.names(Kind.OURS):
        return
    yield "## The design's rows"
    yield ""
    yield (
        f"Speed to the best of {', '.join(FOUR)}, beside what the design's prototype reached "
        f"({known.source})."
    )
    yield ""

    def body() -> Iterator[list[str]]:
        for row in rows:
            best = figures.vs_fastest(results, row.seed, FOUR)
            ratio = best[1] if best else None
            yield [
                row.title,
                f"`{row.seed}`",
                _ratio(ratio),
                best[0] if best else "-",
                f"{row.to_debian:.2f}",
                prototype.beside(ratio, row.to_debian),
                f"{row.to_all:.2f} ({row.best_of_all})",
            ]

    head = [
        "design's row",
        "row",
        f"{OURS} to best of the four",
        "best",
        "prototype to best of the four",
        f"{OURS} beside it",
        "prototype to best of all",
    ]
    yield from _table(head, "llrlrll", body())


def _failures(results: Results) -> Lines:
    floors = results.names(Kind.FLOOR)
    failed = [(key, f) for key, f in results.failures.items() if key[1] not in floors]
    if failed:
        yield "## Runs without figures"
        yield ""
        for (row, name), failure in failed:
            yield f"- `{row}` with {name}: {failure.cell}"
        yield ""


def page(results: Results) -> str:
    lines = [
        "# The seed set",
        "",
        *_setting(results),
        *_means(results),
        *_rows(
            results,
            "Speed",
            "M operations a second. An operation is one call of malloc, realloc or free; in "
            "`chase-48` one node.",
            figures.speed,
            1e6,
            lambda row: figures.vs_fastest(results, row),
            high_is_good=True,
        ),
        *_rows(
            results,
            "Peak memory",
            "Resident MiB at the peak.",
            figures.peak,
            1024,
            lambda row: figures.vs_leanest(results, row),
            high_is_good=False,
        ),
        *_prototype(results),
        *_failures(results),
    ]
    return "\n".join(lines).rstrip() + "\n"
