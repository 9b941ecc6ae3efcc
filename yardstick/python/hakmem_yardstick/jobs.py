"""Where jobs are done: here, one after the other, or on the workers of a Dask cluster. Both are
executors of concurrent.futures."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import hakmem
from hakmem.arguments import WrongUse
from hakmem.modules import need
from hakmem.recording import NoRecording
from hakmem_yardstick.replay import CannotReplay

SECONDS = 10  # in which a scheduler has to answer, and to have a worker
PARTS = [str(Path(file).parents[1]) for file in (hakmem.__file__, __file__)]

T = TypeVar("T")


@contextmanager
def executor(cluster: str | None, files: Iterable[Path] = ()) -> Iterator[Executor]:
    """`files` are those that jobs read. Raises WrongUse where there is no cluster at the address,
    or one that can't do them, NoModule without Dask."""
    if cluster is None:
        # One at a time: two at once would slow each other down.
        here = ThreadPoolExecutor(1)
        try:
            yield here
        finally:
            here.shutdown(cancel_futures=True)
        return
    (distributed,) = need("distributed")
    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)  # what matters is told here
    try:
        client = _client(distributed, cluster)
    except Exception as why:  # of many kinds: each part of an address may be wrong
        said = "" if isinstance(why, asyncio.TimeoutError) else str(why)
        raise WrongUse(f"--cluster {cluster}: {said or 'no answer'}") from why
    with client, client.get_executor(pure=False) as there:
        _check(client, cluster, list(files))
        yield there


def result(future: Future[T]) -> T:
    """Of a job. Raises what the job raises, and CannotReplay where a cluster has lost it."""
    try:
        return future.result()
    except (OSError, NoRecording, CannotReplay, WrongUse):
        raise
    except Exception as why:
        raise CannotReplay(f"a replay was lost: {type(why).__name__}: {why}") from why


def _client(distributed: Any, cluster: str) -> Any:
    """Raises anything."""
    # Asked first, since a client that finds none takes long to give up, and complains at the end.
    found = asyncio.run(asyncio.wait_for(_identity(distributed, cluster), SECONDS))
    if found.get("type") != "Scheduler":
        raise ValueError(f"expected a scheduler's address, this is that of a {found.get('type')}")
    return distributed.Client(cluster, timeout=SECONDS, set_as_default=False)


async def _identity(distributed: Any, cluster: str) -> Any:
    arguments = distributed.Security().get_connection_args("client")
    async with distributed.rpc(cluster, timeout=SECONDS, connection_args=arguments) as scheduler:
        return await scheduler.identity()


# Has no name that the other side would have to look up.
_TRY = """
import os, sys
sys.path += [part for part in {parts} if part not in sys.path]
import hakmem_yardstick.replay
for file in {files}:
    os.stat(file)
"""


def _check(client: Any, cluster: str, files: list[Path]) -> None:
    """Raises WrongUse where a worker, or the scheduler, lacks what jobs need."""
    try:
        client.wait_for_workers(1, timeout=SECONDS)
    except Exception as why:
        raise WrongUse(f"--cluster {cluster}: it has no workers") from why
    here = _TRY.format(parts=PARTS, files=[])
    there = _TRY.format(parts=PARTS, files=[str(file) for file in files])
    try:
        client.run_on_scheduler(exec, here, {})
        who = client.run(exec, there, {}, on_error="return")
    except Exception as why:
        _refuse(cluster, "the scheduler", why)
    for worker, found in who.items():
        if isinstance(found, Exception):
            _refuse(cluster, f"the worker {worker}", found)


def _refuse(cluster: str, who: str, why: Exception) -> None:
    raise WrongUse(
        f"--cluster {cluster}: {who}: {why}. The scheduler and each worker need hakmem's Python"
        f" part in {' and '.join(dict.fromkeys(PARTS))}, numpy and zstandard; each worker also the"
        " recordings and the allocators, at the same paths"
    ) from why
