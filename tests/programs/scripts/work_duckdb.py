"""A shop's orders in DuckDB: joins, aggregates, windows, changes, CSV and Parquet, four threads.

Prints of each query the number of rows and a hash of them.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

import duckdb

ROWS = 400_000
TABLES = f"""
CREATE TABLE customers AS SELECT i AS customer, 'customer ' || md5(CAST(i AS VARCHAR)) AS name,
    'region ' || i * 7919 % 37 AS region FROM range(20000) AS t(i);
CREATE TABLE orders AS SELECT i AS id, i * 7919 % 20011 AS customer,
    DATE '2020-01-01' + CAST(i * 31 % 1500 AS INTEGER) AS day, i * 104729 % 997 AS kind,
    1 + i * 15485863 % 12 AS pieces, i * 2654435761 % 100000 AS cents,
    'note ' || md5(CAST(i * 31 % 20011 AS VARCHAR)) || ' of ' || i % 89 AS note
    FROM range({ROWS}) AS t(i);
"""
QUERIES = {
    "kinds": """SELECT kind, count(*), sum(cents), min(note), max(note), count(DISTINCT customer)
        FROM orders GROUP BY kind ORDER BY kind""",
    "join": """SELECT region, year(day) AS y, month(day) AS m, count(*), sum(cents * pieces)
        FROM orders JOIN customers USING (customer) GROUP BY ALL ORDER BY ALL""",
    "names": """SELECT name, count(*) AS n, max(note) FROM orders JOIN customers USING (customer)
        WHERE cents > 50000 GROUP BY name ORDER BY n DESC, name LIMIT 3000""",
    "pairs": """SELECT a.customer, count(*) AS n, sum(b.cents) FROM orders a JOIN orders b
        ON b.id = a.id + 1 AND b.kind % 7 < a.kind % 7 GROUP BY a.customer
        ORDER BY n DESC, a.customer LIMIT 2000""",
    "strangers": """SELECT id, customer FROM orders ANTI JOIN customers USING (customer)
        ORDER BY id LIMIT 5000""",
    "windows": """SELECT * FROM (SELECT id, customer,
        rank() OVER (PARTITION BY customer ORDER BY cents DESC, id) AS place,
        sum(cents) OVER (PARTITION BY customer ORDER BY id ROWS 20 PRECEDING) AS recent
        FROM orders WHERE id % 3 = 0) WHERE place < 3 ORDER BY id""",
    "lists": """SELECT customer, list(kind ORDER BY id), string_agg(left(note, 9), '|' ORDER BY id)
        FROM orders WHERE customer < 3000 GROUP BY customer ORDER BY customer""",
    "words": """SELECT word, count(*) AS n FROM (SELECT unnest(string_split(
        regexp_replace(note, '[0-9]+', ' ', 'g'), ' ')) AS word FROM orders WHERE id % 9 = 0)
        GROUP BY word ORDER BY n DESC, word LIMIT 2000""",
    "median": """SELECT pieces, quantile_disc(cents, [0.1, 0.5, 0.9]), approx_count_distinct(note)
        FROM orders GROUP BY pieces ORDER BY pieces""",
    "recursive": """WITH RECURSIVE chain(n, k) AS (SELECT 1, 7 UNION ALL
        SELECT n + 1, k * 31 % 20011 FROM chain WHERE n < 400)
        SELECT n, k, (SELECT count(*) FROM orders WHERE customer = k) FROM chain ORDER BY n""",
}
ROUND_TRIP = """
COPY (SELECT * FROM orders ORDER BY id) TO 'orders.csv' (HEADER);
COPY (SELECT * FROM orders ORDER BY id) TO 'orders.parquet' (FORMAT parquet, COMPRESSION zstd);
CREATE TABLE from_csv AS SELECT * FROM read_csv('orders.csv');
CREATE TABLE from_parquet AS SELECT * FROM read_parquet('orders.parquet');
"""
CHANGES = """
UPDATE orders SET note = note || ' changed', cents = cents + 1 WHERE id % 7 = 0;
DELETE FROM orders WHERE id % 3 = 1;
INSERT INTO orders SELECT id + 10000000, customer, day, kind, pieces, cents, note FROM orders
    WHERE kind < 100;
CREATE INDEX by_id ON orders(id);
CHECKPOINT;
CREATE TABLE sorted AS SELECT * FROM orders ORDER BY note, id;
"""


def show(connection: duckdb.DuckDBPyConnection, name: str, query: str) -> str:
    rows = connection.execute(query).fetchall()
    return f"{name} {len(rows)} {hashlib.sha256(repr(rows).encode()).hexdigest()[:16]}"


def main() -> None:
    with duckdb.connect("shop.duckdb") as shop:
        shop.execute("SET threads = 2")
        shop.execute(TABLES)
        for name, query in QUERIES.items():
            print(show(shop, name, query))
        shop.execute(ROUND_TRIP)
        for copy in ("from_csv", "from_parquet"):
            for one, other in (("orders", copy), (copy, "orders")):
                rest = f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})"
                print(f"{one} without {other}", shop.execute(rest).fetchone())
        shop.execute(CHANGES)
        cursors = [(shop.cursor(), name, query) for name, query in QUERIES.items()]
        with ThreadPoolExecutor(4) as pool:
            for line in pool.map(lambda job: show(*job), cursors):
                print("changed", line)
        columns = shop.execute("SELECT id, cents FROM sorted").fetchnumpy()
        print("columns", len(columns["id"]), int((columns["id"] * columns["cents"] % 997).sum()))
        print(show(shop, "sorted", "SELECT id, note FROM sorted LIMIT 20000"))


main()
