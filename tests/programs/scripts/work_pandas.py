"""Frames of pandas: read_csv, merge, groupby, pivots, windows, text, SQLite, pickles, threads.

Usage: work_pandas.py FOLDER, which holds customers.csv and orders.csv. Prints of each frame its
shape and a hash of its rows, floating point to six digits.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd


def show(name: str, frame: pd.DataFrame | pd.Series) -> None:
    rows = frame.to_csv(float_format="%.6g").encode()
    print(name, frame.shape, hashlib.sha256(rows).hexdigest()[:16])


def read(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    orders = pd.read_csv(folder / "orders.csv", parse_dates=["day"])
    pieces = pd.read_csv(folder / "orders.csv", chunksize=10_000, usecols=["id", "cents", "kind"])
    show("chunks", pd.concat(part.groupby("kind").sum() for part in pieces))
    slow = pd.read_csv(folder / "orders.csv", engine="python", nrows=20_000)
    print("engines", slow.drop(columns="day").equals(orders.head(20_000).drop(columns="day")))
    return orders, pd.read_csv(folder / "customers.csv")


def joined(orders: pd.DataFrame, customers: pd.DataFrame) -> pd.DataFrame:
    both = orders.merge(customers, on="customer", how="left", indicator=True)
    show("merged", both["_merge"].value_counts().sort_index())
    outer = orders.head(50_000).merge(customers, on="customer", how="outer").sort_values(
        ["customer", "id"]
    )  # fmt: skip
    show("outer", outer.tail(5000))
    indexed = orders.set_index("customer").join(customers.set_index("customer"), how="inner")
    show("joined", indexed.sort_values("id").head(5000))
    return both.drop(columns="_merge")


def grouped(both: pd.DataFrame) -> None:
    sums = both.groupby(["region", "kind"]).agg(
        cents=("cents", "sum"), most=("pieces", "max"), notes=("note", "nunique"),
        spread=("cents", "std"),
    )  # fmt: skip
    show("groups", sums)
    show("unstacked", sums["cents"].unstack(fill_value=0))
    show("pivot", both.pivot_table("cents", "kind", "pieces", aggfunc="mean"))
    share = both["cents"] / both.groupby("customer")["cents"].transform("sum")
    show("shares", share.head(20_000))
    show("applied", both.groupby("region")["cents"].apply(lambda cents: cents.nlargest(5).sum()))
    monthly = both.set_index("day").resample("MS")["cents"].agg(["sum", "median", "count"])
    show("months", monthly)
    show("rolling", both["cents"].rolling(500).mean().iloc[::50])
    show("ranks", both.groupby("kind")["cents"].rank(method="first").iloc[::20])
    show("crossed", pd.crosstab(both["kind"], both["pieces"]))


def texts(both: pd.DataFrame) -> None:
    notes = both["note"].fillna("")
    show("split", notes.str.split(" ").explode().value_counts().sort_index())
    show("replaced", notes.str.replace(r"(\w+) (slab|shard)", r"\2 \1", regex=True).iloc[::10])
    show("found", both[notes.str.contains("cache.*page", regex=True)][["id", "note"]])
    show("extracted", notes.str.extract(r"(\w+) (door|fork)").dropna())
    show("categories", both["kind"].astype("category").cat.codes.iloc[::10])
    show("objects", notes.head(30_000).map(lambda text: len(set(text.split()))))


def read_back(both: pd.DataFrame) -> None:
    """What is written comes back the same."""
    both.to_csv("orders.csv", index=False)
    again = pd.read_csv("orders.csv", parse_dates=["day"])
    print("csv", again.equals(both))
    both.to_pickle("orders.pickle")
    print("pickle", pd.read_pickle("orders.pickle").equals(both))
    with sqlite3.connect("orders.sqlite") as file:
        both.head(40_000).to_sql("orders", file, index=False)
        query = "SELECT kind, sum(cents) AS cents, count(note) AS notes FROM orders GROUP BY kind"
        show("sqlite", pd.read_sql(query, file))
    both.head(20_000).to_json("orders.json", orient="records", lines=True, date_format="iso")
    show("json", pd.read_json("orders.json", orient="records", lines=True))


def churn(seed: int) -> pd.DataFrame:
    """Frames of many sizes that come and go in one thread, beside those of the others."""
    parts = []
    for number in range(120):
        rows = (seed * 7919 + number * 104_729) % 5000 + 1
        frame = pd.DataFrame({"id": range(rows)})
        frame["key"] = frame["id"] * (number + 7) % 41
        frame["text"] = frame["id"].astype(str) + f" {number}"
        parts.append(frame.groupby("key").agg({"id": "sum", "text": "max"}))
    return pd.concat(parts)


def main() -> None:
    orders, customers = read(Path(sys.argv[1]))
    both = joined(orders, customers)
    grouped(both)
    texts(both)
    show("sorted", both.sort_values(["note", "cents", "id"]).head(20_000))
    read_back(both)
    with ThreadPoolExecutor(4) as pool:
        for number, part in enumerate(pool.map(churn, range(4))):
            show(f"thread {number}", part)


main()
