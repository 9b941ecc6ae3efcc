#!/usr/bin/env python3
"""Writes docs/programs.md from the results that run.py left.

    summary.py FOLDER [PAGE]              the whole page
    summary.py FOLDER [PAGE] --add WORDS  a section at the page's end, with a date of its own
    summary.py FOLDER [PAGE] --beside FOLDER  also the figures of a run with other options

The second is for programs that joined since the last run of all, until the next; WORDS say how
they were run. The page of a run with options has WORDS at its beginning.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from tests.programs import results
from tests.programs.catalog import catalog
from tests.programs.results import Measure, Result

SLOW, LARGE = 1.3, 1.5  # what is worse than this by the median is set in bold
OF = {"ld": "binutils", "gold": "binutils"}  # programs of a package with another name
GROUPS = (
    "servers and databases", "languages", "python packages", "compilers and builds",
    "versions and archives", "text and documents", "pictures and sound", "mathematics", "tools",
    "others",
)  # fmt: skip

ABOUT = """\
# Real programs

`make test-programs` runs each of these programs in turn with the system's allocator and with
hakmem preloaded, and compares the results. This page is generated from its results.

{date}; {system}; {processor}, {processors} processors, {memory:.0f} GiB;
{libc}; hakmem {hakmem}.

**{same} of {all} programs gave the same results with hakmem as without.** Geometric means of the
ratios to the system's allocator: time {time}, processor time {cpu}, peak memory {peak}.

How to read the tables:

- **result**: *same* means that in each pair of runs every step printed the same standard output
  and standard error, ended with the same exit status, and left files with the same bytes. Parts
  that differ from run to run (times, addresses, process IDs, the order in which threads end) are
  left out or sorted first, and the last column names them. If the program checks its results
  itself (a checksum, `integrity_check`, its tests), the outcome of that check is compared too.
- **Proof that hakmem was active**: the loader reported that it resolved the program's `malloc`,
  `calloc`, `realloc` and `free` to hakmem, and hakmem was in the memory of the programs that run
  longer.
- **"on its own allocator"**: the program contains another allocator and uses it, as the loader
  reported. Such a test only shows that hakmem does not disturb it, and is not in the means.
  If a program uses it for a part of its memory only, the last column names that
  part; the rest comes from hakmem, and the test is in the means.
- **time** is the time of all steps, including the start and end of servers. **CPU** is the user
  and system time of all processes. **peak** is the largest resident set of any one process of the
  test, as the kernel reports it, so it includes the program's files and libraries. The client that
  puts load on a server runs on the same allocator as the server.
- **Values**: the median with the system's allocator; then the median of hakmem's ratios to it,
  paired by round; in brackets the smallest and the largest of these ratios. The first pair of runs
  is a warm-up. Long programs have one measured pair and no brackets, so their times also show what
  else ran on the machine. **Bold** means more than {slow} times the time or {large} times the
  memory.
"""


ABOUT_OPTIONS = """\
# Real programs with {options}

Each program runs with the system's allocator and with hakmem preloaded, and the results are
compared. Here hakmem runs with options. [programs.md](programs.md) has the results without
options, says what is compared, and explains the tables. This page is generated from its results.

{date}; {system}; {processor}, {processors} processors, {memory:.0f} GiB;
{libc}; hakmem {hakmem}.

{rounds}
"""

ONE_ROUND = """\
Each program was measured in one pair of runs, so the figures are rough: they also show what else
ran on the machine."""

SOME_ROUNDS = "Each program was measured in one pair of runs or more."

OUTCOME_OPTIONS = """
## Results with {options}

**{same} of {all} programs gave the same results with hakmem as without.** hakmem reported no error
in these.{others}

| ratio to the system's allocator | median | geometric mean | largest |
| :--- | ---: | ---: | :--- |
| time | {time} |
| processor time | {cpu} |
| peak memory | {peak} |
"""

SEVERAL = "results of several builds or options of the library; run.py --resume makes them anew"

ADDED = "\n## Added since\n"
ABOUT_ADDED = """
{date}; {processor}, {processors} processors; hakmem {hakmem}; {words}.

**{same} of {all} programs gave the same results with hakmem as without.** They are not in the
means above.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="the results")
    parser.add_argument("page", type=Path, nargs="?", default=Path("docs/programs.md"))
    parser.add_argument("--add", metavar="WORDS", help="add them at the page's end")
    parser.add_argument(
        "--beside", metavar="FOLDER", type=Path, action="append", default=[],
        help="results with other options, of which the page has the means only",
    )  # fmt: skip
    options = parser.parse_args()
    folder: Path = options.folder
    sets = []
    for place in (folder, *options.beside):
        files = [file for file in sorted(place.glob("*.json")) if file.name != results.MACHINE]
        sets.append([results.read(file) for file in files])
        wrong = unfit(sets[-1]) or ("" if sets[-1][0].library == sets[0][0].library else SEVERAL)
        if wrong:
            print(f"summary.py: {place}: {wrong}", file=sys.stderr)
            return 2
    found = sets[0]
    machine = json.loads((folder / results.MACHINE).read_text())
    if found[0].options:
        options.page.write_text(render_options(sets, machine, options.add or ""))
    elif options.add:
        kept = options.page.read_text().partition(ADDED)[0]
        options.page.write_text(kept + render_added(found, machine, options.add))
    else:
        options.page.write_text(render(found, machine))
    return 0


def unfit(found: list[Result]) -> str:
    """Why these results make no page, or an empty text."""
    if not found:
        return "no results; run.py makes them"
    if len({(r.library, *r.options) for r in found}) > 1:
        return SEVERAL
    return ""


def render_options(sets: list[list[Result]], machine: dict[str, Any], words: str) -> str:
    """The page of programs with options of hakmem: the tables are those of the first set."""
    once = all(len(r.system) <= 1 for found in sets for r in found)
    rounds = ONE_ROUND if once else SOME_ROUNDS
    title = in_words(sets[0][0].options)
    text = ABOUT_OPTIONS.format(**machine, options=title, rounds=f"{rounds}\n{words}".rstrip())
    for found in sets:
        same = [r for r in found if r.verdict == results.SAME]
        on_hakmem = [r for r in same if not r.own]
        text += OUTCOME_OPTIONS.format(
            options=in_words(found[0].options), same=len(same), all=len(found),
            others=others(found), time=spread(on_hakmem, wall), cpu=spread(on_hakmem, cpu),
            peak=spread(on_hakmem, peak),
        )  # fmt: skip
    return text + f"\nThe tables have the runs with {title}.\n" + tables(sets[0], "##")


def in_words(options: list[str]) -> str:
    return " and ".join(f"`{option}`" for option in options)


def others(found: list[Result]) -> str:
    """Programs that were not the same or not run, and those that do not use hakmem."""
    own = sorted(r.program for r in found if r.own)
    text = f" {len(own)} of them use their own allocator ({', '.join(own)})." if own else ""
    failed = [r for r in found if r.verdict != results.SAME]
    left = [name for name in catalog() if name not in {r.program for r in found}]
    if left:
        text += f"\n\nNot run with these options: {', '.join(left)}."
    return text + "".join(f"\n\n**{r.program}** {r.verdict}: {reason(r)}" for r in failed)


def spread(rows: Iterable[Result], of: Callable[[Measure], float]) -> str:
    """Median, geometric mean and largest of the ratios: three cells of a table."""
    kept = {r.program: median(found) for r in rows if (found := ratios(r, of))}
    if not kept:
        return "unknown | |"
    most = max(kept, key=lambda program: kept[program])
    mean_of = math.exp(sum(map(math.log, kept.values())) / len(kept))
    return f"{median(kept.values()):.2f} | {mean_of:.2f} | {kept[most]:.2f} ({most})"


def render(found: list[Result], machine: dict[str, Any]) -> str:
    same = [r for r in found if r.verdict == results.SAME]
    on_hakmem = [r for r in same if not r.own]
    text = ABOUT.format(
        **machine, same=len(same), all=len(found), slow=SLOW, large=LARGE,
        time=mean(on_hakmem, wall), cpu=mean(on_hakmem, cpu), peak=mean(on_hakmem, peak),
    )  # fmt: skip
    return text + tables(found, "##")


def render_added(found: list[Result], machine: dict[str, Any], words: str) -> str:
    same = sum(r.verdict == results.SAME for r in found)
    text = ABOUT_ADDED.format(**machine, same=same, all=len(found), words=words)
    return ADDED + text + tables(found, "###")


def tables(found: list[Result], heading: str) -> str:
    text = ""
    unknown = sorted({r.group for r in found} - set(GROUPS))
    for group in (*GROUPS, *unknown):
        rows = [r for r in found if r.group == group]
        if rows:
            text += f"\n{heading} {group.capitalize()}\n\n" + table(rows)
    return text


def table(rows: Iterable[Result]) -> str:
    head = ("program", "version", "what it did", "result", "time", "CPU", "peak", "note")
    lines = [head, (":---", ":---", ":---", ":---", "---:", "---:", "---:", ":---")]
    for r in rows:
        verdict = r.verdict if r.verdict == results.SAME else f"**{r.verdict}**: {reason(r)}"
        verdict += f", on its own allocator: {r.own}" if r.own else ""
        figures = (
            figure(r, wall, "s", SLOW),
            figure(r, cpu, "s", SLOW),
            figure(r, peak, "MiB", LARGE),
        )
        lines.append((r.program, version(r), r.what, verdict, *figures, r.note))
    return "".join(f"| {' | '.join(cell(word) for word in line)} |\n" for line in lines)


def reason(r: Result) -> str:
    """The rest has commands, with this machine's folders."""
    return cell(r.message.partition("\n")[0])


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def version(r: Result) -> str:
    """Of the package with the program's name, else of the first, without Debian's revision."""
    names = (r.program, OF.get(r.program, ""))
    of_name = [r.versions[name] for name in names if name in r.versions]
    first = next(iter([*of_name, *r.versions.values()]), "not of Debian")
    return re.sub(r"^\d+:|[-+](deb|dfsg|ds|\d+[^.]*$).*", "", first)


def wall(m: Measure) -> float:
    return m.seconds


def cpu(m: Measure) -> float:
    return m.cpu


def peak(m: Measure) -> float:
    return m.peak / 1024


def ratios(r: Result, of: Callable[[Measure], float]) -> list[float]:
    return [of(b) / of(a) for a, b in zip(r.system, r.preloaded, strict=True) if of(a)]


def figure(r: Result, of: Callable[[Measure], float], unit: str, limit: float) -> str:
    found = ratios(r, of)
    if not found:
        return ""
    middle = f"{median(found):.2f}"
    if median(found) > limit:
        middle = f"**{middle}**"
    base = median(of(m) for m in r.system)
    digits = 1 if base < 100 else 0
    span = f" [{min(found):.2f}, {max(found):.2f}]" if len(found) > 1 else ""
    return f"{base:.{digits}f} {unit}; {middle}{span}"


def mean(rows: Iterable[Result], of: Callable[[Measure], float]) -> str:
    logs = [math.log(median(found)) for r in rows if (found := ratios(r, of))]
    return f"{math.exp(sum(logs) / len(logs)):.2f}" if logs else "unknown"


if __name__ == "__main__":
    sys.exit(main())
