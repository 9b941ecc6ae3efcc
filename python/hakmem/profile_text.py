"""A heap profile as text: a table for terminals, collapsed stacks, and speedscope's JSON."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hakmem.heap_profile import Profile
from hakmem.symbols import Line, Named

DEPTH = 8  # functions shown for each site
LONG = 60  # letters of a function's name
VERY_LONG = 1000
# Functions of the libraries of C++ and Rust, which say less than those that call them.
LIBRARY = re.compile(r"<*(\w+ )?(\w+ as )?(std|__gnu_cxx|core|alloc|__rustc)::")
# A bracket, or what has some that enclose nothing: operator<, operator->, (anonymous namespace).
_BRACKET = re.compile(
    r"\boperator(?:<=>|->\*?|<<=?|>>=?|[<>]=?|\(\))|->|\(anonymous [^()]*\)|[<>()]"
)
# What can be shown, by the word for it, and the place of its blocks in the figures.
KINDS = {"inuse": ("in use", 0), "alloc": ("allocated", 2), "peak": ("peak", 4)}


GREY = "\033[90m", "\033[0m"
INSIGNIFICANT = "not significant: the choice of samples explains these"


@dataclass(frozen=True)
class Table:
    kind: str
    most: int  # sites
    grey: bool = False  # what is not significant, on a terminal


def printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def size(bytes_: float, sign: str = "") -> str:
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(bytes_) >= unit:
            return f"{bytes_ / unit:{sign}.1f} {name}"
    return f"{bytes_:{sign}.0f} B"


def summary(named: Named) -> str:
    sign = "+" if named.is_difference else ""
    sums = named.sums
    parts = (
        f"{title} {size(sums[at + 1], sign)} in {sums[at]:{sign}.0f} blocks"
        for title, at in KINDS.values()
    )
    return ", ".join(parts)


def table(named: Named, shown: Table, name: str) -> Iterator[str]:
    """The sites with most bytes first."""
    title, at = KINDS[shown.kind]
    sign = "+" if named.is_difference else ""
    what = name if named.sides is None else f"{' -> '.join(named.sides)}: differences"
    of = ", " if named.is_difference else ": "
    yield printable(f"{what}{of}one sample for each {rate(named.rate)} on average")
    yield summary(named)
    yield ""
    total = named.sums[at + 1]
    yield f"{title:>12}{'±':>11}{'%':>7}{'blocks':>12}  site"
    stacks = [stack for stack in named.stacks if stack.figures[at] or stack.figures[at + 1]]
    stacks.sort(key=lambda one: (not one.significant[at // 2], -abs(one.figures[at + 1])))
    if not stacks:
        others = [f"--by {kind}" for kind, (_, at) in KINDS.items() if named.sums[at + 1]]
        none = f"no difference {title}" if named.is_difference else f"nothing {title}"
        yield none + (f"; see {' and '.join(others)}" if others else "")
    told, begin, end = True, "", ""  # what goes before and after a line
    for stack in stacks[: shown.most]:
        if told and named.is_difference and not stack.significant[at // 2]:
            told, begin, end = False, *(GREY if shown.grey else ("", ""))
            yield begin + INSIGNIFICANT + end
        blocks, bytes_ = stack.figures[at], stack.figures[at + 1]
        share = f"{100 * bytes_ / total:.1f}" if total > 0 and not named.is_difference else ""
        lines = innermost(stack.row())
        yield (
            f"{begin}{size(bytes_, sign):>12}{size(stack.errors[at + 1]):>11}{share:>7}"
            f"{blocks:>{sign}12.0f}  {lines[0] if lines else '(no stack)'}{end}"
        )
        for line in lines[1:]:
            yield f"{begin}{'':44}{line}{end}"
    left = stacks[shown.most :]
    if left:
        rest = sum(stack.figures[at + 1] for stack in left)
        yield f"{begin}{size(rest, sign):>12}{'':30}  in {len(left)} other sites{end}"
    yield from _in_sum(named, shown)


def _in_sum(named: Named, shown: Table) -> Iterator[str]:
    """Of a difference: functions that differ, though none of their stacks does by itself."""
    at = KINDS[shown.kind][1]
    found = {name for name, significant in named.functions.items() if significant[at // 2]}
    sums: dict[str, list[float]] = {name: [0.0, 0.0] for name in found}
    for stack in named.stacks if found else ():
        for name in found.intersection(line.function for line in stack.lines()):
            if stack.significant[at // 2]:
                found.remove(name)
            sums[name][0] += stack.figures[at + 1]
            sums[name][1] += stack.errors[at + 1] ** 2
    if found:
        yield ""
        yield "functions that differ, though no stack of theirs does by itself"
    for name in sorted(found, key=lambda one: -abs(sums[one][0]))[: shown.most]:
        change, variance = sums[name]
        yield f"{size(change, '+'):>12}{size(variance**0.5):>11}{'':19}  {printable(brief(name))}"


def parts(some: Sequence[tuple[str, Named]], every: Named) -> Iterator[str]:
    """Of several profiles the figures of each, and their sum."""
    if len(some) == 1:
        return
    yield ""
    yield "".join(f"{title:>12}{'blocks':>10}" for title, _ in KINDS.values()) + "  profile"
    for name, named in (*some, ("(all)", every)):
        sums = named.sums
        figures = (f"{size(sums[at + 1]):>12}{sums[at]:>10.0f}" for _, at in KINDS.values())
        yield printable(f"{''.join(figures)}  {name}")


def marks(profile: Profile) -> Iterator[str]:
    for mark in profile.marks:
        times = f" ({mark.count} times, last)" if mark.count > 1 else ""
        use = f", with {size(mark.in_use)} in use" if mark.in_use else ""
        yield printable(f"mark {mark.name}{times}: {mark.ago:.3f} s before the profile{use}")


def rate(bytes_: int) -> str:
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if bytes_ >= unit and bytes_ % unit == 0:
            return f"{bytes_ // unit} {name}"
    return f"{bytes_} bytes"


def innermost(lines: Sequence[Line]) -> list[str]:
    """The innermost. Where all are of libraries, also the first that is not, and its callers. Of a
    script its own functions, and where the innermost one leads to."""
    scripts = [at for at, line in enumerate(lines) if line.is_script]
    if scripts:
        called = [short(lines[at]) for at in scripts]
        native = [short(line) for line in lines[: min(scripts[0], DEPTH // 4)]]
        left_out = ["…"] if scripts[0] > len(native) else []
        return native + left_out + called[: DEPTH - len(native)]
    own = next((at for at, line in enumerate(lines) if not LIBRARY.match(line.function)), 0)
    if own <= DEPTH // 2:
        return [short(line) for line in lines[:DEPTH]]
    inner, outer = lines[: DEPTH // 4], lines[own : own + DEPTH // 2]
    return [*map(short, inner), "…", *map(short, outer)]


def short(line: Line) -> str:
    place = line.where.rpartition("/")[2]
    name = brief(line.function)
    return printable(f"{name} ({place})" if place else name)


def brief(name: str) -> str:
    """A long name of C++ without what its templates are made from, and without its parameters; one
    that is still long is cut."""
    if len(name) > LONG:
        name = _without(name, "<>")
    if len(name) > LONG:
        name = _without(name, "()")
    return name if len(name) <= LONG else name[: LONG - 1] + "…"


def _without(name: str, brackets: str) -> str:
    """Looks at each letter once: templates make names of megabytes."""
    opening, closing = brackets[0], brackets[1]
    kept: list[str] = []
    depth = begin = 0
    for match in _BRACKET.finditer(name):
        if match[0] == opening:
            if depth == 0:
                kept += name[begin : match.start()], opening, "…", closing
            depth += 1
        elif match[0] == closing and depth:
            depth -= 1
            begin = match.end()
    return "".join(kept) + ("" if depth else name[begin:])


def bounded(name: str) -> str:
    """Of a very long name begin and end, and what tells it from others like it: for where a name is
    repeated."""
    if len(name) <= VERY_LONG:
        return name
    part = VERY_LONG // 2
    return f"{name[:part]}…{zlib.crc32(name.encode(errors='replace')):08x}…{name[-part:]}"


# ---- for other programs ----


def collapsed(named: Named, at: int, before: Named | None = None) -> str:
    """A line for each stack: functions from the outermost on, and a figure, for flamegraph.pl. With
    a profile from before, two figures: before and now."""
    sums: dict[str, list[float]] = {}
    for which, profile in enumerate((named,) if before is None else (before, named)):
        for stack in profile.stacks:
            name = ";".join(_frame(line) for line in reversed(stack.lines())) or "(no stack)"
            figures = sums.setdefault(name, [0.0] if before is None else [0.0, 0.0])
            figures[which] += stack.figures[at]
    return "".join(
        f"{name} {' '.join(f'{figure:.0f}' for figure in figures)}\n"
        for name, figures in sorted(sums.items())
        if any(round(figure) for figure in figures)
    )


def _frame(line: Line) -> str:
    return printable(bounded(line.function)).replace(";", ":")


def speedscope(named: Named, name: str) -> str:
    """https://www.speedscope.app/file-format-schema.json. It knows no negative weights, so of a
    difference it has what became more."""
    frames: dict[Line, int] = {}
    stacks = [
        (stack, [frames.setdefault(line, len(frames)) for line in reversed(stack.lines())])
        for stack in named.stacks
    ]
    profiles = []
    for title, at in KINDS.values():
        for unit, which in (("bytes", at + 1), ("none", at)):
            some = [(s, indices) for s, indices in stacks if s.figures[which] > 0]
            weights = [stack.figures[which] for stack, _ in some]
            profiles.append(
                {
                    "type": "sampled",
                    "name": f"{title}, {'bytes' if unit == 'bytes' else 'blocks'}",
                    "unit": unit,
                    "startValue": 0,
                    "endValue": sum(weights),
                    "samples": [indices for _, indices in some],
                    "weights": weights,
                }
            )
    return json.dumps(
        {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "name": name,
            "exporter": "hakmem",
            # A program that frees all at its end has nothing in use then.
            "activeProfileIndex": next((i for i in (0, 4, 2) if profiles[i]["samples"]), 0),
            "shared": {"frames": [_speedscope_frame(line) for line in frames]},
            "profiles": profiles,
        }
    )


def _speedscope_frame(line: Line) -> dict[str, Any]:
    frame: dict[str, Any] = {"name": line.function}
    if line.file:
        frame["file"] = line.file
    if line.line:
        frame["line"] = line.line
    return frame
