#!/usr/bin/env python3
"""Damages heap profiles and files of leaks by chance and reads them as `hakmem profile` and `hakmem
leaks` do: there is one line that says what is wrong, or the figures of what the file says now.

    tests/profile/damaged.py [INPUTS [SEED]]
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from hakmem import heap_profile, leaks, profile_html, profile_text, symbols  # noqa: E402
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
    profile_text.collapsed(named, 1)
    profile_html.page(named, "damaged")
    try:
        leaks.find(profile)
    except NoProfile as why:
        assert "\n" not in str(why)
    return "read"


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
        for number in range(inputs):
            path.write_bytes(damaged(chance.choice(WHOLE), chance))
            try:
                counts[told(path)] += 1
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
