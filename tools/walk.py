#!/usr/bin/env python3
"""Makes docs/walk.md: how much of src/ a reader meets who follows malloc and free, and how many
kinds there are of what makes it much.

Usage: tools/walk.py [--check]; --check writes nothing, and fails when a list below names a function
that src/ does not have. The page has the figures of one commit, which it names.

The walk begins at a function and reads each function once, depth first, in the order of the calls
in its text (tools/call_graph.py). A *room* is a file, a *stay* a run of functions of one file; the
way back to a caller is not counted.

Modes. A gate is a function that is not called, or does nothing, unless a condition holds: `GATES`
lists them by condition. In a mode some conditions hold, and the walk does not go through the gates
of the others. What is left are the branches that a call may take in that mode if nothing is wrong
with it and its thread has called malloc before. It counts what happens seldom like what happens in
each call. "everything" goes through all gates.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import laws
from tools.call_graph import Graph, call_graph, file_of, function_name

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PAGE = ROOT / "docs/walk.md"

STARTS = {"`malloc`": "api/malloc.c:hakmem_malloc", "`free`": "api/malloc.c:hakmem_free"}
GATES = {
    "the start of the process or of a thread": """
        life/life.c:thread_cache_make life/life.c:thread_ask_for_end
        life/scavenger.c:scavenger_start""",
    "a report": """
        report/report.c:report_* report/report.c:lock_is_left api/blocks.c:report_*
        life/statistics.c:statistics_no_memory""",
    "a heap profile or guarded blocks": """
        api/sampled.c:sample_due_* api/sampled.c:sampled_* api/sampled.c:guarded_*
        life/profiling.c:* profile/guarded.*:* profile/samples.c:*""",
    "an order from outside": "life/settings.c:orders_obey",
    "recorded": "api/recorded.c:* api/slow.c:malloc_closed api/slow.c:take_counted",
    "hardened": """
        api/harden.c:* front/hardened.c:* heap/hardening.c:* heap/hardening.h:canary_*
        heap/shards.c:slab_harden heap/shards.c:take_any
        back/forbidden.c:forbidden_look back/forbidden.c:forbidden_shut
        back/forbidden.c:forbidden_trim back/huge.c:guarded back/huge.c:guards_give
        back/forbidden.c:huge_guards_map back/slices.c:any_bit
        back/slices.c:slices_take_guarded back/slices.c:superslab_any back/superslabs.c:slot_any""",
    "not hardened": """
        api/slow.c:plain_take api/slow.c:plain_give api/slow.c:plain_free api/slow.c:plain_ready
        api/slow.c:class_take_any api/slow.c:class_seal api/slow.c:class_give_inside
        api/slow.c:stack_give api/slow.c:whole_give front/refill.c:cache_refill
        front/large.c:large_take heap/shards.c:shard_take_aligned""",
}
MODES = {
    "plain": {"not hardened"},
    "hardened": {"hardened"},
    "recorded": {"not hardened", "recorded"},
    "everything": set(GATES),
}

STACKS = ("api/", "front/")  # where a push or pop is one of a stack's
VARIANTS = ("counted", "untold", "past")
DOOR = (
    "life/life.h:thread_cache",
    "os/lock.h:lock_enter",
    "front/cache.h:not_entered",
    "front/owners.c:deferred_put",
    "report/report.c:report_late",
    "api/door.c:give_memory_back",
)
# What keeps the first of two findings.
MERGE = re.compile(
    r"what == MISUSE_NONE\)\s+[\w>.-]*found = |what != MISUSE_NONE \? \w+ : \w+;", re.MULTILINE
)

# Why free, or malloc too, takes the slow path though the stack could serve it; and where this is
# decided.
CLOSED = {
    "the thread has no cache yet": "life/life.c:thread_cache_make",
    "the thread has ended": "front/owners.c:cache_delete",
    "the thread has not used the class yet": "front/stacks.c:cache_reset",
    "the first frees of a new stack go to their slabs": "front/stacks.c:stack_begin",
    "all frees are checked": "front/cache.c:caches_take_away",
    "the thread rests": "front/refill.c:cache_rest",
    "there is more to give back than one call may": "api/door.c:settle_visits",
    "sizes are checked, the heap is hardened, or an order waits": "front/cache.c:cache_settle",
    "calls are recorded, profiled or guarded": "heap/offsets.c:classes_close",
}

# The rules that decide when memory goes back and how much; and where each acts.
RULES: dict[str, tuple[str, ...]] = {
    "much lies idle": ("life/purge.c:find_much", "learn/compaction.h:look_at_slab"),
    "nobody needed it for a while; by time where there are threads": (
        "life/purge.c:find_old",
        "back/slices.c:slices_idle",
        "back/huge.c:huge_idle",
        "heap/transfer.c:transfers_decay",
        "front/large.c:stacks_age",
        "life/purge.c:purge_by_time",
    ),
    "too much went back in vain, until work has paid for it": (
        "learn/returns.h:returns_below",
        "learn/returns.h:returns_paid",
    ),
    "one call gives back only so much, and calls look only so often": (
        "life/purge.c:purge_step",
        "life/purge.c:set_due",
    ),
    "the heap would grow beyond what was ever in use: what is idle serves first": (
        "back/use.c:use_grown",
        "api/door.h:leave_taken",
    ),
    "limits of memory: containers', the soft, the hard, none left": (
        "life/limits.c:limits_look",
        "life/purge.c:soft_limit_act",
        "back/use.c:use_hold",
        "life/purge.c:purge_beyond_limits",
        "life/purge.c:purge_all",
        "back/slices.c:superslab_spare",
    ),
    "a class compacts": ("heap/slab.c:shard_settle_compaction",),
    "a thread ebbs when it has given back nearly all": ("front/refill.c:cache_settle_ebb",),
    "threads share what stacks may hold; one that only frees keeps less": (
        "learn/share.h:share_at_work",
        "learn/capacity.h:capacity_drains",
    ),
    "a thread ends, or a fork left it behind": (
        "front/owners.c:cache_delete",
        "front/owners.c:orphan_take_in",
    ),
    "the process ends: nothing goes back": ("life/life.c:process_end",),
    "an option changes, or an order comes from outside": (
        "life/purge.c:purge_beyond",
        "life/settings.c:orders_obey",
    ),
    "a hardened heap: freed blocks stay inaccessible for a while": (
        "back/huge.c:stays_open",
        "back/forbidden.c:forbidden_trim",
    ),
}

Row = tuple[object, ...]


def shut(mode: str) -> list[str]:
    """The gates that a walk in this mode does not go through, as patterns."""
    return [
        pattern
        for condition, patterns in GATES.items()
        if condition not in MODES[mode]
        for pattern in patterns.split()
    ]


def matches(function: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(function, pattern) for pattern in patterns)


def walk(graph: Graph, start: str, mode: str) -> list[str]:
    """The functions, as they are read."""
    gates = shut(mode)
    read: dict[str, None] = {}
    ahead = [start]
    while ahead:
        function = ahead.pop()
        if function in read or matches(function, gates):
            continue
        read[function] = None
        ahead += reversed(graph.called(function))
    return list(read)


def stays(functions: list[str]) -> int:
    files = [file_of(function) for function in functions]
    return sum(before != file for before, file in zip([None, *files], files, strict=False))


def missing(graph: Graph) -> Iterator[str]:
    """What the lists name and src/ does not have."""
    for function in (*STARTS.values(), *DOOR, *CLOSED.values(), *chain(*RULES.values())):
        if function not in graph.functions:
            yield f"tools/walk.py: src/ has no function {function}"
    for patterns in GATES.values():
        for pattern in patterns.split():
            if not any(fnmatchcase(function, pattern) for function in graph.functions):
                yield f"tools/walk.py: src/ has no function {pattern}"


def named(graph: Graph, pattern: str, folders: tuple[str, ...] = ("",)) -> list[str]:
    """Names of functions in which the words of the pattern are words."""
    word = re.compile(rf"(?:^|_)(?:{pattern})(?:_|$)")
    found = (f for f in graph.functions if f.startswith(folders))
    return sorted({name for name in map(function_name, found) if word.search(name)})


def merges() -> Counter[Path]:
    """By file."""
    counts = {file: len(MERGE.findall(file.read_text())) for file in SOURCE.rglob("*.[ch]")}
    return Counter({file: count for file, count in counts.items() if count})


def fields_of_cache() -> int:
    text = re.sub(r"/\*.*?\*/", "", (SOURCE / "front/cache.h").read_text(), flags=re.DOTALL)
    body = text.split("\nstruct cache {\n")[1].split("\n};")[0]
    return sum(declared.count(",") + 1 for declared in body.split(";") if declared.strip())


def table(head: Row, rows: Iterable[Row], numbers: int = 0) -> str:
    """With so many columns of numbers at the end."""
    line = ("---",) * (len(head) - numbers) + ("---:",) * numbers
    lines = [f"| {' | '.join(map(str, row))} |\n" for row in (head, *rows)]
    return "".join([lines[0], f"|{'|'.join(line)}|\n", *lines[1:]])


def listing(what: Mapping[str, str]) -> str:
    return table(("what", "where"), ((words, f"`{where}`") for words, where in what.items()))


def codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def of_rules() -> str:
    return table(("rule", "where it acts"), ((rule, codes(where)) for rule, where in RULES.items()))


def commit() -> str:
    """The last that changed src/."""

    def git(*command: str) -> str:
        done = subprocess.run(
            ["git", *command], cwd=ROOT, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    changed = git("status", "--porcelain", "src", "include")
    return git("log", "-1", "--format=%h of %cs", "--", "src", "include") + (
        ", and changes that are in no commit" if changed else ""
    )


def of_walks(graph: Graph) -> str:
    rows = []
    for name, start in STARTS.items():
        for mode in MODES:
            read = walk(graph, start, mode)
            rows.append((name, mode, len(read), len(set(map(file_of, read))), stays(read)))
    return table(("from", "mode", "functions", "rooms", "stays"), rows, 3)


def of_rooms(graph: Graph) -> str:
    rooms = Counter(map(file_of, graph.functions))
    (file, most), *_ = rooms.most_common(1)
    return f"""\
In all, {len(graph.functions)} functions are in {len(rooms)} rooms: {median(rooms.values()):g} in \
the median room, {most} in `{file}`, the most. `api/slow.c` has {rooms["api/slow.c"]}.
"""


def of_names(graph: Graph) -> str:
    kinds = {
        "push": named(graph, "push", STACKS),
        "pop": named(graph, "pop", STACKS),
        **{f"_{word}": named(graph, word) for word in VARIANTS},
    }
    rows = ((f"`{word}`", codes(names), len(names)) for word, names in kinds.items())
    return table(("name with", "functions", "count"), rows, 1)


def of_door(graph: Graph) -> str:
    sites = {function_name(function): graph.sites(function) for function in DOOR}
    merged = merges()
    rows: list[Row] = [
        (f"`{name}`", len(calls), len({site.file for site in calls}))
        for name, calls in sites.items()
    ]
    rows.append(("merges of two findings", merged.total(), len(merged)))
    return table(("what", "sites", "files"), rows, 2)


def of_laws() -> str:
    groups = laws.groups(laws.TABLE.read_text())
    rows: list[Row] = [(title, len(members)) for title, members in groups.items()]
    rows.append(("all", sum(map(len, groups.values()))))
    return table(("group", "laws"), rows, 1)


def of_gates() -> str:
    rows = []
    for condition, patterns in GATES.items():
        modes = [mode for mode, conditions in MODES.items() if condition in conditions]
        rows.append((condition, ", ".join(modes), codes(patterns.split())))
    return table(("condition", "holds in", "gates"), rows)


def page(graph: Graph) -> str:
    return f"""\
<!-- Made by tools/walk.py from src/, for one commit: run it to make the page anew. -->
# The walk: what a reader of malloc and free meets

How much of `src/` you read if you follow `malloc` and `free`, and how many kinds there are of what
makes it much. The figures are for judging whether a change makes the source simpler. They are those
of commit {commit()}; `tools/walk.py` takes them anew.

## From malloc and from free

The walk reads each function once, depth first, in the order of the calls in its text. A *room* is a
file, and a *stay* is a run of functions of one file. gcc finds the calls in a build where nothing
is inlined. Calls through pointers, and C++, are left out.

{of_walks(graph)}
A *gate* is a function that is not called, or does nothing, unless a condition holds. The walk in a
mode goes only through the gates whose conditions hold in it. So it has the branches that a call may
take in that mode, often or seldom, if nothing is wrong with it and its thread has called `malloc`
before.

{of_gates()}
{of_rooms(graph)}
## Push, pop and variants of names

For `push` and `pop`: the functions in `src/api` and `src/front`.

{of_names(graph)}
## The door

What a function calls to have the thread's cache and a lock, to do without them, and to say
afterwards what it found. A merge keeps the first of two findings.

{of_door(graph)}
## What closes the fast path

There are {len(CLOSED)} reasons for which `free`, or `malloc` too, takes the slow path though the
thread's stack could serve it.

{listing(CLOSED)}
## When memory goes back

{len(RULES)} rules decide when memory goes back to the kernel, and how much. They act at
{sum(map(len, RULES.values()))} places.

{of_rules()}
## Numbers

`struct cache` has {fields_of_cache()} fields. The [laws](laws.md):

{of_laws()}"""


def main() -> int:
    if sys.argv[1:] not in ([], ["--check"]):
        print("usage: tools/walk.py [--check]", file=sys.stderr)
        return 2
    graph = call_graph(SOURCE)
    wrong = list(missing(graph))
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    if not sys.argv[1:]:
        PAGE.write_text(page(graph))
    return 0


if __name__ == "__main__":
    sys.exit(main())
