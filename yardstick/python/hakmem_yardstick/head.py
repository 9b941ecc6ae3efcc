"""What a reader asks before the figures: what was run, where, and what speaks against trust."""

from collections import Counter
from typing import Any

from hakmem_yardstick.content import Content
from hakmem_yardstick.machine import told
from hakmem_yardstick.model import Results
from hakmem_yardstick.units import DASH, number
from hakmem_yardstick.words import counted

_LONGEST_REASON = 160  # the table of allocators has all of it


def facts(content: Content) -> list[tuple[str, str]]:
    """Names and values; what the session did not note is left out."""
    settings = content.results.settings
    plan = settings.get("plan", {})
    found = [
        ("hakmem", _version(settings)),
        ("command", str(settings.get("command", ""))),
        ("date", str(settings.get("began", "")).replace("T", " ")),
        ("mode", str(settings.get("mode", ""))),
        ("rounds", _rounds(content)),
        ("runs", _runs(content)),
        ("repeated", _repeated(settings)),
        (
            "scale",
            ""
            if plan.get("scale", 1) == 1
            else f"{plan['scale']:g} of each row's work, but of memory, tail and counts",
        ),
        *told(content.results.machine),
    ]
    return [(label, value) for label, value in found if value]


def conditions(results: Results) -> list[str]:
    """Under what the whole session suffered; what a reader is told first."""
    machine = results.machine
    # The share of the time says more than the load at the start.
    busy = machine.get("busy_during") or machine.get("busy_at_start")
    found = [str(busy)] if busy else []
    found += [f"left out: {one.name} ({_short(one.why)})" for one in results.missing]
    if results.interrupted:
        found.append("the session was interrupted: some rows have fewer rounds, or none")
    return [text[:1].upper() + text[1:] + "." for text in found]


def _short(text: str) -> str:
    words = " ".join(text.split()).rstrip(".")
    return words if len(words) <= _LONGEST_REASON else words[: _LONGEST_REASON - 3] + "..."


def warnings(content: Content) -> list[str]:
    """What a reader must know before believing."""
    settings = content.results.settings
    found = conditions(content.results)
    scale = settings.get("plan", {}).get("scale", 1)
    if scale < 1:
        found.append(
            f"Rows did {scale:g} of their work, but for those of memory, tail and counts: what is"
            " paid once, at the start, weighs more."
        )
    if content.ours is None:
        found.append("hakmem itself was not run.")
    if content.failures:
        found.append(f"{counted(content.failures, 'run')} failed; the footnotes of tables say how.")
    found += [f"{row} was left out: {why}." for row, why in settings.get("unavailable", {}).items()]
    return found


def _version(settings: dict[str, Any]) -> str:
    version, commit = str(settings.get("version", "")), str(settings.get("commit", ""))
    head, _, rest = commit.partition(" ")
    return f"{version} ({head[:12]}{' ' + rest if rest else ''})".strip() if commit else version


def _rounds(content: Content) -> str:
    rounds = Counter((run.row, run.allocator) for run in content.results.runs)
    exact = {row.name for row in content.rows if row.exact}
    counts = [count for (row, _), count in rounds.items() if row not in exact]
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low}{DASH}{high}, by row"


def _runs(content: Content) -> str:
    runs = content.results.runs
    # With what came between the runs; sessions of counts alone don't note it.
    spent = content.results.settings.get("seconds_used") or sum(run.seconds for run in runs)
    return f"{number(len(runs))}, which took {spent / 60:.0f} minutes" if runs else ""


def _repeated(settings: dict[str, Any]) -> str:
    """Runs that the machine's other work had disturbed."""
    again = settings.get("repeated_runs", 0)
    return f"{counted(again, 'run')}, disturbed by other work of the machine" if again else ""
