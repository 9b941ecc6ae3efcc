"""Arrays of many sizes: integers, floating point to ten digits, objects, records, threads."""

from __future__ import annotations

import hashlib
import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np


def show(name: str, array: np.ndarray) -> None:
    if array.dtype.kind in "fc":
        array = np.round(array / (np.abs(array).max() or 1), 10) + 0.0
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
    print(name, array.shape, array.dtype, digest)


def churn(seed: int) -> int:
    """Arrays that come and go, of 1 to 200,000 elements."""
    rng = np.random.default_rng(seed)
    kept: dict[int, np.ndarray] = {}
    total = 0
    for number in range(6000):
        size = int(10 ** rng.uniform(0, 5.3))
        kept[int(rng.integers(100))] = np.arange(size, dtype=np.int64) * number
        if number % 3 == 0:
            one = kept.pop(next(iter(kept)))
            total = (total + int(one[::7].sum()) + int(np.sort(one % 1009)[-1])) % (1 << 61)
    return total


def main() -> None:
    rng = np.random.default_rng(1)
    whole = rng.integers(0, 1 << 40, 2_000_000)
    show("sort", np.sort(whole))
    show("unique", np.unique(whole % 100_003, return_counts=True)[1])
    show("reshape", whole.reshape(1000, 2, 1000).transpose(2, 0, 1).copy())
    show("where", np.where(whole % 3 == 0, whole // 3, -whole))
    show(
        "matrix",
        (whole[:250_000].reshape(500, 500) % 97) @ (whole[:250_000].reshape(500, 500) % 89),
    )
    floats = rng.normal(size=(600, 600))
    show("product", floats @ floats.T)
    show("solve", np.linalg.solve(floats + 50 * np.eye(600), floats[:, :20]))
    show("fft", np.abs(np.fft.rfft(floats.ravel()[:300_000])))
    show("cumulated", np.cumsum(whole % 1000))
    words = np.array([f"word {n % 977} {n}" for n in range(100_000)])
    show("words", np.char.upper(np.sort(words)).view(np.uint32))
    objects = np.array([(n, str(n)) for n in range(100_000)], dtype=object)
    print("objects", sum(len(text) for text in objects[::3, 1]))
    records = np.zeros(200_000, dtype=[("a", "i4"), ("b", "f8"), ("c", "S12")])
    records["a"] = np.arange(200_000) % 4999
    records["b"] = records["a"] / 7
    records["c"] = records["a"].astype("S12")
    show("records", np.sort(records, order=["a", "c"])["a"])
    file = io.BytesIO()
    np.savez_compressed(file, whole=whole[:100_000], records=records)
    file.seek(0)
    show("saved", np.load(file)["whole"])
    joined = np.empty(0, dtype=np.int64)
    for number in range(300):
        joined = np.concatenate([joined, np.arange(number * 7)])
    show("joined", joined)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(churn, range(4)):
            print("thread", result)


main()
