#!/usr/bin/env python3
"""Damages heap profiles, files of leaks, and what says the names of code that a program made (maps
for perf, jitdumps) by chance and reads them as `hakmem profile` and `hakmem leaks` do: there is one
line that says what is wrong, or the figures of what the file says now.

    tests/profile/damaged.py [INPUTS [SEED]]
"""

from __future__ import annotations

import random
import re
import resource
import struct
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from hakmem import (  # noqa: E402
    heap_profile,
    leaks,
    perf_map,
    profile_html,
    profile_text,
    symbols,
)
from hakmem.heap_profile import NoProfile  # noqa: E402

WHOLE = (
    b"""\
heap profile: 3: 300 [5: 700] @ heapprofile
# hakmem rate 1024 lost 0 memory 4096 pid 7 most 500 allocated 9
2: 200 [3: 300] @ 0x401001 0x1000000000000001 0x402001
# peak 2: 200 samples 1 2
# sizes 112:2.5:0.25:1 4096:1:0.5e+00:1
1: 100 [2: 400] @
# peak 2: 400 samples 1 1
# name a function
# sites 2

MAPPED_LIBRARIES:
1000000000000000-1000000000001000 r-xp 00000000 00:00 0 [python:a.py:7:f]
00400000-00500000 r-xp 00000000 fe:00 4711                             /bin/no such app
7ff000000-7ff001000 rw-p 00000000 00:00 0
""",
    b"""\
heap profile: 3: 300 [3: 300] @ heapprofile
# hakmem rate 1 lost 0 memory 0
3: 300 [3: 300] @ 0x1001 0x2001
# peak 3: 300 samples 3 3
# leaks 1 100 1 50 0 0 1 100
1: 50 [1: 50] @ 0x3001 0x2001
# peak 1: 50 samples 1 1
# leaks 0 0 0 0 1 50 0 0
# sites 2

MAPPED_LIBRARIES:
""",
)
WORDS = (b"0", b"-1", b"9" * 19, b"9" * 30, b"0x", b":", b" ", b"\n", b"# ", b"\0", b"\xff", b"nan",
         b"1e999", b"ffffffffffffffff", b"MAPPED_LIBRARIES:\n", b"# sites 2\n")  # fmt: skip
NUMBERS = (b"0", b"1", b"9" * 18, b"100000000000000", b"4194304", b"7", b"12345678")
MAP = b"""\
1000 20 a
0x1010 0x40 py::f:/a/b.py
1000000 3000 LazyCompile:~g /a.js:7:1
ff000 fffff JIT$h
ffffffffffffff00 100 last
"""
NUMBERS_OF_CODE = (b"0", b"1", b"fffffff", b"ffffffffffffffff", b"100000000", b"1008")


def _record(kind: int, body: bytes) -> bytes:
    return perf_map.RECORD.pack(kind, perf_map.RECORD.size + len(body), 5) + body


def _lines(at: int, *entries: tuple[int, int, bytes]) -> bytes:
    table = b"".join(perf_map.LINE.pack(one, line, 0) + name + b"\0" for one, line, name in entries)
    return _record(perf_map.HAS_LINES, perf_map.LINES.pack(at, len(entries)) + table)


DUMP = (
    perf_map.HEAD.pack(perf_map.MAGIC, 1, perf_map.HEAD.size, 62, 0, 7, 0, 0)
    + _lines(0x1000, (0x1000, 4, b"a.x"), (0x1004, 9, b"\xff"), (0x1003, 8, b"inlined.x"))
    + _record(perf_map.IS_LOADED, perf_map.LOADED.pack(7, 7, 0x1000, 0x1000, 64, 1) + b"a\0code")
    + _record(perf_map.IS_MOVED, perf_map.MOVED.pack(7, 7, 0x1000, 0x1000, 0x1020, 64, 1))
    + _record(3, b"of another kind")
    + _lines(0x3000, (0x3040, 1, b"/a.js"))
    + _record(
        perf_map.IS_LOADED,
        perf_map.LOADED.pack(7, 7, 0x3000, 0x3000, 32, 2) + b"JS:~g /a.js:7:1\0" + bytes(32),
    )
)
ADDRESSES = (0, 0x1000, 0x1008, 0x1010, 0x1028, 0x3004, 0x1000100, 0x100000, 2**64 - 1, 2**63, 1)
MEMORY = 2**29  # bytes of addresses that no input may take; reading makes room for half of it
NUMBER = re.compile(rb"(?<=[ :@\[x])[0-9]+")


def told(path: Path) -> str:
    """What is said of the file. All else that is raised is a defect."""
    try:
        profile = heap_profile.read(path)
    except NoProfile as why:
        assert "\n" not in str(why) and str(path) in str(why)
        return "refused"
    named = symbols.named(profile)
    assert profile_text.summary(named)
    assert list(profile_text.table(named, profile_text.Table("inuse", 9), "damaged"))
    profile_text.collapsed(named, 1)
    profile_text.speedscope(named, "damaged")
    profile_html.page(named, "damaged")
    try:
        leaks.find(profile)
    except NoProfile as why:
        assert "\n" not in str(why)
    return "read"


def told_of_code(path: Path) -> str:
    """Likewise, of names."""
    try:
        made = perf_map.read(path)
    except perf_map.NoMap as why:
        assert "\n" not in str(why) and str(path) in str(why)
        return "names refused"
    for address in ADDRESSES:
        function = made.function(address)
        apart = made.told_apart(address, 5)
        assert (made.function(apart) is None) == (function is None)
    return "names read"


def damaged_code(data: bytes, chance: random.Random) -> bytes:
    """Of a dump mostly its numbers, at their bounds; others as of a profile."""
    made = bytearray(data)
    if data.startswith(perf_map.MAGIC) and chance.random() < 0.7:
        for _ in range(chance.choice((1, 1, 2, 5))):
            at = chance.randrange(len(made) - 8)
            word = chance.choice("IIQ")
            bits = 32 if word == "I" else 64
            now = struct.unpack_from(f"<{word}", made, at)[0]
            value = chance.choice((0, 1, 2, now + 1, now - 1, now * 2, 2**31, 2**32 - 1, 2**63, -1))
            struct.pack_into(f"<{word}", made, at, value % (1 << bits))
        if chance.random() < 0.2:
            del made[chance.randrange(len(made)) :]
        return bytes(made)
    if chance.random() < 0.5:
        return re.sub(
            rb"\b[0-9a-f]+ ",
            lambda one: chance.choice(NUMBERS_OF_CODE) + b" " if chance.random() < 0.2 else one[0],
            data,
        )
    return damaged(data, chance)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Lines or bytes are missing, are there twice, or are others; half of the time numbers are."""
    if chance.random() < 0.5:
        return NUMBER.sub(
            lambda one: chance.choice(NUMBERS) if chance.random() < 0.1 else one[0], data
        )
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at, length = chance.randrange(len(made) + 1), chance.choice((0, 1, 3, 40))
        kind = chance.randrange(5)
        if kind == 0:
            del made[at:]
        elif kind == 1:
            made[at : at + length] = chance.choice(WORDS)
        elif kind == 2:
            made[at : at + length] = chance.randbytes(length)
        elif kind == 3 and made:
            made[at % len(made)] ^= 1 << chance.randrange(8)
        else:
            lines = bytes(made).splitlines(keepends=True) or [b""]
            one, other = (chance.randrange(len(lines)) for _ in range(2))
            lines[one : one + chance.randrange(2)] = lines[other : other + chance.randrange(3)]
            made = bytearray(b"".join(lines))
    return bytes(made)


def main(inputs: int, seed: int) -> int:
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="hakmem-damaged-") as folder:
        path = Path(folder) / "damaged.heap"
        for data in WHOLE:
            path.write_bytes(data)
            assert told(path) == "read"
        for data in (MAP, DUMP):
            path.write_bytes(data)
            assert told_of_code(path) == "names read"
            assert perf_map.read(path).function(0x1028) in (("f", "/a/b.py", 0), ("a", "a.x", 9))
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
        for number in range(inputs):
            is_code = number % 3 == 0
            data = chance.choice((MAP, DUMP) if is_code else WHOLE)
            path.write_bytes(damaged_code(data, chance) if is_code else damaged(data, chance))
            try:
                counts[told_of_code(path) if is_code else told(path)] += 1
            except BaseException:
                kept = Path(tempfile.gettempdir()) / f"damaged-{seed}-{number}.heap"
                kept.write_bytes(path.read_bytes())
                print(f"input {number} of seed {seed}: {kept}", file=sys.stderr)
                raise
    print(f"{inputs} damaged profiles:", dict(sorted(counts.items())))
    return 0


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*(words + [3000, 1][len(words) :])))
