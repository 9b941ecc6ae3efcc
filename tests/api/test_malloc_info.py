"""malloc_info's XML, read by an independent parser, and its numbers.

Usage: test_malloc_info.py PROGRAM, which prints it with 1,000 blocks of 2 KiB and one of 16 MiB,
after it freed nine of ten of 500 blocks of 3 KiB and gave back what it could.
"""

import subprocess
import sys
from xml.etree import ElementTree

HEAP = ["sizes", "total", "total", "system", "aspace", "aspace"]
WHOLE = ["heap", "total", "total", "total", "system", "system", "aspace", "aspace", "hakmem"]

COUNTS = [
    "superslabs", "slabs", "large_blocks", "huge_blocks", "kept_mappings", "threads", "refills",
    "flushes",
]  # fmt: skip
RETURNED = ["bytes", "taken_again", "nanoseconds", "in_slabs"]


def expect(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise SystemExit(f"{what}: expected {expected}, found {found}")


def number(element: ElementTree.Element | None, name: str) -> int:
    if element is None:
        raise SystemExit(f"{name}: expected an element that has it, found none")
    return int(element.attrib[name])


def main() -> None:
    printed = subprocess.run([sys.argv[1], "print-info"], check=True, capture_output=True)
    root = ElementTree.fromstring(printed.stdout)
    expect("root", root.tag, "malloc")
    expect("version", root.attrib, {"version": "1"})
    expect("elements of malloc", [child.tag for child in root], WHOLE)
    heap = root.find("heap")
    assert heap is not None
    expect("elements of heap", [child.tag for child in heap], HEAP)

    sizes = heap.findall("sizes/size")
    rest = heap.find("total[@type='rest']")
    expect("free blocks", sum(number(size, "count") for size in sizes), number(rest, "count"))
    expect("their bytes", sum(number(size, "total") for size in sizes), number(rest, "size"))
    for size in sizes:
        if not number(size, "from") <= number(size, "to"):
            raise SystemExit(f"size: expected from <= to, found {size.attrib}")

    mapped = root.find("total[@type='mmap']")
    expect("huge blocks", number(mapped, "count"), 1)
    expect("their bytes", number(mapped, "size"), 16 << 20)

    blocks = root.find("hakmem/class[@size='2048']")
    held = number(blocks, "taken") - number(blocks, "cached") - number(blocks, "transfer")
    expect("blocks of 2 KiB", held, 1000)
    sums = root.find("hakmem/bytes")
    assert sums is not None
    parts = {name: int(value) for name, value in sums.attrib.items()}
    expect("sum of the parts", sum(parts.values()) - parts["mapped"], parts["mapped"])
    counts = root.find("hakmem/counts")
    assert counts is not None
    expect("counts", list(counts.attrib), COUNTS)
    expect("huge blocks in counts", number(counts, "huge_blocks"), 1)
    expect("threads", number(counts, "threads"), 1)
    if not 1 <= number(counts, "superslabs") <= number(counts, "slabs"):
        raise SystemExit(f"counts: expected slabs in each superslab, found {counts.attrib}")
    returned = root.find("hakmem/returned")
    assert returned is not None
    expect("returned", list(returned.attrib), RETURNED)
    # A page that goes back may have unused bytes at a slab's end.
    freed, gone = 450 * 3072, number(returned, "in_slabs")
    most = min(number(returned, "bytes"), parts["free_in_slabs"] + parts["rest"])
    if not freed // 2 <= gone <= most:
        raise SystemExit(f"in_slabs: expected {freed // 2} to {most}, found {gone}")
    compaction = root.find("hakmem/compaction")
    assert compaction is not None
    expect("compaction", compaction.attrib, {"begun": "0", "bytes": "0", "regained": "0"})
    classes = root.findall("hakmem/class")
    for name in "compacts", "compacted", "regained":
        expect(f"{name} of classes", [number(each, name) for each in classes], [0] * len(classes))
    expect("current", number(root.find("system[@type='current']"), "size"), parts["mapped"])
    if number(root.find("system[@type='max']"), "size") < parts["mapped"]:
        raise SystemExit("max: expected at least what is mapped now")
    print(f"XML whole: {len(sizes)} sizes, {parts['mapped']} bytes mapped")


if __name__ == "__main__":
    main()
