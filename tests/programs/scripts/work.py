"""Data structures, json, threads, and processes made by fork while other threads allocate."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import random
import re
import threading
import warnings
import zlib


def structures(seed: int, rounds: int) -> str:
    rng = random.Random(seed)
    kept: dict[int, list[object]] = {}
    digest = hashlib.sha256()
    for number in range(rounds):
        slot = rng.randrange(3000)
        kept[slot] = [number, "s" * rng.randrange(200), {slot: (number,)}, bytearray(slot % 700)]
        if number % 3 == 0:
            kept.pop(rng.randrange(3000), None)
        if number % 5000 == 0:
            shaped = {str(k): [v[0], v[1]] for k, v in sorted(kept.items())}
            text = json.dumps(shaped)
            digest.update(json.dumps(json.loads(text)).encode())
    words = re.findall(r"\w+", " ".join(str(value[0]) for value in kept.values()))
    digest.update("".join(sorted(words)).encode())
    digest.update(zlib.compress(repr(sorted(kept)).encode()))
    return digest.hexdigest()[:24]


def in_threads(count: int) -> list[str]:
    """Each thread hands its blocks to the next one, which frees them."""
    handed: list[list[list[bytes]]] = [[] for _ in range(count)]
    results = [""] * count
    gates = [threading.Event() for _ in range(count)]

    def work(me: int) -> None:
        mine = [bytes([me]) * (n % 900) for n in range(20000)]
        handed[(me + 1) % count].append(mine)
        gates[(me + 1) % count].set()
        results[me] = structures(me, 12000)
        gates[me].wait()
        total = sum(len(block) for block in handed[me][0])
        handed[me].clear()
        results[me] += f" {total}"

    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def in_children() -> list[str]:
    """Forks a pool while a thread of the parent allocates and frees without pause."""
    over = threading.Event()

    def churn() -> None:
        rng = random.Random(0)
        kept: dict[int, bytes] = {}
        while not over.is_set():
            kept[rng.randrange(500)] = bytes(rng.randrange(20000))

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        results: list[str] = []
        for first in (10, 20, 30):
            with multiprocessing.get_context("fork").Pool(3) as pool:
                results += pool.starmap(structures, [(first + n, 3000) for n in range(6)])
    finally:
        over.set()
        thread.join()
    return results


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)
    print("alone", structures(1, 100000))
    print("large", hashlib.sha256(b"".join(bytes(1 << n) for n in range(26))).hexdigest()[:24])
    for part, results in (("thread", in_threads(4)), ("child", in_children())):
        for number, result in enumerate(results):
            print(part, number, result)


main()
