"""Work for the allocator: records, texts, tables and trees that grow, change and are deleted.

Prints one line of JSON: a digest of the results, how long the work took, the peak of resident
memory in KiB, and the libraries in this process's memory. The digest is the same in every run.
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


def main() -> None:
    rng = random.Random(1)
    digest = hashlib.sha256()
    begin = time.perf_counter()
    digest.update(records(rng, 120_000).encode())
    digest.update(words(rng, 100_000).encode())
    digest.update(repr(tree(rng, 15))[:1000].encode())
    seconds = time.perf_counter() - begin
    status = Path("/proc/self/status").read_text().splitlines()
    maps = Path("/proc/self/maps").read_text().splitlines()
    told = {
        "digest": digest.hexdigest(),
        "seconds": seconds,
        "cpu": time.process_time(),
        "peak": next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")),
        "libraries": sorted({line.split()[-1] for line in maps if ".so" in line}),
    }
    print(json.dumps(told))


main()
