"""How much memory a replay needs, against the program itself."""

from __future__ import annotations

import ctypes
import mmap
import os

import pytest

from tests.replay.replayed import Replayed


def _near(kib: float, program: str, part: float = 0.1) -> bool:
    return abs(kib / int(program) - 1) < part


@pytest.mark.parametrize("what", ["live", "sparse"])
def test_peak(replayed: Replayed, what: str) -> None:
    """The system's malloc too: what is recorded on one allocator is replayed on another."""
    replayed.record(what)
    found = replayed.figures("--with", "hakmem,glibc")
    for name, library in (("hakmem", replayed.library), ("glibc", None)):
        real = replayed.real(library, what)
        peak = found[name][0]["peak"] / 1024
        # What any program has besides its heap, and pages that were begun, and hardly more.
        assert _near(peak - 150, real), f"{name}: replay {peak:.0f} KiB, program {real}"


def test_curve(replayed: Replayed) -> None:
    replayed.record("live")
    one = replayed.figures("--with", "hakmem")["hakmem"][0]
    times = [at for at, _ in one["curve"]]
    assert times == sorted(times) and len(times) > 10
    assert max(size for _, size in one["curve"]) == one["peak"]
    assert 0 < one["mean"] <= one["peak"]


def test_settings_count(replayed: Replayed) -> None:
    """A candidate's settings reach the player: one that keeps freed memory has more of it."""
    replayed.record("moves")
    keeps = "hakmem+keep_bytes=4G"
    gives = "hakmem+keep_bytes=0"
    found = replayed.figures("--with", f"{keeps},{gives}", "--speed", "0")
    assert found[gives][0]["faults"] > 1.5 * found[keeps][0]["faults"]


def test_pages_of_another_size_of_block(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks nobody looked at are taken for like those of their size or call path."""
    from hakmem import events, touched
    from hakmem.history import history

    replayed.record("sparse")
    found, _ = events.processes(replayed.file)
    process = max(found, key=events.calls_of)
    assert process.looks, "nobody looked"
    seen = [(when, blocks[::2]) for when, blocks in events.looks(process)]
    monkeypatch.setattr(touched, "looks", lambda _: seen)
    calls, held = history(process)
    pages = touched.touched(process, calls, held)
    large = held.size == 4 << 20
    assert large.sum() == 24
    # A look may have come while a block was being filled.
    assert (abs(pages[large] - 256) < 40).sum() >= 20, pages[large]


def test_pages_of_a_block_above_4_gib() -> None:
    """About as many as were written to, at the begin or at the end."""
    import numpy as np

    from hakmem import touched
    from hakmem.recording import MALLOC, MORE

    no_reserve = 0x4000  # MAP_NORESERVE, which Python's module has from 3.13 on
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve
    size, part = 4 << 30, 64 << 20
    with mmap.mmap(-1, size, flags=flags) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        byte = ctypes.c_char.from_buffer(memory)
        address = ctypes.addressof(byte)
        del byte
        looks = touched.Looks(os.getpid())
        made = [(MORE << 44, size >> 32), (MALLOC << 44 | address >> 4, (size & 2**32 - 1) << 32)]
        looks.note(np.array(made, dtype="<u8"))
        assert looks.look() == [(address, 0)] and looks.look() == []
        for begin in 0, size - part:
            for at in range(begin, begin + part, mmap.PAGESIZE):
                memory[at] = 1
            pages = (begin // (size - part) + 1) * part // mmap.PAGESIZE
            ((where, here),) = looks.look()
            assert where == address and abs(here / pages - 1) < 0.5, (here, pages)
        looks.close()
