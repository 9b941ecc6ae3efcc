#!/usr/bin/env python3
"""Makes src/heap/class_table.h and classes.c, the size classes, and guard_table.c.

Reasons behind the numbers:

- 16 bytes is the smallest class and every class is a multiple of 16: compilers may assume that
  alignment for any block (the ABI's max_align_t).
- Steps of 16 up to 128, then 8 classes per doubling: a block loses at most 1/9 of itself to
  rounding, 4 per doubling lose up to 1/5; 8 were measured to hold 4% less memory at the same speed.
- Every power of two is a class, and the class of a multiple of a power of two is a multiple of it,
  too: that is how aligned blocks are found (slabs begin at multiples of 64 KiB). The table maker
  checks every size.
- Up to 32 KiB: two blocks of that size still share a slice; beyond, whole slices lose little.
- A slab of these is one slice of 64 KiB, so where a block lies in its slab can be told from its
  address alone. What the largest classes leave over at a slab's end is never touched. Bits for a
  slice of the smallest class are 64 words, so one summary word covers a slab.
- A block begins at an offset in its slab exactly when offset * inverse, modulo 2^64, is less than
  inverse = ceil(blocks * 2^64 / (blocks * size - 1)), for offsets that are multiples of 16. That is
  a little more than 2^64 / size: a multiple n * size leaves n * (size * inverse - 2^64), which
  reaches inverse exactly at n = blocks, behind the last block; other offsets leave more than
  inverse. The table maker checks every offset.
- Then whole slices, 64 KiB to 2 MiB, one block a slab: too large for the table, so malloc finds
  them in the slow path; else they are like the others (without a stack such blocks that come and go
  cost a lock and a search each, 3 times as much). What rounding adds is never touched.
- A block's number in its slab comes from a multiplication: offsets and sizes are counted in 16
  bytes, so both are at most 2^14, and with reciprocal = ceil(2^31 / size) the error
  offset * (reciprocal - 2^31 / size) / 2^31 stays below 2^-17, less than 1 / size: exact. The table
  maker checks every offset.
- A slab is sparse, and worth a look for free pages, once so many of its blocks are free that one
  page can be expected to be, were they free at random: pages * (free / blocks)^k >= 1, where k
  blocks have a byte in a page (of 4 KiB; larger pages are looked at earlier than need be).
- malloc looks a size of up to 1024 bytes up by the byte: two instructions less than by 16 bytes, at
  the cost of two bytes of cache for each size in use instead of for each 16. Larger sizes it looks
  up by 128 bytes, of which all larger classes are multiples.
- The two tables by size are data that may change, in pages of their own: see src/heap/classes.h.
- A thread has a second stack for blocks of slabs that are mostly free: see src/heap/slab.h. The
  rows of these classes are there twice, so that a stack's number finds its class's figures.
- The first capacity of a thread's stack: 15 blocks up to 512 bytes, 7 to 4 KiB, 3 to 256 KiB, so
  that with the empty slot the first arrays are 128, 64 or 32 bytes. Of larger blocks bytes decide.
- The guard pages of a hardened heap's slabs (src/heap/hardening.h): blocks up to the end of a
  page, a guard page, blocks again. Blocks stay where they are, and those with a byte in a guard
  page are not used. Where these runs of a page are filled by less than three quarters, they have
  up to four pages. So blocks fill 90% of the pages between guards; with runs of a page it would
  be 86%, and 54% of one class.
"""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

GRAIN = 16
MOST = 32 * 1024
SMALL = 1024
STEP = SMALL // 8  # between all classes above
SLICE = 64 * 1024
PAGE = 4 * 1024
STEPS_FROM = 128
PER_DOUBLING = 8
WHOLE_SLICES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32)
LARGE = 5 * SLICE
THIN_MOST = PAGE // 2  # of a larger block no page holds two
RECIPROCAL_BITS = 31
GUARD_RUN = 4  # pages between guard pages, at most, where a block needs no more
GUARD_FILLS = 0.75  # of these pages
BIN_FIRST = 5  # the bins below are the address map's: see src/back/map.h
BIN_BYTES = 32


def sizes() -> list[int]:
    result = list(range(GRAIN, STEPS_FROM + 1, GRAIN))
    low = STEPS_FROM
    while low < MOST:
        result += [low + low // PER_DOUBLING * i for i in range(1, PER_DOUBLING + 1)]
        low *= 2
    return result + [n * SLICE for n in WHOLE_SLICES]


def slices(size: int) -> int:
    return size // SLICE if size > MOST else 1


def reciprocal(size: int) -> int:
    """0 for one block: wherever it is looked for, its number is 0."""
    if size > MOST:
        return 0
    grains = size // GRAIN
    value = -(-(1 << RECIPROCAL_BITS) // grains)
    for offset in range(slices(size) * SLICE // GRAIN):
        assert offset * value >> RECIPROCAL_BITS == offset // grains, (size, offset)
    return value


def of_stacks() -> list[int]:
    """The sizes of blocks in each of a thread's stacks."""
    return sizes() + [size for size in sizes() if size <= THIN_MOST]


def first_capacity(size: int) -> int:
    return 15 if size <= 512 else 7 if size <= 4096 else 3 if size < LARGE else 7


def inverse(size: int) -> int:
    """What tells whether a block begins at an offset in a slab; 0 where the map knows that."""
    if size > MOST:
        return 0
    blocks = SLICE // size
    value = -(-(blocks << 64) // (blocks * size - 1))
    for offset in range(0, SLICE, GRAIN):
        begins = offset % size == 0 and offset // size < blocks
        assert (offset * value % (1 << 64) < value) == begins, (size, offset)
    return value


def sparse(size: int) -> int:
    blocks = slices(size) * SLICE // size
    if blocks == 1:
        return 0
    pages = slices(size) * SLICE // PAGE
    return math.ceil(blocks * math.pow(1 / pages, 1 / (PAGE // size + 1)))


@dataclass(frozen=True)
class Guards:
    """Of a slab: the blocks that are used, and the pages that have a byte of one."""

    blocks: list[int]
    pages: set[int]

    def fill(self, size: int) -> float:
        return len(self.blocks) * size / (len(self.pages) * PAGE)


def guards_with(size: int, run: int) -> Guards:
    """Runs of so many pages between guard pages. The last page is one."""
    used = Guards([], set())
    first = 0  # where the next run may begin
    last = 0  # where the guard page behind it does; 0: it has no block yet
    for block in range(SLICE // size):
        start, end = block * size, (block + 1) * size
        if last != 0 and end > last:
            first, last = last + PAGE, 0
        if start < first:
            continue
        if last == 0:
            last = max(-(-end // PAGE), start // PAGE + run) * PAGE
        if last + PAGE > SLICE:
            break
        used.blocks.append(block)
        used.pages.update(range(start // PAGE, -(-end // PAGE)))
    return used


def guards(size: int) -> Guards:
    found = [guards_with(size, run) for run in range(1, GUARD_RUN + 1)]
    enough = (each for each in found if each.fill(size) >= GUARD_FILLS)
    return next(enough, max(found, key=lambda each: each.fill(size)))


def check_alignments(classes: list[int]) -> None:
    align = GRAIN
    while align <= MOST:
        for wanted in range(align, MOST + 1, align):
            size = next(size for size in classes if size >= wanted)
            assert size % align == 0, (size, align)
        align *= 2


def header() -> str:
    classes = sizes()
    check_alignments(classes)
    assert all(size % GRAIN == 0 for size in classes)
    assert {1 << bit for bit in range(4, 16)} <= set(classes)
    thin = sum(size <= THIN_MOST for size in classes)
    words = sum(first_capacity(size) + 1 for size in of_stacks())
    return f"""/* Made by tools/classes.py, which gives the reasons: change it there. */
/* clang-format off */
#ifndef HAKMEM_HEAP_CLASS_TABLE_H
#define HAKMEM_HEAP_CLASS_TABLE_H

#define CLASSES {len(classes)}
#define CLASSES_THIN {thin} /* the first: with a second stack */
#define STACKS (CLASSES + CLASSES_THIN)
#define CLASS_MOST {MOST}
#define CLASS_SMALL {SMALL} /* up to here by the byte */
#define CLASS_SLICES_FIRST {classes.index(SLICE)}
#define CLASS_SLICES_MOST {classes[-1]}
#define CLASS_LARGE {classes.index(LARGE)} /* from here on bytes bound the stacks */
#define CLASS_GRAIN {GRAIN}
#define CLASS_STEP {STEP} /* sizes above are multiples of it */
#define CLASS_STEPS_FROM {STEPS_FROM}
#define CLASS_PER_DOUBLING {PER_DOUBLING}
#define CLASS_BIN_FIRST {BIN_FIRST}
#define CLASS_BIN_BYTES {BIN_BYTES}
#define CLASS_FIRST_WORDS {words} /* of all first stacks together */
#define CLASS_RECIPROCAL_BITS {RECIPROCAL_BITS}

#endif
"""


def bin_offsets(most: int, step: int) -> str:
    """For each multiple of `step`, the offset of the bin of the smallest class that holds it."""
    classes = sizes()
    smallest = (
        next(i for i, size in enumerate(classes) if size >= wanted)
        for wanted in range(0, most + 1, step)
    )
    return textwrap.fill(
        ", ".join(str(BIN_BYTES * (BIN_FIRST + index)) for index in smallest),
        96,
        initial_indent="    ",
        subsequent_indent="    ",
    )


def by_slices(to: Callable[[int], int]) -> str:
    """For each number of slices, what the class that holds it becomes."""
    classes = sizes()
    smallest = (
        next(i for i, size in enumerate(classes) if size >= n * SLICE)
        for n in range(1, WHOLE_SLICES[-1] + 1)
    )
    return textwrap.fill(
        ", ".join(str(to(index)) for index in smallest),
        96,
        initial_indent="    ",
        subsequent_indent="    ",
    )


def source() -> str:
    rows = "\n".join(
        f"    {{{size}, {reciprocal(size)}, {slices(size) * SLICE // size}, {slices(size)}, "
        f"{first_capacity(size)}, {sparse(size)}}},"
        for size in of_stacks()
    )
    inverses = ",\n".join(f"    {inverse(size):#x}" for size in sizes())
    return f"""/* Made by tools/classes.py, which gives the reasons: change it there. */
/* clang-format off */
#include "heap/classes.h"

const struct size_class size_classes[STACKS] = {{
    /* size, reciprocal, blocks and slices of a slab, first capacity of a stack, sparse */
{rows}
}};

const uint64_t class_inverses[CLASSES] = {{
{inverses},
}};

const struct class_offsets class_offsets = {{
    .small = {{
{bin_offsets(SMALL, 1)},
    }},
    .above = {{
{bin_offsets(MOST, STEP)},
    }},
    .by_slices = {{
{by_slices(lambda index: BIN_BYTES * (BIN_FIRST + index))},
    }},
}};

const uint8_t class_by_slices[CLASS_SLICES_MOST / SLICE] = {{
{by_slices(int)},
}};
"""


def guard_source() -> str:
    plans, words = [], [1]
    for size in sizes():
        if size > MOST:
            plans.append("    {0, 1, 0}, /* whole slices */")
            continue
        used = guards(size)
        pages = sum(1 << page for page in range(SLICE // PAGE) if page not in used.pages)
        plans.append(f"    {{{pages:#06x}, {len(used.blocks)}, {len(words)}}}, /* {size} */")
        bits = sum(1 << block for block in used.blocks)
        words += [bits >> at & (1 << 64) - 1 for at in range(0, SLICE // size, 64)]
    rows = "\n".join(plans)
    numbers = textwrap.fill(
        ", ".join(f"{word:#x}" for word in words),
        96,
        initial_indent="    ",
        subsequent_indent="    ",
    )
    return f"""/* Made by tools/classes.py, which gives the reasons: change it there. */
/* clang-format off */
#include "heap/hardening.h"

SELDOM const struct guard_plan guard_table[CLASSES] = {{
    /* pages, places, first word */
{rows}
}};

SELDOM const uint64_t guard_words[{len(words)}] = {{
{numbers},
}};
"""


def main() -> None:
    folder = Path(__file__).resolve().parent.parent / "src/heap"
    made = {
        folder / "class_table.h": header(),
        folder / "classes.c": source(),
        folder / "guard_table.c": guard_source(),
    }
    if sys.argv[1:] == ["--check"]:
        for path, text in made.items():
            if path.read_text() != text:
                sys.exit(f"{path} is not what tools/classes.py makes: run tools/classes.py")
        return
    if sys.argv[1:]:
        sys.exit("usage: tools/classes.py [--check]")
    for path, text in made.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
