"""Checks the rules of src/: nothing includes upwards or in circles, files stay small, the system
stays below; of the command's Python part, python/: files stay small, what finds out knows nothing
of what asks; and that nothing outside yardstick/ uses what is in it, but the two commands for it.

Usage: check_layers.py [folders, by default this repository's]
"""

import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

# A file may include from its own folder and from lower floors. The public header stands beside
# life: only api, which implements it, may see it.
FLOOR = {
    "base": 0,
    "os": 1,
    "back": 2,
    "learn": 2,
    "heap": 3,
    "front": 4,
    "watch": 5,
    "options": 5,
    "life": 6,
    "hakmem": 6,
    "api": 7,
}
KNOWS_THE_SYSTEM = {"base", "os"}
# The same of the Python part, a module each.
MODULE_FLOOR = {
    "__init__": 0,
    "arguments": 0,
    "table": 0,
    "callgrind": 0,
    "causes": 0,
    "elf": 0,
    "library": 0,
    "extras": 0,
    "variants": 1,
    "bindings": 1,
    "process": 1,
    "trace": 2,
    "judge": 2,
    "options": 3,
    "doctor": 3,
    "bench_command": 4,
    "compare_command": 4,
    "cli": 5,
    "__main__": 6,
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


USES_THE_YARDSTICK = re.compile(
    r'\s*(?:from|import)\s+(?:hakmem_)?yardstick\b|\s*#\s*include\s*"[^"]*yardstick/'
    r"|[^\"'#]*\bextras\.loaded\("
)
MAY_USE_IT = {"bench_command.py", "compare_command.py"}
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


def main() -> int:
    own = sys.argv[1:] or ["src", "python"]
    outside = sys.argv[1:] or OUTSIDE
    found = [
        *(line for name in own for line in violations(Path(name))),
        *(line for name in own for line in circles(Path(name))),
        *(line for name in own for line in module_violations(Path(name))),
        *long_files(Path("yardstick/python")),
        *(line for name in outside for line in uses_of_the_yardstick(Path(name))),
    ]
    print("\n".join(found) if found else "layers in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
