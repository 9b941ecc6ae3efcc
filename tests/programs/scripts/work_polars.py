"""Frames of Polars: group by, joins, windows, text, lazy scans of CSV and Parquet, four threads.

Usage: work_polars.py FOLDER, which holds customers.csv and orders.csv. Prints of each frame its
shape and a hash of its rows.
"""

from __future__ import annotations

import hashlib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl

ROWS = 2_000_000


def show(name: str, frame: pl.DataFrame) -> None:
    rows = frame.write_csv(float_precision=6).encode()
    print(name, frame.shape, hashlib.sha256(rows).hexdigest()[:16])


def generated() -> pl.DataFrame:
    number = pl.col("id")
    return pl.select(pl.int_range(ROWS).alias("id")).with_columns(
        key=number * 7919 % 50_021,
        kind=number * 104_729 % 997,
        cents=number * 2_654_435_761 % 100_000,
        note=pl.format("note {} of {}", number % 4001, number * 31 % 89),
    )


def grouped(frame: pl.DataFrame) -> None:
    total = frame.group_by("key").agg(
        pl.len(), pl.col("cents").sum(), pl.col("note").n_unique(), pl.col("kind").max()
    )
    show("groups", total.sort("key"))
    notes = frame.group_by("note").agg(pl.col("cents").top_k(3).sum(), pl.col("id").first())
    show("notes", notes.sort("note"))
    place = pl.col("cents").rank("ordinal", descending=True).over("key")
    running = pl.col("cents").cum_sum().over("key")
    show("windows", frame.with_columns(place=place, running=running).filter(pl.col("place") < 3))
    show("sorted", frame.sort("note", "cents", "id", descending=[False, True, False]).head(50_000))


def read_back(frame: pl.DataFrame) -> None:
    """What is written comes back the same, whole and in part."""
    frame.write_parquet("all.parquet", compression="zstd", row_group_size=100_000)
    frame.head(300_000).write_ipc("some.arrow", compression="lz4")
    frame.head(100_000).write_ndjson("some.ndjson")
    print("parquet", pl.read_parquet("all.parquet").equals(frame))
    print("ipc", pl.read_ipc("some.arrow").equals(frame.head(300_000)))
    print("ndjson", pl.read_ndjson("some.ndjson").equals(frame.head(100_000)))
    part = pl.scan_parquet("all.parquet").filter(pl.col("kind") < 50).select("id", "note")
    show("pushed down", part.collect())
    counted = part.with_columns(pl.col("note").str.len_bytes().alias("size"))
    streamed = counted.group_by("size").agg(pl.len(), pl.col("id").sum()).sort("size")
    show("streamed", streamed.collect(engine="streaming"))


def shop(folder: Path) -> None:
    orders = pl.scan_csv(folder / "orders.csv", try_parse_dates=True)
    customers = pl.scan_csv(folder / "customers.csv")
    joined = orders.join(customers, on="customer", how="left")
    by_region = joined.group_by("region", "kind").agg(pl.col("cents").sum(), pl.len())
    show("regions", by_region.sort("region", "kind").collect())
    show("strangers", orders.join(customers, on="customer", how="anti").sort("id").collect())
    read = joined.sort("id").collect()
    show("pivot", read.pivot(on="kind", index="day", values="pieces", aggregate_function="sum"))
    months = read.group_by_dynamic("day", every="1mo").agg(pl.col("cents").sum(), pl.len())
    show("months", months)
    words = read.lazy().select(pl.col("note").str.split(" ").alias("word")).explode("word")
    show("words", words.group_by("word").len().sort("word").collect())
    swapped = pl.col("note").str.replace_all(r"(\w+) (slab|shard)", "$2 $1")
    show("replaced", read.select("id", swapped.str.to_uppercase()))
    checks = read.filter(pl.col("id") % 97 == 0).select("day", seen="id").unique("day").sort("day")
    show("as of", read.select("id", "day").join_asof(checks.sort("day"), on="day"))
    long = read.select("id", "pieces", "cents").unpivot(index="id").sort("id", "variable")
    show("unpivoted", long)


def churn(seed: int) -> pl.DataFrame:
    """Frames of many sizes that come and go in one thread, beside those of the others."""
    parts = []
    for number in range(150):
        rows = (seed * 7919 + number * 104_729) % 20_000 + 1
        part = pl.select(pl.int_range(rows).alias("id")).with_columns(
            key=pl.col("id") * (number + 7) % 41, text=pl.format("{} {}", "id", number)
        )
        parts.append(part.group_by("key").agg(pl.len(), pl.col("text").max()).sort("key"))
    return pl.concat(parts)


def main() -> None:
    frame = generated()
    grouped(frame)
    read_back(frame)
    shop(Path(sys.argv[1]))
    with ThreadPoolExecutor(4) as pool:
        for number, part in enumerate(pool.map(churn, range(4))):
            show(f"thread {number}", part)


main()
