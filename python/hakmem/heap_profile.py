"""A heap profile as the library writes it: the text format of gperftools, and what it says.

Each site is a line, `live blocks: live bytes [total blocks: total bytes] @ address address ...`,
followed by a comment of hakmem's own, `# peak blocks: bytes samples live total errors live total
peak`, where the errors are standard errors of bytes, which older files don't have, and where the
program named the call by `# name NAME`, and where code of no file called by `# since TIME`: when
follows, with the blocks in use by the size of their class (look/samples.h). A file of a search for
leaks has one more line for each site, `# leaks` and eight numbers. The figures are estimates for
the whole program, made from the samples. Addresses are those to which the calls return, the
innermost first. After the sites come mappings: of the modules that were seen in stacks, each with a
comment `# build-id START ID`, and then the text of /proc/PID/maps. Before them `# started N ms`
says when the process began, and `# written N ms` when this was, by the clock of files. The former
count where they overlap: a module may be unloaded, and its addresses another's. Functions of
scripts have addresses, too, where no code can be: a mapping there is of one line of a script, and
named `[python:FILE:LINE:FUNCTION]`. At the end names may stand that were found when the file was
written, a line for each function at a call, the innermost inlined first: `# symbol CALL FUNCTION
FILE LINE`, with tabs between.
"""

from __future__ import annotations

import bisect
import functools
import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from hakmem.arguments import missing_status

MOST_BYTES = 256 * 2**20
FIGURES = (
    "inuse_objects", "inuse_space", "alloc_objects", "alloc_space", "peak_objects", "peak_space",
)  # fmt: skip
Figures = tuple[float, float, float, float, float, float]  # in the order of FIGURES
Samples = tuple[float, float, float]  # in use, allocated, at the peak

_N = "([0-9]{1,18})"  # what 64 bits with a sign surely hold
_HEAD = re.compile(rf"heap profile: +{_N}: +{_N} +\[ *{_N}: +{_N}\] @ heapprofile")
_ANY_HEAD = re.compile(r"heap profile:.*@ *(\S*)|heap_v2/")
_OWN = re.compile(
    rf"# hakmem rate {_N} lost {_N} memory {_N}(?: pid {_N})?(?: most {_N} allocated {_N})?"
)
_MARK = re.compile(rf"# mark {_N} ms ago count {_N} in use {_N} name (.+)")
_SITE = re.compile(rf"{_N}: {_N} \[{_N}: {_N}\] @")
_ADDRESS = re.compile("0x[0-9a-f]{1,16}")
_COUNT = re.compile(r"# sites ([0-9]{1,7})")
_MORE = re.compile(rf"# peak {_N}: {_N} samples {_N} {_N}(?: errors {_N} {_N} {_N})?")
_NAME = re.compile(r"# name (.+)", re.DOTALL)
_SINCE = re.compile(rf"# since {_N}")
_F = r"([0-9.]{1,40}(?:e[+-][0-9]{1,3})?)"
_SIZE = re.compile(rf"{_N}:{_F}:{_F}:{_N}")
_SIZES = "# sizes "
_LEAKS = re.compile("# leaks" + 8 * f" {_N}")
_MAPPING = re.compile(
    r"([0-9a-f]{1,16})-([0-9a-f]{1,16}) ([-rwxsp]{4}) ([0-9a-f]{1,16}) \S+ ([0-9]{1,20}) *(.*)"
)
_BUILD_ID = re.compile("# build-id ([0-9a-f]{1,16}) ((?:[0-9a-f]{2}){2,64})")
_TIME = re.compile(rf"# (started|written) {_N} ms")
_SYMBOL = re.compile("# symbol ([0-9a-f]{1,16})\t([^\t]*)\t([^\t]*)\t([0-9]{1,10})")
_SCRIPT = re.compile(r"\[python:([^:]*):([0-9]{1,10}):([^:]*)\]")
SCRIPTS = 2**60  # the first address of their functions
# Added to addresses that were a module's once, and are code of no file now (profile/noted.h).
NOBODYS = 2**59 + 2**58
APART = 2**58  # and of functions that had one address at two times (perf_map.py)
MAPPED = "MAPPED_LIBRARIES:"
COMMENT = "# "
DELETED = " (deleted)"


_BYTE = re.compile("[\udc80-\udcff]")


def escaped(text: str) -> str:
    """Bytes that are no UTF-8, decoded with surrogateescape, by their numbers."""
    if text.isascii():
        return text
    return _BYTE.sub(lambda byte: f"\\x{ord(byte[0]) - 0xDC00:02x}", text)


def plain(address: int) -> int:
    """The address that code had, of one that is told from a module's."""
    return address - NOBODYS if NOBODYS <= address < SCRIPTS else address


class Made(Protocol):
    """Names of code that is in no file."""

    def function(self, address: int) -> Symbol | None: ...


class NoProfile(Exception):
    """A line for the user: the file is no heap profile, or is damaged, or can't be read."""

    def __init__(self, line: str, status: int = 1) -> None:
        super().__init__(line)
        self.status = status


@dataclass(frozen=True)
class Mapping:
    start: int
    end: int
    offset: int  # in the file
    path: str  # as it is shown; empty, or [heap] and the like, where it is no file
    executable: bool
    deleted: bool  # the file was removed or replaced while the process ran, or never had a name
    build_id: str = ""  # of the module in memory; empty: not known
    _file: str = ""

    @property
    def is_file(self) -> bool:
        return self.path.startswith("/")

    @property
    def file(self) -> str:
        """The path by which to open it: it need not be text."""
        return self._file or self.path

    def at(self, file: str) -> Mapping:
        return replace(self, path=escaped(file), _file=file)


@dataclass(frozen=True)
class Script:
    """A place in a script."""

    function: str
    file: str
    line: int  # 0 where it is not known


Symbol = tuple[str, str, int]  # a function, its file, and the line, 0 where it is not known


@dataclass(frozen=True)
class Size:
    """Blocks in use of one size, that of their class."""

    size: int
    blocks: float  # an estimate, and the variance of its error
    variance: float


@dataclass(frozen=True)
class Leaks:
    """Of one site, how many blocks and bytes each."""

    lost: tuple[int, int]  # that nothing refers to
    through: tuple[int, int]  # of any site: only these refer to them, over some steps
    indirect: tuple[int, int]  # that only lost ones refer to
    reachable: tuple[int, int]


@dataclass(frozen=True)
class Site:
    """What one call stack allocated."""

    stack: tuple[int, ...]  # where the calls return, the innermost first
    figures: Figures
    errors: Figures  # standard errors of these
    name: str = ""  # that the program gave the call
    samples: Samples = (0, 0, 0)
    sizes: tuple[Size, ...] = ()  # where the reader was asked for them
    leaks: Leaks | None = None  # where leaks were searched for
    since: int = 0  # when it was first seen, ns of CLOCK_MONOTONIC; 0: not known


@dataclass(frozen=True)
class Mark:
    """A moment to which the program or `hakmem mark` gave a name."""

    name: str
    count: int  # how often; the others are of the last one
    ago: float  # seconds before the profile was written
    in_use: int  # bytes


@dataclass(frozen=True)
class Profile:
    text: str
    rate: int  # bytes for each sample, on average
    lost: int  # samples for which there was no memory
    sites: tuple[Site, ...]
    mappings: tuple[Mapping, ...]  # in the order of addresses
    pid: int | None = None  # as the process knew it
    most: int | None = None  # bytes in use at once; None where only the sites' peaks are known
    allocated: int | None = None  # blocks; both since the process began, or since its last fork
    # Names that the file has: of a call, function, file and line, the innermost inlined first.
    symbols: dict[int, tuple[Symbol, ...]] = field(default_factory=dict)
    made: Made | None = None  # names of code that is in no file
    marks: tuple[Mark, ...] = ()
    started: float = 0.0  # the process, as of time.time(); 0: not known
    written: float = 0.0  # the same of this

    @functools.cached_property
    def scripts(self) -> dict[int, Script]:
        """By the address of a call there."""
        return {one.start: script for one in self.mappings if (script := _script(one))}

    @property
    def calls(self) -> set[int]:
        """Addresses, not where they return."""
        return {address - 1 for site in self.sites for address in site.stack if address > 0}

    def mapping_of(self, address: int) -> Mapping | None:
        at = bisect.bisect_right(self.mappings, address, key=lambda one: one.start) - 1
        if at >= 0 and address < self.mappings[at].end:
            return self.mappings[at]
        return None


def read(path: Path) -> Profile:
    """Raises NoProfile."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # the latter of names that no file can have
        said = getattr(error, "strerror", None) or str(error)
        raise NoProfile(f"{path}: {said}", missing_status(error)) from error
    if len(content) > MOST_BYTES:
        raise NoProfile(f"{path}: larger than {MOST_BYTES // 2**20} MiB, so no heap profile")
    return parse(content.decode(errors="surrogateescape"), str(path))


def parse(text: str, name: str) -> Profile:
    """`text`: bytes, decoded with surrogateescape; `name` is what it calls it. Raises NoProfile."""
    if not text:
        raise NoProfile(f"{name}: empty")
    lines = escaped(text).split("\n")
    head = _HEAD.fullmatch(lines[0])
    if head is None:
        other = _ANY_HEAD.match(lines[0])
        raise NoProfile(
            f"{name}: a heap profile of another kind, which 'pprof' may read"
            if other and other[1] != "heapprofile"
            else f"{name}: not a heap profile of hakmem"
        )
    # Every line ends with a line feed; what is after the last one is empty.
    if lines.pop():
        raise NoProfile(f"{name}: truncated in line {len(lines) + 1}")
    own = _OWN.fullmatch(lines[1]) if len(lines) > 1 else None
    if own is None:
        raise NoProfile(
            f"{name}: damaged in line 2: expected '# hakmem rate ...'"
            if len(lines) > 1
            else f"{name}: truncated after line 1"
        )
    try:
        at = lines.index(MAPPED)
    except ValueError:
        raise NoProfile(f"{name}: truncated: it has no line '{MAPPED}'") from None
    rate = max(int(own[1]), 1)
    first = 2
    marks = []
    while first < at and (found := _MARK.fullmatch(lines[first])):
        marks.append(Mark(found[4], int(found[2]), int(found[1]) / 1000, int(found[3])))
        first += 1
    sites = _sites(lines[first:at], first + 1, name)
    said = [line for line in lines[at + 1 :] if line.startswith(COMMENT)]
    where = mappings(text.split("\n")[at + 1 : -1], at + 2, name)
    times = {one[1]: int(one[2]) / 1000 for line in said if (one := _TIME.fullmatch(line))}
    most, allocated = (int(own[5]), int(own[6])) if own[5] else (None, None)
    return Profile(
        text=text,
        rate=rate,
        lost=int(own[2]),
        sites=_with_peak(sites),
        mappings=where,
        pid=int(own[4]) if own[4] else None,
        most=most,
        allocated=allocated,
        symbols=_symbols(said),
        marks=tuple(marks),
        started=times.get("started", 0.0),
        written=times.get("written", 0.0),
    )


def _script(mapping: Mapping) -> Script | None:
    found = _SCRIPT.fullmatch(mapping.path) if mapping.start >= SCRIPTS else None
    return found and Script(_unescaped(found[3]), _unescaped(found[1]), int(found[2]))


def _unescaped(name: str) -> str:
    """Of bytes that are no UTF-8, and of control characters, their numbers."""

    def letter(match: re.Match[str]) -> str:
        code = int(match[1], 8)
        return chr(code) if 0x20 <= code < 0x7F else f"\\x{code:02x}"

    return re.sub(r"\\([0-3][0-7]{2})", letter, name).replace("\n", r"\x0a")


class _Addresses(dict[str, int]):
    """Of the stacks of a file, which have most addresses in common: each is decoded once."""

    def __missing__(self, word: str) -> int:
        if _ADDRESS.fullmatch(word) is None:
            raise ValueError(word)
        self[word] = int(word, 16)
        return self[word]

    def of(self, words: str) -> tuple[int, ...] | None:
        """Each is after a space; else None."""
        try:
            return tuple(map(self.__getitem__, words.split(" ")[1:])) if words[:1] != "0" else None
        except ValueError:
            return None


def _sites(lines: list[str], first: int, name: str) -> list[Site]:
    """The lines end with how many sites there are, and an empty line."""
    count = _COUNT.fullmatch(lines[-2]) if len(lines) > 1 and not lines[-1] else None
    if count is None:
        raise NoProfile(f"{name}: damaged: expected '# sites ...' before '{MAPPED}'")
    sites: list[Site] = []
    addresses = _Addresses()
    at = 0
    while at < len(lines) - 2:
        site = _SITE.match(lines[at])
        stack = site and addresses.of(lines[at][site.end() :])
        more = _MORE.fullmatch(lines[at + 1]) if at + 1 < len(lines) else None
        if site is None or stack is None or more is None:
            wrong = at + first + (stack is not None)
            raise NoProfile(f"{name}: damaged in line {wrong}: expected the figures of a site")
        live, live_bytes, total, total_bytes = (int(site[i]) for i in range(1, 5))
        peak, peak_bytes, live_samples, total_samples = (int(more[i]) for i in range(1, 5))
        figures = (live, live_bytes, total, total_bytes, peak, peak_bytes)
        peak_samples = total_samples * peak / total if total else 0
        samples = (live_samples, total_samples, peak_samples)
        said = None if more[5] is None else (int(more[5]), int(more[6]), int(more[7]))
        at += 2
        called = _NAME.fullmatch(lines[at]) if at < len(lines) else None
        at += called is not None
        site_name = "" if called is None else called[1]
        seen = _SINCE.fullmatch(lines[at]) if at < len(lines) else None
        at += seen is not None
        sizes: tuple[Size, ...] = ()
        if at < len(lines) - 2 and lines[at].startswith(_SIZES):
            sizes = _sizes(lines[at], f"{name}: damaged in line {at + first}")
            at += 1
        searched = _LEAKS.fullmatch(lines[at]) if at < len(lines) else None
        at += searched is not None
        errors = _errors(figures, samples, said)
        since = int(seen[1]) if seen else 0
        found = _leaks(searched)
        sites.append(Site(stack, figures, errors, site_name, samples, sizes, found, since))
    if len(sites) != int(count[1]):
        raise NoProfile(f"{name}: damaged: it has {len(sites)} sites, and says {count[1]}")
    return sites


def _sizes(line: str, wrong: str) -> tuple[Size, ...]:
    sizes = []
    for word in line.removeprefix(_SIZES).split(" "):
        one = _SIZE.fullmatch(word)
        try:
            assert one is not None
            sizes.append(Size(int(one[1]), float(one[2]), float(one[3])))
        except (AssertionError, ValueError):
            raise NoProfile(f"{wrong}: expected sizes of blocks") from None
    return tuple(sizes)


def _leaks(searched: re.Match[str] | None) -> Leaks | None:
    if searched is None:
        return None
    n = [int(number) for number in searched.groups()]
    return Leaks((n[0], n[1]), (n[2], n[3]), (n[4], n[5]), (n[6], n[7]))


def _errors(
    figures: tuple[int, int, int, int, int, int],
    samples: Samples,
    said: tuple[int, int, int] | None,
) -> Figures:
    """Of bytes what the file says. Else: each sample stands for 1 / p blocks, so n samples of b
    blocks were made with p = n / b, and the relative error of their sum is sqrt((1 - p) / n): that
    of a random count for small blocks, and none for blocks that are always sampled."""
    errors = []
    for which, n in enumerate(samples):
        blocks, size = figures[2 * which], figures[2 * which + 1]
        missed = max(1 - n / blocks, 0.0) if blocks else 1.0
        relative = math.sqrt(missed / max(n, 1))
        errors += [blocks * relative, size * relative if said is None else said[which]]
    return (errors[0], errors[1], errors[2], errors[3], errors[4], errors[5])


def _with_peak(sites: list[Site]) -> tuple[Site, ...]:
    """The library notes the peak now and then, so memory that only grows has its peak at the end:
    what is in use."""
    if sum(site.figures[5] for site in sites) >= sum(site.figures[1] for site in sites):
        return tuple(sites)
    return tuple(
        replace(
            site,
            figures=(*site.figures[:4], *site.figures[:2]),
            errors=(*site.errors[:4], *site.errors[:2]),
            samples=(*site.samples[:2], site.samples[0]),
        )
        for site in sites
    )


def _symbols(comments: list[str]) -> dict[int, tuple[Symbol, ...]]:
    found: dict[int, list[Symbol]] = defaultdict(list)
    for comment in comments:
        match = _SYMBOL.fullmatch(comment)
        if match is not None:
            found[int(match[1], 16)].append((match[2], match[3], int(match[4])))
    return {call: tuple(symbols) for call, symbols in found.items()}


def symbol_line(call: int, symbol: Symbol) -> str:
    """As a file has it."""
    function, file, line = (re.sub(r"[\t\n\r]", " ", str(word)) for word in symbol)
    return f"# symbol {call:x}\t{function}\t{file}\t{line}"


def with_symbols(profile: Profile, lines: Iterable[str]) -> str:
    """The text of the file with names at its end."""
    text = profile.text.removesuffix("\n").split("\n")  # other line ends may be part of names
    own = (line for line in text if not line.startswith("# symbol "))
    return "".join(f"{line}\n" for line in (*own, *lines))


def mappings(lines: list[str], first: int, name: str) -> tuple[Mapping, ...]:
    """Where some overlap, those count that were noted of a module when it was there."""
    noted: list[Mapping] = []
    last: list[Mapping] = []
    build_ids = {}
    for number, line in enumerate(lines, first):
        match = _MAPPING.fullmatch(line)
        if match is None and line.startswith(COMMENT):
            said = _BUILD_ID.fullmatch(line)
            if said is not None:
                build_ids[int(said[1], 16)] = said[2]
            continue
        if match is None:
            raise NoProfile(f"{name}: damaged in line {number}: expected a mapping")
        path = match[6].replace("\\012", "\n")  # the kernel writes line feeds so
        one = Mapping(
            int(match[1], 16),
            int(match[2], 16),
            int(match[4], 16),
            escaped(path.removesuffix(DELETED)),
            "x" in match[3],
            path.endswith(DELETED),
            _file=path.removesuffix(DELETED),
        )
        # In a file system each file has another number than 0.
        (noted if one.is_file and int(match[5]) == 0 else last).append(one)
    found = _joined(noted, last) if noted else last
    ordered = tuple(sorted(found, key=lambda one: one.start))
    if not build_ids:
        return ordered
    return tuple(replace(one, build_id=build_ids.get(one.start, "")) for one in ordered)


def _joined(noted: list[Mapping], last: list[Mapping]) -> list[Mapping]:
    """The loader may know another name of the same file: then the kernel's counts."""
    by_start = {one.start: one for one in last}
    gone = [one for one in noted if not _is_same_file(one, by_start.get(one.start))]
    gone = [one.at(os.path.normpath(one.file)) for one in gone]
    if not gone:
        return last
    gone.sort(key=lambda one: one.start)
    starts = [one.start for one in gone]

    def parts(one: Mapping) -> Iterator[Mapping]:
        """What of it is none of theirs."""
        begin = one.start
        for other in gone[max(bisect.bisect_right(starts, begin) - 1, 0) :]:
            if other.start >= one.end:
                break
            if other.end <= begin:
                continue
            if begin < other.start:
                yield replace(
                    one, start=begin, end=other.start, offset=one.offset + begin - one.start
                )
            begin = other.end
        if begin < one.end:
            yield replace(one, start=begin, offset=one.offset + begin - one.start)

    return [*gone, *(part for one in last for part in parts(one))]


def _is_same_file(noted: Mapping, other: Mapping | None) -> bool:
    if other is None or not other.is_file or other.offset != noted.offset:
        return False
    names = Path(noted.file), Path(other.file)
    return names[0].name == names[1].name or os.path.realpath(names[0]) == os.path.realpath(
        names[1]
    )
