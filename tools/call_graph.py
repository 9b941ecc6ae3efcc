"""The static call graph of src/, as gcc writes it: what each function calls, in which order.

Each file is compiled by itself, without optimisation, and `always_inline` counts as `noinline`, so
that the inline functions of headers are functions of their files. A call through a pointer is not
in the graph, but for those by the tables of api/door.h, nor is what C++ (*.cc) calls.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

FLAGS = ["-std=gnu11", "-O0", "-w", "-S", "-fcallgraph-info"]
DEFINES = ["-Dalways_inline=noinline", "-DHAKMEM_OVERRIDE", "-DHAKMEM_SHARED"]
NODE = re.compile(
    r'node: \{ title: "([^"]+)" label: "([^"\\]+)\\n([^"\\]+?):(\d+):\d+"( shape : ellipse)? \}'
)
EDGE = re.compile(
    r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)" label: "([^"]+?):(\d+):(\d+)" \}'
)

# The tables of api/door.h, and calls by them.
TABLE = re.compile(r"^const struct kind \w+ = \{(.*?)^\};", re.DOTALL | re.MULTILINE)
ENTRY = re.compile(r"\.(\w+) = (\w+),")
BY_TABLE = re.compile(r"\bkind\(\)->(\w+)\(")


@dataclass(frozen=True, order=True)
class Site:
    """Where a call stands."""

    file: str
    line: int
    column: int


@dataclass
class Graph:
    """A function is "file:name", with the file's path in src/."""

    functions: set[str] = field(default_factory=set)
    calls: dict[str, dict[Site, list[str]]] = field(default_factory=dict)

    def called(self, function: str) -> list[str]:
        """What it calls, in the order of the calls in its text."""
        return [name for _, names in sorted(self.calls.get(function, {}).items()) for name in names]

    def sites(self, function: str) -> set[Site]:
        """Where it is called."""
        return {
            site
            for calls in self.calls.values()
            for site, functions in calls.items()
            if function in functions
        }


def file_of(function: str) -> str:
    return function.rpartition(":")[0]


def function_name(function: str) -> str:
    return function.rpartition(":")[2]


def compiled(file: Path, root: Path, out: Path) -> str:
    """The graph of one file, as VCG."""
    name = out / file.relative_to(root).as_posix().replace("/", ".")
    where = [f"-I{root}", f"-I{root.parent / 'include'}"]
    command = ["gcc", *FLAGS, *DEFINES, *where, str(file), "-o", f"{name}.s"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{file}: gcc failed:\n{done.stderr}")
    return Path(f"{name}.ci").read_text()


def read(texts: list[str], root: Path) -> Graph:
    graph = Graph()
    inside = f"{root}/"
    globals_: dict[str, str] = {}
    nodes: list[dict[str, str]] = []
    for text in texts:
        own: dict[str, str] = {}
        for title, name, file, _, declared in NODE.findall(text):
            if declared or not file.startswith(inside):
                continue
            own[title] = f"{file.removeprefix(inside)}:{name}"
            graph.functions.add(own[title])
            if title == name:
                globals_[name] = own[title]
        nodes.append(own)
    for text, own in zip(texts, nodes, strict=True):
        for source, target, file, line, column in EDGE.findall(text):
            caller = own.get(source)
            function = own.get(target) or globals_.get(target)
            if caller is None or function is None:
                continue
            site = Site(file.removeprefix(inside), int(line), int(column))
            there = graph.calls.setdefault(caller, {}).setdefault(site, [])
            if function not in there:
                there.append(function)
    return graph


def through_tables(graph: Graph, root: Path) -> None:
    """Adds the calls by the tables of the two kinds of heap (api/door.h), each to both."""
    names = {function_name(function): function for function in sorted(graph.functions)}
    fields: dict[str, list[str]] = {}
    for file in sorted(root.rglob("*.c")):
        own = {function_name(f): f for f in graph.functions if root / file_of(f) == file}
        for table in TABLE.findall(file.read_text()):
            for entry, name in ENTRY.findall(table):
                if (function := own.get(name) or names.get(name)) is not None:
                    fields.setdefault(entry, []).append(function)
    for calls in graph.calls.values():
        for site, called in calls.items():
            if "api/door.h:kind" in called:
                line = (root / site.file).read_text().splitlines()[site.line - 1]
                for entry in BY_TABLE.findall(line):
                    called += [f for f in fields.get(entry, []) if f not in called]


def call_graph(root: Path) -> Graph:
    """Of all *.c in this folder."""
    with tempfile.TemporaryDirectory() as out, ThreadPoolExecutor(os.cpu_count()) as pool:
        files = sorted(root.rglob("*.c"))
        graph = read(list(pool.map(lambda f: compiled(f, root, Path(out)), files)), root)
    through_tables(graph, root)
    return graph
