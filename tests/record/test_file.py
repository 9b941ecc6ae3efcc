"""The reader of recordings, given what no recorder wrote."""

from __future__ import annotations

import json
import random
import struct
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from hakmem import events, recording, traced
from hakmem.recording import NoRecording, zstandard
from tests.record.recorded import Recorded

TRIES = 300


@pytest.fixture
def whole(recorded: Recorded) -> bytes:
    recorded.run("work", "3000")
    return recorded.file.read_bytes()


def _read(path: Path) -> bool:
    """All of it; whether it is whole."""
    try:
        found, complete = events.processes(path)
    except NoRecording:
        return False
    for process in found:
        with suppress(NoRecording):
            traced.traced(process)
    return complete


def test_cut_off(whole: bytes, tmp_path: Path) -> None:
    file = tmp_path / "cut"
    chance = random.Random(1)
    ends = set(_ends(whole))
    for at in [*range(60), *(chance.randrange(len(whole)) for _ in range(TRIES))]:
        file.write_bytes(whole[:at])
        assert _read(file) == (at in ends), at
    file.write_bytes(whole)
    assert _read(file)


def _ends(data: bytes) -> list[int]:
    """Where blocks end."""
    at = len(recording.FIRST_LINE)
    found = [at]
    while at < len(data):
        at += 12 + struct.unpack_from("<I", data, at + 4)[0]
        found.append(at)
    return found


def test_damaged(whole: bytes, tmp_path: Path) -> None:
    """A check over each block finds a byte that changed."""
    file = tmp_path / "damaged"
    chance = random.Random(2)
    for _ in range(TRIES):
        data = bytearray(whole)
        at = chance.randrange(len(data))
        data[at] ^= chance.randrange(1, 256)
        file.write_bytes(data)
        assert not _read(file), at


def test_forged(whole: bytes, tmp_path: Path) -> None:
    """With a right check, and anything in it."""
    file = tmp_path / "forged"
    chance = random.Random(3)
    blocks = [whole[a + 12 : b] for a, b in zip(_ends(whole), _ends(whole)[1:], strict=False)]
    kinds = [whole[a : a + 4] for a in _ends(whole)[:-1]]
    compressor = zstandard().ZstdCompressor()
    for _ in range(TRIES):
        made = bytearray(recording.FIRST_LINE)
        for kind, block in zip(kinds, blocks, strict=True):
            content = bytearray(zstandard().ZstdDecompressor().decompress(block, 2**30))
            for _ in range(chance.choice((0, 1, 1, 5, 50))):
                content[chance.randrange(len(content))] = chance.randrange(256)
            if chance.random() < 0.1:
                del content[chance.randrange(len(content)) :]
            packed = compressor.compress(bytes(content))
            made += kind + struct.pack("<II", len(packed), zlib.crc32(packed)) + packed
        file.write_bytes(made)
        _read(file)


def test_strange_facts(tmp_path: Path) -> None:
    file = tmp_path / "strange"
    strange: tuple[object, ...] = {}, [], 1, {"process": "x"}, {"process": 1}, {"process": 0}
    for facts in strange:
        packed = zstandard().ZstdCompressor().compress(json.dumps(facts).encode())
        head = b"PROC" + struct.pack("<II", len(packed), zlib.crc32(packed))
        file.write_bytes(recording.FIRST_LINE + head + packed)
        _read(file)
