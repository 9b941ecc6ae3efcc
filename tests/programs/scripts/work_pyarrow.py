"""Tables of Arrow: CSV, compute functions, joins, Parquet, datasets, IPC, Python objects, threads.

Usage: work_pyarrow.py FOLDER POOL, where FOLDER holds customers.csv and orders.csv and POOL is
where Arrow's buffers come from: `default` or `system`. Prints of each table a hash of its rows.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet

ROWS = 120_000


def show(name: str, table: pa.Table) -> None:
    out = pa.BufferOutputStream()
    pa.csv.write_csv(table.combine_chunks(), out)
    print(name, table.shape, hashlib.sha256(out.getvalue()).hexdigest()[:16])


def generated() -> pa.Table:
    """Each column by a chain of compute functions, whose results come and go."""
    number = pa.array(range(ROWS), pa.int64())

    def remainder(times: int, by: int) -> pa.Array:
        product = pc.multiply(number, times)
        return pc.subtract(product, pc.multiply(pc.divide(product, by), by))

    words = pa.array([f"word {n}" for n in range(997)]).take(remainder(104_729, 997))
    note = pc.binary_join_element_wise(words, pc.cast(remainder(31, 89), pa.string()), " of ")
    return pa.table(
        {
            "id": number,
            "key": remainder(7919, 50_021),
            "part": remainder(15_485_863, 8),
            "cents": remainder(2_654_435_761, 100_000),
            "word": words.dictionary_encode(),
            "note": note,
        }
    )


def computed(table: pa.Table) -> None:
    groups = table.group_by("key").aggregate(
        [("cents", "sum"), ("id", "max"), ("note", "count_distinct")]
    )
    show("groups", groups.sort_by("key"))
    order = pc.sort_indices(table, [("note", "ascending"), ("id", "descending")])
    show("sorted", table.take(order).slice(0, 30_000))
    show("filtered", table.filter(pc.match_substring_regex(table["note"], "7+ of .*3$")))
    counts = pc.value_counts(pc.utf8_upper(table["note"]))
    show("counts", pa.Table.from_struct_array(counts).sort_by("values").slice(0, 20_000))
    split = pc.split_pattern(table["note"].combine_chunks().slice(0, 60_000), " ")
    show("split", pa.table({"word": pc.list_flatten(split)}))
    print("running", pc.sum(pc.cumulative_sum(pc.bit_wise_and(table["cents"], 1023))).as_py())


def shop(folder: Path) -> None:
    orders = pa.csv.read_csv(folder / "orders.csv")
    customers = pa.csv.read_csv(folder / "customers.csv")
    joined = orders.join(customers, "customer", join_type="left outer").sort_by("id")
    show("joined", joined)
    show("strangers", orders.join(customers, "customer", join_type="left anti").sort_by("id"))
    records = joined.slice(0, 20_000).to_pylist()
    print("records", len(records), sum(len(record["note"] or "") for record in records))
    again = pa.Table.from_pylist(records, schema=joined.schema)
    print("objects", again.equals(joined.slice(0, 20_000).combine_chunks()))


def read_back(table: pa.Table) -> None:
    """What is written comes back the same, whole and in part."""
    for compression in ("zstd", "snappy", "gzip"):
        file = f"{compression}.parquet"
        pa.parquet.write_table(table, file, compression=compression, row_group_size=30_000)
        print(compression, pa.parquet.read_table(file).equals(table))
    pa.feather.write_feather(table, "all.feather", compression="lz4")
    print("feather", pa.feather.read_table("all.feather", memory_map=False).equals(table))
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table, max_chunksize=5000)
    print("stream", pa.ipc.open_stream(out.getvalue()).read_all().equals(table))
    kind = pa.dataset.partitioning(pa.schema([("part", pa.int64())]), flavor="hive")
    pa.dataset.write_dataset(table, "parts", format="parquet", partitioning=kind)
    parts = pa.dataset.dataset("parts", partitioning=kind)
    field = pa.dataset.field
    wanted = parts.to_table(columns=["id", "note"], filter=(field("part") < 3) & (field("key") > 9))
    show("dataset", wanted.sort_by("id"))
    shutil.rmtree("parts")


def churn(seed: int) -> int:
    """Arrays of many sizes that come and go in one thread, beside those of the others."""
    kept: dict[int, pa.Array] = {}
    total = 0
    for number in range(200):
        rows = int(10 ** ((seed * 7919 + number * 104_729) % 1000 / 220)) + 1
        kept[number % 60] = pa.array(range(rows), pa.int64())
        if number % 3 == 0:
            one = pc.cast(kept.pop(number % 60), pa.string())
            total += len(pc.unique(pc.utf8_slice_codeunits(one, 0, 2))) + one.nbytes
    return total


def main() -> None:
    folder, pool = Path(sys.argv[1]), sys.argv[2]
    if pool == "system":
        pa.set_memory_pool(pa.system_memory_pool())
    print("buffers come from", pa.default_memory_pool().backend_name)
    pa.set_cpu_count(2)
    table = generated()
    computed(table)
    shop(folder)
    read_back(table)
    with ThreadPoolExecutor(4) as threads:
        for number, total in enumerate(threads.map(churn, range(4))):
            print("thread", number, total)
    pa.default_memory_pool().release_unused()


main()
