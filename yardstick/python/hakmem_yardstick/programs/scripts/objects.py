"""Records, words, trees and JSON that grow, change and go: objects of 16 to 600 bytes."""

import json
import random
import sys
from zlib import crc32


def records(rng: random.Random, count: int) -> int:
    """A table of dictionaries in which a random one is replaced, and now and then one dropped."""
    table: dict[int, dict[str, object]] = {}
    for number in range(count):
        table[rng.randrange(count // 4)] = {
            "id": number,
            "name": f"record {number}",
            "note": "n" * rng.randrange(300),
            "tags": [f"{number}.{tag}" for tag in range(number % 8)],
            "weight": number / 7,
        }
        if number % 5 == 0:
            table.pop(rng.randrange(count // 4), None)
    text = json.dumps([table[key] for key in sorted(table)])
    return crc32(json.dumps(json.loads(text)).encode())


def words(rng: random.Random, count: int) -> int:
    """Text that is split, counted and sorted."""
    text = " ".join(f"w{rng.randrange(2000)}" * rng.randrange(1, 4) for _ in range(count))
    counts: dict[str, int] = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    lines = [f"{word}:{number}" for word, number in counts.items()]
    return crc32("".join(sorted(lines, key=lambda line: line[::-1])).encode())


class Node:
    def __init__(self, key: float) -> None:
        self.key = key
        self.left: Node | None = None
        self.right: Node | None = None


def tree(rng: random.Random, count: int) -> int:
    """A search tree of objects that know one another."""
    root = Node(0.5)
    depth = 0
    for _ in range(count):
        key, at, level = rng.random(), root, 0
        while True:
            level += 1
            side = "left" if key < at.key else "right"
            below = getattr(at, side)
            if below is None:
                setattr(at, side, Node(key))
                break
            at = below
        depth = max(depth, level)
    return depth


def main() -> None:
    rng = random.Random(1)
    for turn in range(int(sys.argv[1])):
        print(turn, records(rng, 100_000), words(rng, 60_000), tree(rng, 20_000))


main()
