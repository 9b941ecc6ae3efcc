"""Where jobs are done: here, one after the other, or on the workers of a Dask cluster. Both are
executors of concurrent.futures."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from hakmem.arguments import WrongUse
from hakmem.modules import need


@contextmanager
def executor(cluster: str | None) -> Iterator[Executor]:
    """Raises WrongUse where there is no cluster at the address, NoModule without Dask."""
    if cluster is None:
        # One at a time: two at once would slow each other down.
        here = ThreadPoolExecutor(1)
        try:
            yield here
        finally:
            here.shutdown(cancel_futures=True)
        return
    (distributed,) = need("distributed")
    try:
        client = distributed.Client(cluster, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as why:
        raise WrongUse(f"--cluster {cluster}: {why}") from why
    with client, client.get_executor(pure=False) as there:
        yield there
