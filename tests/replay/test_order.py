"""Whether all calls are made, in an order that the program could have had."""

from __future__ import annotations

from typing import Any

import pytest

from hakmem import events, ops
from hakmem.ops import END, EPOCH, OP_CALLOC, OP_FREE, OP_MALLOC, OP_REALLOC, OP_TAKE, START
from tests.replay.replayed import Replayed


def _made(replayed: Replayed) -> ops.Ops:
    found, whole = events.processes(replayed.file)
    assert whole
    return ops.made(max(found, key=events.calls_of))


def _streams(made: ops.Ops) -> list[list[tuple[int, int, int]]]:
    """Of each thread, its operations: kind, slot, size."""
    bits = made.ops["bits"].tolist()
    kinds = [each & 15 for each in bits]
    slots, sizes = made.ops["slot"].tolist(), made.ops["size"].tolist()
    all_of_them = list(zip(kinds, slots, sizes, strict=True))
    streams = []
    at = 0
    for count in made.counts.tolist():
        streams.append(all_of_them[at : at + count])
        at += count
    return streams


def _play(streams: list[list[tuple[int, int, int]]], last_first: bool) -> tuple[int, int]:
    """Epoch by epoch, threads by turns, as far as each gets. Returns blocks allocated and freed;
    fails where a thread would wait for ever, or a slot is used wrongly."""
    held: dict[int, int] = {}
    hand: set[int] = set()
    position = [0] * len(streams)
    taken = freed = epoch = 0
    running = {0}
    while any(position[thread] < len(streams[thread]) for thread in range(len(streams))):
        moved = False
        for thread in sorted(running, reverse=last_first):
            stream = streams[thread]
            while position[thread] < len(stream):
                kind, slot, size = stream[position[thread]]
                if kind == EPOCH:
                    if slot > epoch:
                        break
                elif kind == START:
                    running = running | {slot}
                elif kind == END:
                    if position[slot] < len(streams[slot]):
                        break
                elif kind in (OP_MALLOC, OP_CALLOC):
                    assert slot not in held
                    held[slot] = size
                    taken += 1
                elif kind == OP_REALLOC and thread in hand:
                    assert slot not in held
                    hand.discard(thread)
                    held[slot] = size
                elif slot not in held:
                    break
                elif kind == OP_FREE:
                    del held[slot]
                    freed += 1
                elif kind == OP_REALLOC:
                    held[slot] = size
                elif kind == OP_TAKE:
                    del held[slot]
                    hand.add(thread)
                position[thread] += 1
                moved = True
        waiting = [
            stream[position[thread]][1]
            for thread, stream in enumerate(streams)
            if thread in running
            and position[thread] < len(stream)
            and stream[position[thread]][0] == EPOCH
        ]
        if not moved:
            assert waiting and min(waiting) > epoch, "threads wait for each other"
            epoch = min(waiting)
    return taken, freed


@pytest.mark.parametrize("words", [("live",), ("threads", "200"), ("moves",)])
def test_every_call_in_order(replayed: Replayed, words: tuple[str, ...]) -> None:
    replayed.record(*words)
    made = _made(replayed)
    streams = _streams(made)
    kinds: dict[int, int] = {}
    for stream in streams:
        for kind, _, _ in stream:
            kinds[kind] = kinds.get(kind, 0) + 1
    for last_first in (False, True):
        taken, freed = _play(streams, last_first)
        assert taken == kinds[OP_MALLOC] + kinds.get(OP_CALLOC, 0)
        assert freed == kinds[OP_FREE]
    if words[0] == "threads":
        assert len(streams) >= 200 and kinds[START] == kinds[END] == len(streams) - 1
        assert taken > 80_000
    if words[0] == "moves":
        assert kinds[OP_REALLOC] > 2000


def test_epochs_keep_the_peak(replayed: Replayed) -> None:
    replayed.record("live")
    made = _made(replayed)
    assert int(made.live.max()) == made.peak
    assert (made.times[1:] >= made.times[:-1]).all()
    assert made.parts.min() == 1


def test_many_threads(replayed: Replayed) -> None:
    replayed.record("threads", "1500")
    found = replayed.figures("--with", "hakmem,glibc", "--speed", "0")
    assert set(found) == {"hakmem", "glibc"}


def test_a_free_noted_before_its_allocation(replayed: Replayed) -> None:
    """Two processors' clocks differ by some 100 ns."""
    from hakmem.history import NEVER, Blocks, Events
    from hakmem.recording import FREE, MALLOC, numpy

    np = numpy()

    def column(*values: int) -> Any:
        return np.array(values, dtype="i8")

    calls = Events(
        kind=column(MALLOC, FREE, MALLOC),
        address=column(32, 64, 64),
        former=column(0, 0, 0),
        size=column(8, 0, 8),
        align=column(0, 0, 0),
        path=column(0, 0, 0),
        thread=column(7, 8, 7),
        time=column(1, 2, 3),
    )
    held = Blocks(column(0, 2), column(NEVER, 1), column(8, 8), column(0, 0), 0, 0)
    rows = ops._rows(calls, held, column(0, 1, 0), column(1, 1))
    kinds = rows["kind"][np.argsort(rows["at"], kind="stable")].tolist()
    assert kinds == [OP_MALLOC, OP_MALLOC, OP_FREE]
    assert set(rows["thread"].tolist()) == {0}
