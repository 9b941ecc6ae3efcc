"""Checks the rules of src/: nothing includes upwards or in circles, files stay small, the system
stays below, numbers of judgement stay in the table of laws, and each of them is used; of the
command's Python part, python/: files stay small, what finds out knows nothing of what asks; and
that nothing outside yardstick/ uses what is in it, but the commands for it. Of a build's objects:
that none refers to what an object of a higher folder defines, whoever declares it.

Usage: check_layers.py [folders, by default this repository's]
       check_layers.py --objects OBJECT..., each with its source's path after a folder NAME.dir
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

# A file may include from its own folder and from lower floors. The public header stands beside
# front: api, which implements it, may see it, and who counts what it shows.
FLOOR = {
    "base": 0,
    "os": 1,
    "learn": 1,
    "back": 2,
    "heap": 3,
    "profile": 3,
    "record": 3,
    "front": 4,
    "report": 5,
    "options": 5,
    "sheet": 5,
    "life": 6,
    "hakmem": 4,
    "api": 7,
}
KNOWS_THE_SYSTEM = {"base", "os", "sheet"}
# The same of the Python part, a module each.
MODULE_FLOOR = {
    "__init__": 0,
    "arguments": -1,  # all others may use it
    "table": 0,
    "callgrind": 0,
    "causes": 0,
    "elf": 0,
    "library": 0,
    "extras": 1,
    "folders": 0,
    "interrupts": 0,
    "look": 1,
    "modules": 0,
    "heap_profile": 0,
    "perf_map": 1,
    "debuginfod": 0,
    "naming": 0,
    "wrappers": 0,
    "runtimes": 0,
    "symbols": 1,
    "profile_difference": 2,
    "profile_text": 2,
    "profile_html": 3,
    "pprof": 2,
    "profile_command": 4,
    "recording": 1,
    "ring": 2,
    "events": 2,
    "live": 3,
    "history": 4,
    "moments": 4,
    "touched": 5,
    "ops": 6,
    "checkpoints": 4,
    "traced": 5,
    "trace_text": 6,
    "trace_page": 6,
    "heaptrack": 4,
    "outputs": 3,
    "record_command": 6,
    "trace_command": 7,
    "replay_command": 4,
    "tune_command": 4,
    "leaks": 2,
    "leaks_command": 4,
    "budgets": 3,
    "budgets_command": 5,
    "window": 3,
    "pytest_plugin": 4,
    "rights": 0,
    "variants": 1,
    "bindings": 1,
    "process": 2,
    "trace": 3,
    "malloc_conf": 0,
    "judge": 3,
    "options": 3,
    "doctor": 4,
    "bench_command": 4,
    "compare_command": 4,
    "rows": 2,
    "metrics": 3,
    "dashboard": 0,
    "exporter_command": 4,
    "sites": 3,
    "why": 3,
    "why_command": 4,
    "sheet_command": 4,
    "hint": 0,
    "once": 4,
    "top_command": 5,
    "purge_command": 4,
    "mark_command": 4,
    "set_command": 4,
    "cli": 6,
    "__main__": 7,
}
MOST_LINES = 600
SUFFIXES = {".c", ".h", ".cc", ".def", ".inc", ".S"}

INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]*)"|\s*#\s*include\s*<(hakmem/[^>]*)>')
SYSTEM_TEST = re.compile(
    r"\s*#\s*(?:if|ifdef|ifndef|elif|elifdef|elifndef)\b.*?"
    r"\b(_*(?:linux|unix|APPLE|WIN32|WIN64|ANDROID|FreeBSD|GLIBC|x86_64|amd64|i386|aarch64|arm|"
    r"riscv|powerpc64|s390x|loongarch\w*)_*)\b"
)


def violations(root: Path) -> Iterator[str]:
    """Yields one "file:line: what; rule" for each broken rule."""
    for path in sorted(p for p in root.rglob("*") if p.suffix in SUFFIXES):
        folder = path.relative_to(root).parts[0]
        if folder not in FLOOR:
            yield f"{path}:1: '{folder}' has no floor; the folders are {', '.join(FLOOR)}"
            continue
        lines = path.read_text().splitlines()
        if len(lines) > MOST_LINES:
            yield f"{path}:{len(lines)}: {len(lines)} lines; a file has at most {MOST_LINES}"
        for number, line in enumerate(lines, 1):
            if include := INCLUDE.match(line):
                name = include[1] or include[2]
                other = name.split("/")[0]
                if "/" not in name or other not in FLOOR:
                    yield f'{path}:{number}: includes "{name}"; write the path relative to src/'
                elif other != folder and FLOOR[other] >= FLOOR[folder]:
                    yield (
                        f'{path}:{number}: {folder}/ (floor {FLOOR[folder]}) includes "{name}" '
                        f"(floor {FLOOR[other]}); only the same folder and lower floors may be"
                    )
            if folder not in KNOWS_THE_SYSTEM and (test := SYSTEM_TEST.match(line)):
                yield (
                    f"{path}:{number}: tests {test[1]}; conditions on the system or the processor "
                    "belong in base/ and os/"
                )


# What decides how much is kept, how long, by whom and how fast it goes back is a law: a line of
# src/learn/laws.def. In these folders a macro with a number, a number of bytes, and a factor,
# divisor, bound or first value above 1 are laws in the wrong place, unless they are of structure:
# geometry, sizes of tables, formats. Those are listed here.
HAS_NO_LAWS = {"back", "heap", "front", "life", "api"}
STRUCTURE = {
    "life/recording.c": "RECORDER_END_MS",
    "back/forbidden.h": "FORBIDDEN_BYTES MARKED_BYTES",
    "back/forbidden.c": "GUARDED_MAPPINGS FORBIDDEN_MOST CLOSED_FIRST CLOSED_EACH",
    "heap/hardening.c": "ZERO_SIZED WORDS HELD_BYTES PAGE",
    "back/superslabs.h": "SLOTS_LEFT SUPERSLAB SUPERSLAB_SLICES GUARD_PAGES_MOST GUARDS_UNKNOWN "
    "GUARD_LAST",
    "front/hardened.c": "READY_BYTES READY_LEAST READY_MOST HELD_MOST",
    "api/glibc.c": "MXFAST_MOST MMAP_THRESHOLD_MOST CHECK_ABORTS =1000000000 /=10",
    "api/blocks.h": "MOST_BYTES",
    "api/jemalloc.c": "FLAG_ALIGN FLAG_ZERO FLAG_CACHE CACHE_NONE ALIGN_OF_ALL",
    "api/mallctl.c": "PARTS_MOST ARENAS_ALL BINS_ALL",
    "back/huge.c": "OPEN_BYTES OPEN_TRIES <2",
    "back/huge.h": "HUGE_LEAST",
    "back/superslabs.c": "HUGE_PAGE_SLICES FIRST_SLICES /2 /=2 *6364136223846793005 SLOT_TRIES",
    "back/map.c": "ADDRESS_BITS MIDDLE_BITS MIDDLES MIDDLE_LEAVES LEAF",
    "back/map.h": "SLICE_BITS SLICE BIN_BYTES BIN_FOREIGN BIN_HUGE BIN_WHOLE BIN_WHOLE_FREE "
    "BIN_SAMPLED BIN_FIRST MAP_LEAF_BITS WINDOW_BITS WINDOW WIDE",
    "back/meta.c": "REGION_FIRST REGION_MOST FINE_STEP FINE_MOST COARSE_LEAST COARSE_KINDS *2",
    "back/meta.h": "META_MOST",
    "back/reserve.c": "REGIONS REGION_LEAST <16 =16",
    "back/slices.c": "SHUFFLED_LEAST ALIGNED_TRIES CANDIDATES_MOST",
    "heap/hardening.h": "CANARY_BYTES",
    "front/cache.h": "ROOM_MOST CHUNK_FIRST CHUNK_LATER CHUNKS_MOST SEAL AHEAD_CLASSES "
    "AHEAD_MOST HARDENED_FIRST NO_WHOLE",
    "front/stacks.c": "TRIES",
    "front/stacks.h": "JOURNAL_MOST",
    "life/limits.c": "ROOM LEVELS_MOST MiB <2",
    "life/purge.c": "CALL_MOST CLOCK_DOUBTED FREED_A_MS",
    "life/settings.h": "ORDER_NAME",
    "api/blocks.c": "PAUSE_MILLISECONDS",
    "front/cache.c": "FIRST_LOCKS",
    "heap/class_table.h": "CLASSES CLASSES_THIN "
    "CLASS_MOST CLASS_SMALL CLASS_SLICES_FIRST CLASS_SLICES_MOST "
    "CLASS_LARGE CLASS_GRAIN CLASS_STEP CLASS_STEPS_FROM CLASS_PER_DOUBLING CLASS_BIN_FIRST "
    "CLASS_BIN_BYTES CLASS_FIRST_WORDS CLASS_RECIPROCAL_BITS",
    "heap/classes.h": "CLASS_BYTES",
    "heap/shards.h": "STEP_SLABS",
    "heap/page_purge.c": "RUNS_MOST RUNS_OF_SLAB",
    "heap/shards.c": "ASKS_ABOVE",
    "heap/slab.c": "CHOICE_BYTES /3 /15 /2",
    "heap/slab.h": "SHARDS_MOST SHARD_SAMPLED",
    "heap/transfer.c": "FILLED_WORDS TRANSFER_BYTES TRANSFER_BLOCKS",
    "life/life.c": "END_BYTES WAITS_MOST",
    "life/profiling.c": "CALLERS_MOST EXIT_BYTES HANDLER_LOOKS TRIES_MOST",
    "life/scavenger.c": "HEARTBEAT_MS 256*KiB <=2",
    "life/statistics.c": "LOOK_MS FURTHER WAIT_STEP WAIT_MOST REPORT_MS GiB MiB KiB",
}
OF_ANY_FILE = {
    "*2",
    "/2",
    "=2",
    "/=2",
    "*=2",
    "<2",
    "<=2",
    ">2",
    ">=2",
    "*64",
    "/64",
    "<64",
    "<=64",
    ">64",
    ">=64",
    "*100",
}  # bits of a word, per cent
NO_CODE = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|\b(?:ASSERT|static_assert)\([^\n]*", re.DOTALL
)
MACRO = re.compile(r"\s*#\s*define\s+(\w+)\s+(?!.*\bLAW_)\(*.*\d")
NUMBER = re.compile(
    r"(?:\d+\s*\*\s*)?\b[KMG]iB\b"
    r"|(?<![<>=!*/+|&-])(?:[*/<>]=?|=)\s*(?:[2-9]|[1-9]\d+)(?=[uUlL]*\b(?![.]|\s*\*\s*[KMG]iB))"
)


def laws_elsewhere(root: Path) -> Iterator[str]:
    """Numbers of judgement outside the table."""
    for path in sorted(p for p in root.rglob("*") if p.suffix in SUFFIXES):
        name = path.relative_to(root).as_posix()
        if name.split("/")[0] not in HAS_NO_LAWS:
            continue
        allowed = OF_ANY_FILE | set(STRUCTURE.get(name, "").split())
        code = NO_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), path.read_text())
        for number, line in enumerate(code.splitlines(), 1):
            if macro := MACRO.match(line):
                found = [macro[1]]
            elif re.match(r"\s*#", line):
                continue
            else:
                found = [re.sub(r"\s", "", m[0]) for m in NUMBER.finditer(line)]
            for law in found:
                if law not in allowed:
                    yield (
                        f"{path}:{number}: {law}: a number that decides is a line of "
                        "learn/laws.def; one of structure is listed in tools/check_layers.py"
                    )


def laws_unused(root: Path) -> Iterator[str]:
    table = root / "learn/laws.def"
    if not table.exists():
        return
    used = {
        name
        for path in root.rglob("*")
        if path.suffix in {".c", ".h", ".cc"}
        for name in re.findall(r"\bLAW_(\w+)", path.read_text())
    }
    for number, line in enumerate(table.read_text().splitlines(), 1):
        law = re.match(r"LAW\((\w+),", line)
        if law and law[1] not in used:
            yield f"{table}:{number}: nothing uses LAW_{law[1]}"


def circles(root: Path) -> Iterator[str]:
    """The first circle of includes. A header and the source of its name are one."""
    included: TopologicalSorter[str] = TopologicalSorter()
    for path in sorted(p for p in root.rglob("*") if p.suffix in SUFFIXES):
        unit = str(path.relative_to(root).with_suffix(""))
        for line in path.read_text().splitlines():
            if include := INCLUDE.match(line):
                other = str(Path(include[1] or include[2]).with_suffix(""))
                if other != unit:
                    included.add(unit, other)
    try:
        included.prepare()
    except CycleError as circle:
        # Each is included by the next.
        yield f"{root}: includes in a circle: {', '.join(reversed(circle.args[1]))}"


IMPORT = re.compile(r"\s*(?:from hakmem import ([\w, ]+)|from hakmem\.(\w+)[\w.]* import)")


def module_violations(root: Path) -> Iterator[str]:
    """The same of Python modules."""
    for path in sorted(root.rglob("*.py")):
        module = path.stem
        if module not in MODULE_FLOOR:
            yield f"{path}:1: '{module}' has no floor; the modules are {', '.join(MODULE_FLOOR)}"
            continue
        lines = path.read_text().splitlines()
        if len(lines) > MOST_LINES:
            yield f"{path}:{len(lines)}: {len(lines)} lines; a file has at most {MOST_LINES}"
        for number, line in enumerate(lines, 1):
            include = IMPORT.match(line)
            for name in re.findall(r"\w+", include[1] or include[2]) if include else ():
                if name != module and MODULE_FLOOR.get(name, 0) >= MODULE_FLOOR[module]:
                    yield (
                        f"{path}:{number}: {module} (floor {MODULE_FLOOR[module]}) imports "
                        f"{name} (floor {MODULE_FLOOR[name]}); only lower floors may be"
                    )


# Symbols that a lower folder declares and a higher one defines all the same.
DEFINED_ABOVE = {
    "assertion_failed",  # base/ has no words and can't end the process; in debug builds alone
    "lock_is_left",  # a report, which ends the process: os/ knows nothing of what it says
    "hakmem_watch",  # it names the tables of all layers, and what reads them begins there
}


def source_of(object_file: str) -> str:
    return str(Path(object_file.rpartition(".dir/")[2])).removesuffix(".o")


def upward_references(objects: list[str]) -> Iterator[str]:
    """Yields what the includes don't show: a lower folder may declare what a higher one defines."""
    command = ["nm", "--print-file-name", "--extern-only", "--format=posix", *objects]
    listed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    defined: dict[str, set[str]] = {}
    referred: set[tuple[str, str]] = set()
    for line in listed.splitlines():
        file, _, symbol = line.partition(": ")
        name, kind = symbol.split()[:2]
        if kind in "Uwv":
            referred.add((source_of(file), name))
        else:
            defined.setdefault(name, set()).add(source_of(file))
    needed = set()
    for source, name in sorted(referred):
        folder = source.split("/")[0]
        others = {other: FLOOR[other.split("/")[0]] for other in sorted(defined.get(name, ()))}
        above = (
            FLOOR[folder] <= floor and not other.startswith(f"{folder}/")
            for other, floor in others.items()
        )
        if not others or not all(above):
            continue
        needed.add(name)
        if name not in DEFINED_ABOVE:
            where = " and ".join(f"{other} (floor {floor})" for other, floor in others.items())
            yield (
                f"{source}: {folder}/ (floor {FLOOR[folder]}) refers to {name} of {where}; "
                "only the same folder and lower floors may be"
            )
    for name in sorted((DEFINED_ABOVE & defined.keys()) - needed):
        yield f"{name}: no lower folder refers to it: take it out of DEFINED_ABOVE"


USES_THE_YARDSTICK = re.compile(
    r'\s*(?:from|import)\s+(?:hakmem_)?yardstick\b|\s*#\s*include\s*"[^"]*yardstick/'
    r"|[^\"'#]*\bextras\.loaded\("
)
MAY_USE_IT = {"bench_command.py", "compare_command.py", "replay_command.py", "tune_command.py"}
OUTSIDE = ("src", "include", "command", "python", "bindings", "tools", "tests")


def uses_of_the_yardstick(root: Path) -> Iterator[str]:
    """By what is outside its folder."""
    for path in sorted(p for p in root.rglob("*") if p.suffix in {".py", *SUFFIXES}):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if path.name not in MAY_USE_IT and USES_THE_YARDSTICK.match(line):
                yield (
                    f"{path}:{number}: {line.strip()}: nothing outside yardstick/ may use what is "
                    f"in it but {' and '.join(sorted(MAY_USE_IT))}"
                )


def long_files(root: Path) -> Iterator[str]:
    for path in sorted(p for p in root.rglob("*") if p.suffix in {".py", *SUFFIXES}):
        lines = len(path.read_text().splitlines())
        if lines > MOST_LINES:
            yield f"{path}:{lines}: {lines} lines; a file has at most {MOST_LINES}"


def violations_in_sources(folders: list[str]) -> list[str]:
    own = folders or ["src", "python"]
    outside = folders or OUTSIDE
    return [
        *(line for name in own for line in violations(Path(name))),
        *(line for name in own for line in laws_elsewhere(Path(name))),
        *(line for name in own for line in laws_unused(Path(name))),
        *(line for name in own for line in circles(Path(name))),
        *(line for name in own for line in module_violations(Path(name))),
        *long_files(Path("yardstick/python")),
        *(line for name in outside for line in uses_of_the_yardstick(Path(name))),
    ]


def main() -> int:
    given = sys.argv[1:]
    if given[:1] == ["--objects"]:
        found = list(upward_references(given[1:]))
    else:
        found = violations_in_sources(given)
    print("\n".join(found) if found else "layers in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
