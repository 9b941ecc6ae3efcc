"""What a search for leaks found, by call stack: from the file that hakmem/look writes at the end of
a process. And suppressions: patterns of functions, files and modules whose leaks do not count.

A suppression is a line `leak:PATTERN`, as LeakSanitizer has them. A pattern matches a part of a
name; `*` in it stands for anything, `^` for the name's begin and `$` for its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hakmem import symbols, wrappers
from hakmem.heap_profile import Figures, Leaks, NoProfile, Profile, escaped
from hakmem.symbols import DEBUG_DIR, Named, Stack
from hakmem.wrappers import Wrappers

MOST_BYTES = 16 * 2**20
# Places of the figures in a stack; that of the blocks, and after it the bytes.
LOST, THROUGH, OTHER = 0, 2, 4


@dataclass(frozen=True)
class Found:
    lost: tuple[Stack, ...]  # lost, and through them; the other figures are those of their own kind
    suppressed: tuple[Stack, ...]
    indirect: tuple[Stack, ...]  # OTHER has them
    reachable: tuple[Stack, ...]  # the same; empty if not wanted
    reachable_sum: tuple[int, int]  # blocks, bytes
    notes: tuple[str, ...]


def find(
    profile: Profile,
    suppressions: Sequence[Pattern] = (),
    reachable: bool = True,
    debug_dirs: Sequence[Path] = (DEBUG_DIR,),
    written: float | None = None,
    known: Wrappers = wrappers.KNOWN,
    servers: bool = True,
) -> Found:
    """`servers`: as of symbols.named. Raises NoProfile where it is a profile without leaks."""
    if not any(site.leaks for site in profile.sites):
        raise NoProfile("a heap profile without a search for leaks: 'hakmem run --leaks' makes one")

    def with_names(other: str, since: float | None) -> Named:
        part = _of(profile, other)
        return symbols.named(
            part, debug_dirs=debug_dirs, written=since, known=known, servers=servers
        )

    named = with_names("indirect", written)
    rest = with_names("reachable", None) if reachable else None
    lost: list[Stack] = []
    hidden: list[Stack] = []
    for stack in _with(named, LOST):
        is_hidden = any(_matches(one, stack) for one in suppressions)
        (hidden if is_hidden else lost).append(stack)
    sums = [site.leaks.reachable for site in profile.sites if site.leaks]
    return Found(
        tuple(lost),
        tuple(hidden),
        tuple(_with(named, OTHER)),
        () if rest is None else tuple(_with(rest, OTHER)),
        (sum(blocks for blocks, _ in sums), sum(bytes_ for _, bytes_ in sums)),
        named.notes,
    )


def _of(profile: Profile, other: str) -> Profile:
    """With figures of leaks in place of the usual, for those sites that have any."""
    sites = []
    for site in profile.sites:
        leaks = site.leaks
        if leaks is not None:
            figures = _figures(leaks, other)
            if any(figures):
                sites.append(replace(site, figures=figures, errors=(0.0,) * 6))
    return replace(profile, sites=tuple(sites))


def _figures(leaks: Leaks, other: str) -> Figures:
    last: tuple[int, int] = getattr(leaks, other)
    return (*leaks.lost, *leaks.through, *last)


def _with(named: Named, at: int) -> list[Stack]:
    """Those that have blocks there, most bytes first."""
    stacks = [stack for stack in named.stacks if stack.figures[at]]
    more = THROUGH if at == LOST else at
    key = at + 1, more + 1
    return sorted(stacks, key=lambda one: -sum(one.figures[i] for i in set(key)))


def total(stacks: Iterable[Stack], at: int) -> tuple[float, float]:
    """Blocks and bytes."""
    blocks = bytes_ = 0.0
    for stack in stacks:
        blocks += stack.figures[at]
        bytes_ += stack.figures[at + 1]
    return blocks, bytes_


# ---- suppressions ----


class Pattern:
    """Of parts between stars. The first place where a part is found is as good as any later one, so
    this takes no more time than to read the text once for each."""

    def __init__(self, text: str) -> None:
        self._at_begin = text.startswith("^")
        self._at_end = text.endswith("$")
        self._parts = text.removeprefix("^").removesuffix("$").split("*")

    def matches(self, text: str) -> bool:
        first, *more = self._parts
        if not more and self._at_begin and self._at_end:
            return text == first
        at = 0 if self._at_begin else text.find(first)
        if at < 0 or not text.startswith(first, at):
            return False
        if not more:
            return text.endswith(first) if self._at_end else True
        at += len(first)
        last = more.pop()
        for part in more:
            at = text.find(part, at)
            if at < 0:
                return False
            at += len(part)
        if self._at_end:
            return text.endswith(last) and len(text) - len(last) >= at
        return text.find(last, at) >= 0


class WrongSuppression(Exception):
    """A line for the user."""

    status = 2


def read_suppressions(path: Path) -> list[Pattern]:
    """Raises WrongSuppression."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise WrongSuppression(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > MOST_BYTES:
        raise WrongSuppression(f"{path}: larger than {MOST_BYTES // 2**20} MiB")
    patterns = []
    said = escaped(content.decode(errors="surrogateescape"))
    for number, line in enumerate(said.splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        kind, colon, pattern = text.partition(":")
        if kind != "leak" or not colon or not pattern.strip("*^$ "):
            raise WrongSuppression(f"{path}:{number}: expected leak:PATTERN, found '{text}'")
        patterns.append(Pattern(pattern.strip()))
    return patterns


def _matches(pattern: Pattern, stack: Stack) -> bool:
    for frame in stack.frames:
        if frame.module is not None and pattern.matches(frame.module.path):
            return True
        names = [name for line in frame.shown for name in (line.function, line.file)]
        if any(pattern.matches(name) for name in names):
            return True
    return False
