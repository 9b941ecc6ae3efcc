"""Work for the allocator: records, texts, tables and trees that grow, change and are deleted.

Then a list of 40,000 byte strings is made and deleted. Prints one line of JSON: a digest of the
results, how long the work took, resident memory in KiB with that list and after its deletion, and
the libraries in this process's memory. The digest is the same in every run.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from pathlib import Path


def records(rng: random.Random, count: int) -> str:
    """Records of mixed sizes in a table, replaced at random; a tenth goes through json."""
    table: dict[int, dict[str, object]] = {}
    for number in range(count):
        table[rng.randrange(count // 4)] = {
            "id": number,
            "name": f"record {number}",
            "note": "n" * rng.randrange(300),
            "tags": [str(rng.random()) for _ in range(number % 8)],
        }
        if number % 5 == 0:
            table.pop(rng.randrange(count // 4), None)
    text = json.dumps([table[key] for key in sorted(table) if key % 10 == 0])
    return hashlib.sha256(json.dumps(json.loads(text)).encode()).hexdigest()


def words(rng: random.Random, count: int) -> str:
    text = " ".join(f"w{rng.randrange(2000)}" * rng.randrange(1, 4) for _ in range(count))
    counts: dict[str, int] = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    lines = [f"{word}:{count}" for word, count in sorted(counts.items())]
    return hashlib.sha256("".join(sorted(lines, key=lambda line: line[::-1])).encode()).hexdigest()


def tree(rng: random.Random, depth: int) -> tuple[object, ...]:
    if depth == 0:
        return (rng.random(), "leaf")
    return (tree(rng, depth - 1), [depth], tree(rng, depth - 1))


def resident() -> int:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))


def main() -> None:
    rng = random.Random(1)
    digest = hashlib.sha256()
    begin = time.perf_counter()
    digest.update(records(rng, 120_000).encode())
    digest.update(words(rng, 100_000).encode())
    digest.update(repr(tree(rng, 15))[:1000].encode())
    seconds = time.perf_counter() - begin
    cpu = time.process_time()
    data = [bytes(rng.randrange(100, 9000)) for _ in range(40_000)]
    full = resident()
    del data
    left = resident()
    maps = Path("/proc/self/maps").read_text().splitlines()
    told = {
        "digest": digest.hexdigest(),
        "seconds": seconds,
        "cpu": cpu,
        "full": full,
        "left": left,
        "libraries": sorted({line.split()[-1] for line in maps if ".so" in line}),
    }
    print(json.dumps(told))


main()
