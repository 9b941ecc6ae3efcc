"""Why a process is larger than what its program holds: the sheet's lines as reasons, the largest
first, each with what to do about it and what that would bring."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from hakmem import look
from hakmem.look import MIB, Sheet
from hakmem.profile_text import size

REASONS = 3
LEAST = MIB  # bytes: less is no reason
COVERED = 0.8  # of the bytes in use; where samples stand for less, what was requested is not known


@dataclass(frozen=True)
class Reason:
    name: str  # stays the same in later versions
    bytes: int
    what: str
    do: str
    brings: int | None  # bytes; None: not known
    purge: bool = False  # that is what to do

    def json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "bytes": self.bytes,
            "what": self.what,
            "do": self.do,
            "brings": self.brings,
        }


@dataclass(frozen=True)
class Why:
    sheet: Sheet
    holds: int  # bytes that are resident; as requested where that is known
    blocks: int  # in use
    reasons: tuple[Reason, ...]  # all, the largest first
    notes: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        sheet = self.sheet
        return {
            "pid": sheet.pid,
            "program": sheet.program,
            "resident": sheet.resident,
            "swapped": sum(sheet.swapped.values()),
            "holds": self.holds,
            "blocks": self.blocks,
            "reasons": [reason.json() for reason in self.reasons],
            "notes": list(self.notes),
        }


def why(sheet: Sheet, threads: int | None = None, code: Sequence[str] = ()) -> Why:
    """`threads`: how many the process has; `code`: the places that allocated most, if known."""
    heap = {line.name: line for line in sheet.heap}
    live = heap["live"].resident
    rounded = _rounded(sheet)
    holds = live - (rounded or 0)
    held = _held(sheet, holds, code)
    reasons = [held, *_of_the_heap(sheet, heap, rounded or 0), *_of_others(sheet, threads)]
    reasons = sorted((one for one in reasons if one.bytes >= LEAST), key=lambda one: -one.bytes)
    reasons = reasons or [held]
    return Why(sheet, holds, _blocks(sheet), tuple(reasons), tuple(_notes(sheet, live, rounded)))


def _blocks(sheet: Sheet) -> int:
    in_classes = sum(row["live"] for row in sheet.seen["classes"])
    return int(in_classes + sheet.seen.get("huge_blocks", 0))


def _rounded(sheet: Sheet) -> int | None:
    """Bytes of blocks in use beyond what was requested; None where that is not known."""
    found = sheet.requested
    if found is None or found.stand_for <= COVERED * max(sheet.live, 1):
        return None
    live = next(line.resident for line in sheet.heap if line.name == "live")
    return round((1 - found.share) * live)


def _notes(sheet: Sheet, live: int, rounded: int | None) -> Iterator[str]:
    if rounded is None and live >= LEAST:
        yield (
            "How much of the blocks in use is rounding to size classes is not known without a heap"
            f" profile: 'hakmem set {sheet.pid} profile=on' counts it from then on."
        )
    limits = [number for number in sheet.seen["limits"].values() if number is not None]
    if limits and sheet.resident > 0.8 * min(limits):
        yield f"The lowest limit of its memory is {size(min(limits))}."


# ---- the heap ----


def _held(sheet: Sheet, holds: int, code: Sequence[str]) -> Reason:
    pid = sheet.pid
    whole = sheet.live
    largest = _classes(sheet, lambda row: row["live"] * row["size"], whole)
    by = f", most allocated by {' and '.join(code)}" if code else ""
    which = "" if code else f", and 'hakmem profile {pid}' which code allocates"
    return Reason(
        "held",
        holds,
        f"the program holds it itself{largest}{by}: it needs that, or does not free it (a leak)",
        f"'hakmem why --seconds 60 {pid}' says whether it grows{which}",
        None,
    )


def _classes(sheet: Sheet, bytes_of: Callable[[dict[str, Any]], int], whole: int) -> str:
    """The size of blocks that has most of something, where that is much of the whole."""
    largest = max(sheet.seen["classes"], key=bytes_of, default=None)
    if largest is None or bytes_of(largest) < whole / 4:
        return ""
    return f" (most in blocks of {largest['size']} bytes)"


def _of_the_heap(sheet: Sheet, heap: dict[str, Any], rounded: int) -> Iterator[Reason]:
    pid = sheet.pid
    purge = f"'hakmem purge {pid}' returns it now, 'hakmem set {pid} keep_bytes=1M' from then on"
    holes = heap["holes"]
    gain = holes.resident - (holes.could_be if holes.could_be is not None else holes.resident)
    rest = f"else restart it; 'hakmem sheet --sites {pid}' shows which code's blocks keep the pages"
    yield Reason(
        "fragmentation",
        holes.resident,
        "fragmentation: free blocks on pages that also hold blocks in use"
        + _classes(sheet, lambda row: int(row["resident"]["holes"]), holes.resident)
        + "; the kernel takes whole pages only",
        f"let it work: the heap compacts as the program replaces blocks (option compact); {rest}"
        if gain >= LEAST
        else rest.removeprefix("else "),
        gain if gain >= LEAST else None,
    )
    yield Reason(
        "large_kept",
        heap["kept"].resident,
        "freed blocks above 2 MiB, kept for the next ones",
        purge,
        heap["kept"].resident,
        purge=True,
    )
    free = sum(heap[name].resident for name in ("free_pages", "transfer", "slices"))
    yield Reason(
        "free_kept",
        free,
        "free memory that is kept for the next blocks",
        purge,
        free,
        purge=True,
    )
    yield Reason(
        "heap_huge_pages",
        heap["huge_pages"].resident,
        "huge pages of the heap of which parts were never used",
        f"'hakmem purge {pid}'; or start it with 'hakmem run --set huge_pages=off'",
        heap["huge_pages"].resident,
        purge=True,
    )
    living = [cache for cache in sheet.seen["caches"] if cache["living"]]
    more = heap["caches"].resident - len(living) * 64 * 1024
    limit = "start it with 'hakmem run --set thread_bytes=64K'" if more >= LEAST else ""
    fewer = "use fewer threads" if len(living) > 1 or not limit else ""
    yield Reason(
        "thread_caches",
        heap["caches"].resident,
        f"free blocks in the caches of {len(living)} thread{'s' if len(living) != 1 else ''}",
        f"{', or '.join(filter(None, (fewer, limit)))}: a thread that sleeps keeps its blocks until"
        f" it works or ends ('hakmem sheet --threads {pid}' shows each)",
        more if limit else None,
    )
    ends = heap["rounding"].resident
    yield Reason(
        "rounding",
        rounded + ends,
        "rounding: blocks are larger than what the program asked for, up to a size class or a whole"
        " page",
        "ask for sizes of classes (hakmem_good_size), or for several objects in one block",
        rounded + ends,
    )
    yield Reason(
        "metadata",
        heap["metadata"].resident,
        "hakmem's own tables and code",
        "use fewer threads; turn off a heap profile that is on: each sampled block takes memory",
        None,
    )


# ---- what is not the heap's ----

_RUNTIMES = (
    (
        re.compile(r"/(?:lib)?python3[^/]*$"),
        "most likely Python's own heap of small objects",
        "start it with PYTHONMALLOC=malloc, so that these objects are hakmem's, too, and go back"
        " when they are freed",
    ),
    (re.compile(r"/libjvm\.so"), "most likely Java's heap", "limit it with java -Xmx"),
    (
        re.compile(r"/(?:node|libnode[^/]*)$"),
        "most likely V8's heap",
        "limit it with node --max-old-space-size",
    ),
    (
        re.compile(r"/lib(?:jemalloc|tcmalloc|mimalloc|snmalloc)[^/]*\.so"),
        "most likely of the other allocator that it has loaded",
        "'hakmem doctor' says which code calls it",
    ),
)


def _runtime(sheet: Sheet) -> tuple[str, str]:
    names = {mapping["name"] for mapping in sheet.seen["mappings"]}
    for pattern, what, do in _RUNTIMES:
        if any(pattern.search(name) for name in names):
            return what, do
    return (
        "an allocator of its own, a runtime, or buffers",
        "only its own settings make it less: hakmem does not manage it",
    )


def _static(mappings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What follows the program's own file, which is mapped lowest. What follows a library's may be
    anything that was mapped there."""
    files = [one for one in mappings if one["kind"] == "file"]
    own = min(files, key=lambda one: int(one["start"]), default={"name": ""})["name"]
    ends = {one["start"] + one["bytes"] for one in files if one["name"] == own}
    return [one for one in mappings if one["start"] in ends and not one["name"]]


def _of_others(sheet: Sheet, threads: int | None) -> Iterator[Reason]:
    mappings = [one for one in sheet.seen["mappings"] if one["resident"] > one["heap"]]
    static = _static(mappings)
    anonymous = [one for one in mappings if one["kind"] == "anonymous" and one not in static]
    huge = sum(one["huge_pages"] for one in anonymous)
    rest = sum(one["resident"] - one["heap"] for one in anonymous) - huge
    yield Reason(
        "static",
        sum(one["resident"] for one in static),
        "static variables of the program",
        "nothing without changing the program",
        None,
    )
    what, do = _runtime(sheet)
    yield Reason(
        "other_allocator",
        rest,
        f"memory that the program mapped itself, not by malloc: {what}",
        do,
        None,
    )
    yield Reason(
        "huge_pages",
        huge,
        "huge pages in memory that the program mapped itself: one byte in use takes 2 MiB",
        "have it map less, or without madvise(MADV_HUGEPAGE); where the setting is 'always', write"
        " madvise to /sys/kernel/mm/transparent_hugepage/enabled",
        None,
    )
    files: dict[str, int] = {}
    for one in mappings:
        if one["kind"] == "file":
            files[one["name"]] = files.get(one["name"], 0) + one["resident"] - one["heap"]
    largest = max(files, key=lambda name: files[name], default="")
    shared = re.match(r"/dev/shm/|/memfd:|/SYSV|/dev/zero", largest)
    yield Reason(
        "files",
        sum(files.values()),
        f"files that it has mapped, most of {_short(largest)}: {size(files.get(largest, 0))}",
        "it is shared memory: it stays until the program unmaps it"
        if shared
        else "nothing: the kernel drops or writes back such pages when memory is needed; those of a"
        " file in memory (tmpfs) stay until it is unmapped and removed",
        None,
    )
    stacks = sum(one["resident"] for one in mappings if one["kind"] == "stack")
    of = "" if threads is None else f" of {threads} thread{'s' if threads > 1 else ''}"
    yield Reason(
        "stacks",
        stacks,
        f"stacks{of}, as deep as they ever were in use",
        "use fewer threads, or less on a stack: large arrays, deep recursion",
        None,
    )
    swapped = sum(sheet.swapped.values())
    yield Reason(
        "swap",
        swapped,
        f"in swap besides what is resident, {size(sheet.swapped['heap'])} of it of the heap",
        "the machine had too little memory: it comes back when the program touches it",
        None,
    )


def _short(name: str) -> str:
    return look.plain(PurePath(name).name or name or "?")


# ---- text ----


def lines(found: Why, most: int = REASONS) -> Iterator[str]:
    sheet = found.sheet
    known = "" if _rounded(sheet) is None else " that it asked for"
    yield (
        f"{sheet.program} (PID {sheet.pid}): {size(sheet.resident)} resident; the program holds "
        f"{size(found.holds)}{known} in {found.blocks:,} block{'s' if found.blocks != 1 else ''}"
    )
    shown = found.reasons[:most]
    for number, one in enumerate(shown, 1):
        share = 100 * one.bytes / max(sheet.resident, 1)
        yield f"{number}. {size(one.bytes)} ({share:.0f}%): {one.what}"
        brings = "" if one.brings is None else f"; brings up to {size(one.brings)}"
        yield f"   do: {one.do}{brings}"
    left = found.reasons[most:]
    if left:
        yield f"Smaller: {', '.join(f'{one.name} {size(one.bytes)}' for one in left)}"
    yield from found.notes


def threads_of(pid: int) -> int | None:
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir()))
    except OSError:
        return None
