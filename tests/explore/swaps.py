#!/usr/bin/env python3
"""Swaps every two neighbouring accesses to shared words in the functions that threads meet in, one
pair at a time, and explores the result. A swap must fail, or harmless.md must say why it can't.

    swaps.py [FUNCTION...] [--list]

Exit status: 0 if each swap was found or is in harmless.md, 1 if one was not, 2 for a bad command
line.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import tree_sitter_c
from tree_sitter import Language, Node, Parser

from tests.explore.explorer import HERE, ROOT, Explorer

FUNCTIONS = {
    "front/cache.h": ["cache_pop", "bin_push", "cache_push", "cache_push_any", "stack_set_top"],
    "front/stacks.c": ["stack_settle"],
    "front/owners.c": ["cache_show", "cache_resume"],
    "front/cache.c": ["heap_close", "caches_take_away"],
    "os/lock.h": ["lock_take", "lock_release"],
    "os/lock.c": ["lock_spin", "lock_claim", "lock_wait"],
}
# Calls that read or write a word that another thread may touch, or order such accesses.
SHARED = re.compile(
    r"\b(load_\w+|store_\w+|add_relaxed|sub_relaxed|exchange|__atomic_\w+|STEP_\w+|lock_(?!noted|check_order|forget|held|all_held|none_held)\w+|os_wait"
    r"|os_wake|registry_exchange|registry_ownership|caches_take_away|stack_\w+|bin_push|cache_push_any"
    r"|arrays_purge|cache_reset|cache_show|shards_put)\s*\(|->(topmost|top|limit|shut)\b"
)


@dataclass(frozen=True)
class Swap:
    file: str
    function: str
    source: str  # of the whole file, changed
    first: str
    second: str

    @property
    def name(self) -> str:
        return f"{self.function}: {self.first} | {self.second}"


def text(node: Node) -> str:
    assert node.text is not None  # it was parsed from bytes
    return node.text.decode()


def brief(node: Node) -> str:
    """A statement in one line; of a block its head."""
    return re.sub(r"\s+", " ", text(node)).split(" {")[0].rstrip(";")[:70]


def named(node: Node, function: str) -> bool:
    declarator = node.child_by_field_name("declarator")
    return declarator is not None and bool(re.search(rf"\b{function}\(", text(declarator) + "("))


def walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from walk(child)


def touches(statement: Node) -> bool:
    said = text(statement)
    return not said.startswith(("/*", "ASSERT")) and bool(SHARED.search(said))


def pairs(body: Node) -> Iterator[tuple[Node, Node]]:
    """Neighbours that both touch shared words: statements of a block, operands of && and ||."""
    for node in walk(body):
        if node.type in ("compound_statement", "case_statement"):
            yield from pairwise(c for c in node.named_children if touches(c))
        elif operator(node) in ("&&", "||"):
            left, _, right = node.children
            while operator(left) == operator(node):
                left = left.children[2]
            if SHARED.search(text(left)) and SHARED.search(text(right)):
                yield left, right


def operator(node: Node) -> str:
    return node.children[1].type if node.type == "binary_expression" else ""


def swapped(source: bytes, first: Node, second: Node) -> str:
    """The second before the first; what lies between stays between."""
    return (
        source[: first.start_byte]
        + source[second.start_byte : second.end_byte]
        + source[first.end_byte : second.start_byte]
        + source[first.start_byte : first.end_byte]
        + source[second.end_byte :]
    ).decode()


def swaps() -> Iterator[Swap]:
    parser = Parser(Language(tree_sitter_c.language()))
    for file, functions in FUNCTIONS.items():
        # Words of ours before a type, which the parser does not know, of the same length.
        source = (ROOT / "src" / file).read_bytes()
        plain = re.sub(rb"\b(FAST|SLOW|COLD)\b", b"    ", source)
        definitions = [n for n in walk(parser.parse(plain).root_node)
                       if n.type == "function_definition"]  # fmt: skip
        for function in functions:
            found = [n for n in definitions if named(n, function)]
            assert len(found) == 1, f"{file}: {function}: found {len(found)} times"
            body = found[0].child_by_field_name("body")
            assert body is not None
            for first, second in pairs(body):
                yield Swap(file, function, swapped(source, first, second),
                           brief(first), brief(second))  # fmt: skip


def reasons() -> dict[str, str]:
    """What harmless.md says, by the swap's name."""
    rows = re.findall(r"^\| `(.+)` \| (.+) \|$", (HERE / "harmless.md").read_text(), re.MULTILINE)
    return {name.replace("\\|", "|"): reason for name, reason in rows}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("functions", nargs="*", metavar="FUNCTION")
    parser.add_argument("--list", action="store_true", help="only say which swaps there are")
    options = parser.parse_args()
    chosen = [s for s in swaps() if not options.functions or s.function in options.functions]
    if options.list:
        print("\n".join(s.name for s in chosen))
        return 0
    harmless = reasons()
    counts = dict.fromkeys(("found", "does not compile", "harmless", "NOT FOUND"), 0)
    with tempfile.TemporaryDirectory() as folder:
        explorer = Explorer(Path(folder))
        for swap in chosen:
            outcome = explorer.explore(swap.file, swap.source)
            if not outcome.compiled:
                what = "does not compile"
            elif outcome.wrong:
                what = "found"
            else:
                what = "harmless" if swap.name in harmless else "NOT FOUND"
            counts[what] += 1
            print(f"{what}: {swap.name}", flush=True)
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    return 1 if counts["NOT FOUND"] else 0


if __name__ == "__main__":
    sys.exit(main())
