"""Python's packages for data, from wheels in an environment of their own: see packages.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.programs import inputs_tables
from tests.programs.harness import SCRIPTS, Case, Run, nothing, script
from tests.programs.packages import PYTHON

GROUP = "python packages"
ENV = {
    "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1",
    "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "POLARS_MAX_THREADS": "2",
    # Threads that wait by spinning would count as work on a busy machine.
    "OMP_WAIT_POLICY": "passive",
}  # fmt: skip


def ours(file: str) -> Callable[[Run], None]:
    return script(PYTHON, file=file, with_input=True)


def shop(rows: int) -> Callable[[Path], None]:
    return lambda folder: inputs_tables.shop(folder, rows)


def pyarrow(run: Run) -> None:
    """With Arrow's pool as it comes, and with that of malloc, in which hakmem has all."""
    command = (PYTHON, str(SCRIPTS / "work_pyarrow.py"), str(run.input))
    for pool in ("default", "system"):
        run.step(pool, *command, pool, watch=True)


CASES = (
    Case(
        "duckdb", (PYTHON,), nothing, ours("work_duckdb.py"), (PYTHON, "-c", "import duckdb"),
        ("python",), may_differ=("shop.duckdb*",), env=ENV, wheels=("duckdb",), group=GROUP,
        what="400,000 rows: joins, aggregates, windows, changes, CSV and Parquet and back; "
        "four threads",
        note="its tables and vectors lie in its own jemalloc; the rest, and Python, in malloc; "
        "its database file is read, not compared",
    ),
    Case(
        "polars", (PYTHON,), shop(150_000), ours("work_polars.py"),
        (PYTHON, "-c", "import polars"), ("python",), env=ENV, wheels=("polars",), group=GROUP,
        what="two million rows: group by, joins, windows, lazy scans, streams; four threads",
        note="what is written in Rust, nearly all, keeps to its own jemalloc",
    ),
    Case(
        "pandas", (PYTHON,), shop(150_000), ours("work_pandas.py"), (PYTHON, "-c", "import pandas"),
        ("python",), env={**ENV, "ARROW_DEFAULT_MEMORY_POOL": "system"},
        wheels=("pandas", "numpy", "pyarrow"), group=GROUP,
        what="150,000 rows: read_csv, merge, groupby, pivots, text, SQLite, JSON; four threads",
        note="Arrow, in which its strings lie, set to malloc; floating point to six digits",
    ),
    Case(
        "scikit-learn", (PYTHON,), nothing, ours("work_sklearn.py"),
        (PYTHON, "-c", "import sklearn.ensemble"), ("python",),
        env=ENV, wheels=("scikit-learn", "numpy", "scipy"), group=GROUP,
        what="forests, boosting, k-means, neighbours, text; in threads and in processes",
        note="floating point to six digits",
    ),
    Case(
        "pyarrow", (PYTHON,), shop(150_000), pyarrow, (PYTHON, "-c", "import pyarrow"), ("python",),
        env=ENV, wheels=("pyarrow",), group=GROUP,
        what="120,000 rows: compute, joins, Parquet, datasets, streams; four threads; twice",
        note="first with its own pool of mimalloc, then with that of malloc",
    ),
)  # fmt: skip
