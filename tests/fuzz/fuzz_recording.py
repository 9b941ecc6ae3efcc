#!/usr/bin/env python3
"""Recordings that are damaged or forged: `hakmem trace` and `hakmem replay` read them up to there,
or say what is wrong. Takes libFuzzer's arguments (run.py); driven by Atheris, and skipped where
that is not there."""

from __future__ import annotations

import io
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77

try:
    import atheris
except ImportError:
    print("SKIPPED [1] fuzz_recording.py: Atheris is only installed for Python 3.11 on x86-64")
    sys.exit(SKIPPED)

sys.path.insert(0, str(ROOT / "python"))
with atheris.instrument_imports(include=["hakmem"]):
    from hakmem import events, ops, traced
    from hakmem.recording import Chunks, NoRecording, Writer, numpy

np = numpy()

FILE = Path(tempfile.mkdtemp(prefix="hakmem-fuzz-")) / "recording"
FACTS = {
    "process": 0,
    "pid": 7,
    "parent": 1,
    "command": ["a"],
    "tick_shift": 2,
    "ticks": 0,
    "time": 0,
}
MAPS = "400000-500000 r-xp 00000000 08:01 1 /bin/a\n"


def _read() -> None:
    """As the commands do, and all that they read is used."""
    try:
        found, _ = events.processes(FILE)
        for process in found:
            told = traced.traced(process)
            assert told.peak >= told.left >= 0 or not told.blocks
            made = ops.made(process)
            ops.write(made, io.BytesIO())
            assert int(made.counts.sum()) == len(made.ops)
            assert made.parts.min() >= 1
    except NoRecording:
        pass


def raw(data: bytes) -> None:
    """Bytes of a file."""
    FILE.write_bytes(b"hakmem recording 1\n" + data)
    _read()


def forged(data: bytes) -> None:
    """A sound file, with events that no program makes."""
    length = len(data) // 16 * 16
    if length == 0:
        return
    chunks = max(data[0] % 5, 1)
    words = np.frombuffer(data[:length], dtype="<u8").reshape(-1, 2).copy()
    if data[1] % 2:  # few kinds, addresses and sizes, so that they meet
        words[:, 0] = words[:, 0] & 0x7 | (words[:, 0] >> 8 & 0x7) << 44 | words[:, 0] & 3 << 47
        words[:, 1] &= 0xFFFF_00FF_FFFF
    counts = np.full(chunks, len(words) // chunks, dtype="<u4")
    counts[-1] += len(words) - int(counts.sum())
    clock = np.arange(chunks, dtype="<u8") * (data[2] + 1)
    writer = Writer(FILE)
    writer.said(b"PROC", FACTS)
    writer.said(b"MAPS", {"process": 0, "maps": MAPS})
    looks = [[int(word), int(word) % 70] for word in words[:4, 0]]
    writer.said(b"SEEN", {"process": 0, "time": 5, "blocks": looks})
    threads = (np.arange(chunks) % (data[3] % 3 + 1) + 7).astype("<u4")
    writer.events(0, Chunks(threads, counts, clock, clock * 4, clock, words))
    writer.said(b"DONE", {"process": 0, "lost": 0, "waited_ns": 0})
    writer.close()
    _read()


def facts(data: bytes) -> None:
    """A sound file with one fact changed."""
    kinds = (b"PROC", b"MAPS", b"SEEN", b"DONE")
    changed: dict[str, object] = dict(FACTS, maps=MAPS, lost=0, waited_ns=0, blocks=[[16, 1]])
    names = list(changed)
    if len(data) < 3:
        return
    try:
        changed[names[data[1] % len(names)]] = json.loads(data[2:])
    except ValueError:
        return
    writer = Writer(FILE)
    writer.said(b"PROC", FACTS)
    writer.said(kinds[data[0] % len(kinds)], changed)
    writer.close()
    _read()


READERS = (raw, forged, facts)


def one_input(data: bytes) -> None:
    if data:
        READERS[data[0] % len(READERS)](data[1:])


atheris.Setup(sys.argv, one_input)
atheris.Fuzz()
