"""What is written into a recording is what is read: blocks of every length, anything in them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from hakmem.history import history
from hakmem.record_command import BLOCK_EVENTS
from hakmem.recording import FREE, Chunks, Reader, Writer, numpy
from hakmem.ring import CHUNK_EVENTS
from tests.record.recorded import MARK, Recorded

LENGTHS = (0, 1, 2, CHUNK_EVENTS - 1, CHUNK_EVENTS, CHUNK_EVENTS + 1, BLOCK_EVENTS)
COLUMNS = ("threads", "counts", "orders", "ticks", "times", "events")


def _numbers(chance: random.Random, kind: str, count: int) -> Any:
    found = numpy().frombuffer(chance.randbytes(count * int(kind[-1])), dtype=kind).copy()
    if chance.random() < 0.3:
        found[:] = chance.choice((0, numpy().iinfo(kind).max))
    return found


def _chunks(chance: random.Random, length: int) -> Chunks:
    """Of so many events, in chunks of any length, none included."""
    ends = sorted(chance.randrange(length + 1) for _ in range(chance.choice((0, 0, 1, 5, 40))))
    counts = numpy().diff([0, *ends, length]).astype("<u4")
    threads = _numbers(chance, "<u4", len(counts))
    orders, ticks, times = (_numbers(chance, "<u8", len(counts)) for _ in range(3))
    words = _numbers(chance, "<u8", 2 * length).reshape(length, 2)
    return Chunks(threads, counts, orders, ticks, times, words)


def _columns(chunks: Chunks) -> list[tuple[str, bytes]]:
    """As they are now: writing changes them."""
    columns = [getattr(chunks, name) for name in COLUMNS]
    return [(column.dtype.str, column.tobytes()) for column in columns]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_written_is_read(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    some = [chance.choice((*LENGTHS[:-1], chance.randrange(3000))) for _ in range(12)]
    writer = Writer(tmp_path / "a.recording")
    written: list[tuple[object, ...]] = []
    for length in LENGTHS if seed == 0 else some:
        process = chance.randrange(9)
        facts = {"process": process, "maps": "x" * chance.randrange(3)}
        chunks = _chunks(chance, length)
        written += [(b"MAPS", facts), (b"EVTS", process, _columns(chunks))]
        writer.said(b"MAPS", facts)
        writer.events(process, chunks)
    writer.close()
    reader = Reader(writer.path)
    read: list[tuple[object, ...]] = []
    for block in reader:
        if block.head is None:
            read.append((block.kind, block.facts))
            continue
        (chunks,) = Reader(writer.path).events([block.at])
        chunks.events = chunks.events.both
        read.append((block.kind, block.process, _columns(chunks)))
    assert reader.whole
    assert read == written


def test_one_call_after_a_pause(recorded: Recorded) -> None:
    """It is a block of the file by itself where the recorder looked in the pause."""
    for _ in range(20):
        recorded.run("once_more")
        found, whole = recorded.processes()
        assert whole and all(process.done is not None for process in found)
        first = next(process for process in found if process.facts["parent"] == 0)
        calls, _ = history(first)
        marked = int(calls.address[calls.size.tolist().index(MARK)])
        assert (calls.kind[-1], calls.address[-1]) == (FREE, marked)
        assert "damaged" not in recorded.trace().stderr
        if 1 in [part.count for part in first.parts]:
            return
    pytest.fail("the recorder never looked in the pause")
