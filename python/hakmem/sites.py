"""Which code holds the memory of a running process: the sites of its heap profile, as `hakmem
sheet` and `hakmem top` show them beside the heap. Sites are call stacks. All figures are
estimates."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hakmem import heap_profile, look, process, profile_text, symbols
from hakmem.heap_profile import NoProfile, Profile, Site
from hakmem.look import CannotLook, Sheet
from hakmem.symbols import Frame, Line

NAMED = 100  # sites that get names, of those that hold most, and of those that grew most
DEPTH = 4  # functions shown for each site
SITES_OF_CLASS = 3
SPARSE_LEAST = 2**20  # bytes free in pages of a class that are in use, from which it is shown
SHARE_LEAST = 0.01  # of a class's blocks
PAGE = 4096
IN_USE, IN_USE_BYTES, ALLOCATED_BYTES = 0, 1, 3  # in heap_profile.FIGURES
NONE = (
    "sites: none are known, since no heap profile was on in the process; "
    "'hakmem set {pid} profile=on' turns it on"
)


@dataclass
class Held:
    """What one call stack holds, in bytes as requested; the allocator's own functions are not in
    it. Each error is a standard error."""

    lines: tuple[Line, ...]  # the innermost first
    frames: tuple[Frame, ...] = ()  # that have these
    in_use: float = 0
    error: float = 0
    blocks: float = 0
    allocated: float = 0
    grown: float = 0  # since the first look
    grown_error: float = 0
    sizes: dict[int, tuple[float, float]] = field(default_factory=dict)  # blocks, and their error

    def add(self, site: Site, grown: tuple[float, float]) -> None:
        self.in_use += site.figures[IN_USE_BYTES]
        self.error = math.hypot(self.error, site.errors[IN_USE_BYTES])
        self.blocks += site.figures[IN_USE]
        self.allocated += site.figures[ALLOCATED_BYTES]
        self.grown += grown[0]
        self.grown_error = math.hypot(self.grown_error, grown[1])
        for one in site.sizes:
            blocks, error = self.sizes.get(one.size, (0.0, 0.0))
            error = math.hypot(error, math.sqrt(one.variance))
            self.sizes[one.size] = (blocks + one.blocks, error)

    def json(self, seconds: float | None) -> dict[str, Any]:
        said: dict[str, Any] = {
            "stack": [
                {"function": line.function, "file": line.file, "line": line.line}
                for line in self.lines
            ],
            "in_use": round(self.in_use),
            "in_use_error": round(self.error),
            "blocks": round(self.blocks),
            "allocated": round(self.allocated),
            "classes": [
                {"size": size, "blocks": round(blocks), "error": round(error)}
                for size, (blocks, error) in sorted(self.sizes.items())
            ],
        }
        if seconds is not None:
            said |= {"grown": round(self.grown), "grown_error": round(self.grown_error)}
        return said


@dataclass(frozen=True)
class Seen:
    """A look at the sites."""

    pid: int
    rate: int  # bytes for each sample, on average
    held: tuple[Held, ...]  # those that hold most and that grew most
    in_use: float  # of all sites
    seconds: float | None  # since the first look; None of that one

    def json(self, most: int) -> dict[str, Any]:
        shown = {id(one): one for one in (*self.largest(most), *self.grown(most))}
        return {
            "rate": self.rate,
            "in_use": round(self.in_use),
            "seconds": self.seconds,
            "sites": [one.json(self.seconds) for one in shown.values()],
        }

    def largest(self, most: int) -> list[Held]:
        held = [one for one in self.held if one.in_use > 0]
        return sorted(held, key=lambda one: -one.in_use)[:most]

    def grown(self, most: int) -> list[Held]:
        held = [one for one in self.held if one.grown > 0 and self.seconds is not None]
        return sorted(held, key=lambda one: -one.grown)[:most]


Key = tuple[tuple[int, ...], str]


class Sites:
    """Looks at the sites of a process, and knows what they were at the first look."""

    def __init__(self, pid: int, library: Path) -> None:
        self.pid = pid
        self.library = library
        self._first: dict[Key, Site] | None = None
        self._began = 0.0
        self._frames: dict[int, Frame] = {}

    def look(self) -> Seen:
        """Raises CannotLook."""
        try:
            text = look.sites(self.pid, self.library)
            profile = process.as_called(heap_profile.parse(text, f"process {self.pid}"), self.pid)
        except NoProfile as why:
            raise CannotLook(look.NONSENSE, str(why)) from why
        now = time.monotonic()
        first = self._first
        if first is None:
            self._first, self._began = {_key(site): site for site in profile.sites}, now
        grown = {
            _key(site): _growth(site, None if first is None else first.get(_key(site)))
            for site in profile.sites
        }
        named = _foremost(profile.sites, grown)
        self._name(profile, named)
        held: dict[tuple[Line, ...], Held] = {}
        for site in named:
            stack = symbols.stack_of(site, self._frames)
            lines = tuple(line for frame in stack for line in frame.shown)
            one = held.setdefault(lines, Held(lines, stack))
            one.add(site, (0, 0) if first is None else grown[_key(site)])
        return Seen(
            self.pid,
            profile.rate,
            tuple(held.values()),
            sum(site.figures[IN_USE_BYTES] for site in profile.sites),
            None if first is None else now - self._began,
        )

    def _name(self, profile: Profile, sites: Iterable[Site]) -> None:
        """Names that are known stay, as long as the same is mapped there."""
        calls = {address - 1 for site in sites for address in site.stack if address > 0}
        known = self._frames
        new = {
            call
            for call in calls
            if call not in known or known[call].module != profile.mapping_of(call)
        }
        root = Path(f"/proc/{self.pid}/root")
        self._frames |= symbols.located(profile, new, root, servers=False).frames


def _key(site: Site) -> Key:
    return site.stack, site.name


def _growth(now: Site, then: Site | None) -> tuple[float, float]:
    """And its standard error. Samples that are in both cancel out. What differs are those that were
    allocated and those that were freed; each adds what a sample of the site adds on average."""
    before = (0.0, 0, 0, 0) if then is None else (then.figures[IN_USE_BYTES], *then.samples)
    grown = now.figures[IN_USE_BYTES] - before[0]
    allocated = max(now.samples[1] - before[2], 0)
    freed = max(allocated - (now.samples[0] - before[1]), 0)
    each = now.errors[ALLOCATED_BYTES] ** 2 / max(now.samples[1], 1)
    return grown, math.sqrt(each * (allocated + freed))


def _foremost(sites: tuple[Site, ...], grown: dict[Key, tuple[float, float]]) -> list[Site]:
    """To find names takes long, and a program may have 65,536 sites."""
    largest = sorted(sites, key=lambda site: -site.figures[IN_USE_BYTES])[:NAMED]
    growing = sorted(sites, key=lambda site: -grown[_key(site)][0])[:NAMED]
    return list({_key(site): site for site in (*largest, *growing)}.values())


# ---- as text ----


def lines(seen: Seen, sheet: Sheet, most: int) -> Iterator[str]:
    if not seen.in_use:
        yield NONE.format(pid=seen.pid)
        return
    rate = profile_text.rate(seen.rate)
    yield f"sites that hold most (estimates: one sample for each {rate} on average)"
    yield f"{'in use':>12}{'±':>11}{'%':>7}  site"
    for one in seen.largest(most):
        share = 100 * one.in_use / seen.in_use
        size, error = profile_text.size(one.in_use), profile_text.size(one.error)
        yield from _site(f"{size:>12}{error:>11}{share:>7.1f}", one)
    if seen.seconds is not None:
        yield ""
        yield from _growing(seen, most)
    yield ""
    yield from _sparse(seen, sheet, most)


def _growing(seen: Seen, most: int) -> Iterator[str]:
    grown = seen.grown(most)
    yield f"sites that grew most, in {seen.seconds:.0f} s{'' if grown else ': none'}"
    if grown:
        yield f"{'grown':>12}{'±':>11}{'':>7}  site"
    for one in grown:
        size, error = profile_text.size(one.grown, "+"), profile_text.size(one.grown_error)
        yield from _site(f"{size:>12}{error:>11}{'':>7}", one)


def _site(figures: str, one: Held) -> Iterator[str]:
    row = symbols.without_wrappers(one.lines)
    shown = profile_text.innermost(row)[:DEPTH] or ["(no stack)"]
    yield f"{figures}  {shown[0]}"
    for line in shown[1:]:
        yield f"{'':32}{line}"


def _sparse(seen: Seen, sheet: Sheet, most: int) -> Iterator[str]:
    """Sampled blocks lie in slabs of their own, so their places say nothing of where a site's other
    blocks lie. What can be said: which size classes have such pages, and which sites have blocks of
    these classes."""
    rows = [row for row in sheet.seen["classes"] if _free(row) >= SPARSE_LEAST]
    what = "pages in use that are at least half free"
    if not rows:
        yield f"{what}: less than {profile_text.size(SPARSE_LEAST)} free in each size class"
        return
    yield f"{what}, by size class, and the sites that have blocks of the class"
    yield f"{'class':>12}{'pages MiB':>11}{'free MiB':>10}{'blocks there':>14}{'of':>10}"
    for row in sorted(rows, key=lambda one: -_free(one))[:most]:
        pages = row["sparse"]["pages"] * PAGE
        yield (
            f"{row['size']:>12}{look.mib(pages):>11}{look.mib(_free(row)):>10}"
            f"{row['sparse']['blocks']:>14}{row['live']:>10}"
        )
        yield from _sites_of(seen, row)


def _sites_of(seen: Seen, row: dict[str, Any]) -> Iterator[str]:
    size, live = row["size"], max(row["live"], 1)
    shares = [
        (one.sizes[size][0] / live, one.sizes[size][1] / live, one)
        for one in seen.held
        if size in one.sizes and one.sizes[size][0] >= SHARE_LEAST * live
    ]
    if not shares:
        yield f"{'':14}(no site is known that has 1% of them)"
    for share, error, one in sorted(shares, key=lambda found: -found[0])[:SITES_OF_CLASS]:
        lines = symbols.without_wrappers(one.lines)
        shown = ([line for line in lines if line.is_script] or lines)[:2]
        places = [profile_text.short(line) for line in shown] or ["(no stack)"]
        yield f"{100 * share:>18.0f}% ± {100 * error:.0f}%  {', '.join(places)}"


def _free(row: dict[str, Any]) -> int:
    """Bytes that could go back if no block were in these pages."""
    return int(row["sparse"]["pages"] * PAGE - row["sparse"]["used"])
