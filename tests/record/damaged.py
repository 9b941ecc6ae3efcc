#!/usr/bin/env python3
"""Damages recordings by chance and reads them as `hakmem trace` does: there is one line that says
what is wrong, or the figures of what comes before the damage.

    tests/record/damaged.py [INPUTS [SEED]]
"""

from __future__ import annotations

import random
import signal
import struct
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from hakmem import checkpoints, events, moments, trace_page, trace_text, traced  # noqa: E402
from hakmem.recording import FIRST_LINE, NoRecording, zstandard  # noqa: E402
from tests.record.made import Made  # noqa: E402

SECONDS = 20  # of processor time that no input may take


def blocks(data: bytes) -> list[bytes]:
    """Each whole, without the first line."""
    found = []
    at = len(FIRST_LINE)
    while at < len(data):
        length = 12 + struct.unpack_from("<I", data, at + 4)[0]
        found.append(data[at : at + length])
        at += length
    return found


def told(path: Path) -> str:
    """What is said of the file: the figures, or a line. All else that is raised is a defect."""
    try:
        found, cut = events.recordings([path])
        result = traced.traced(events.chosen(found, None, path))
        lines = [*trace_text.notes(result), *trace_text.head(result), str(hash(result.curve))]
        lines += trace_text.plain(trace_text.processes([result]))
        lines += [*trace_text.plain(trace_text.lifetimes([result])), str(result.profile.sites)]
        paths = trace_page.paths(result)
        lines.append(str(paths))
        assert sum(sum(path.changes[4::5]) for path in paths) == result.left
        assert result.peak >= result.left >= 0
        lines.append(part_told(path, result))
        return "\n".join([str(cut), *lines])
    except NoRecording as why:
        assert "\n" not in str(why) and str(path) in str(why)
        return f"error: {why}"


def part_told(path: Path, whole: traced.Traced) -> str:
    """The middle of it, with an index, which is written beside the file."""
    found, _ = events.recordings([path])
    process = events.chosen(found, None, path)
    index = checkpoints.beside(path)
    with checkpoints.Index(index, found) as written:
        assert traced.traced(process, index=written).curve == whole.curve
    bounds = (process.since + whole.seconds / 3, process.since + whole.seconds / 2)
    known = checkpoints.Checkpoints(index, found)
    result = traced.traced(process, part=bounds, checkpoints=known)
    assert result.peak >= result.left >= 0
    return f"{list(trace_text.head(result))} {hash(result.curve)} {result.profile.sites}"


def takes_too_long(*_: object) -> NoReturn:
    raise TimeoutError(f"more than {SECONDS} seconds of processor time")


@contextmanager
def limited() -> Iterator[None]:
    signal.signal(signal.SIGPROF, takes_too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class Damager:
    """`whole` are recordings; the results that each of their parts has are known."""

    def __init__(self, folder: Path, seed: int) -> None:
        checkpoints.EACH_CALLS, checkpoints.EACH_BLOCKS, moments.PARTS = 30, 0, 20
        self.chance = random.Random(seed)
        self.file = folder / "damaged.recording"
        self.whole: list[bytes] = []
        self.expected: list[set[str]] = []
        for number in range(4):
            made = Made(self.file, seed + number, slow=(2,))
            made.some((2, 10, 30, 200)[number], threads=3)
            made.end()
            self.whole.append(self.file.read_bytes())
            self.expected.append(set(self._parts(self.whole[-1])))
        self.packer = zstandard().ZstdCompressor(level=1)
        self.unpacker = zstandard().ZstdDecompressor()

    def _parts(self, data: bytes) -> Iterator[str]:
        """Up to the end of each block; and cut off there, where that is seen."""
        ends = [len(FIRST_LINE)]
        for block in blocks(data):
            ends.append(ends[-1] + len(block))
        for end in ends:
            for more in (b"", b"x"):
                self.file.write_bytes(data[:end] + more)
                yield told(self.file)

    def one(self) -> str:
        """Reads a damaged file. Returns which kind of damage it was."""
        chance = self.chance
        which = chance.randrange(len(self.whole))
        kind = chance.choice(
            (self.cut, self.flip, self.forge, self.forge, self.shuffle, self.patch)
        )
        self.file.write_bytes(kind(self.whole[which]))
        with limited():
            said = told(self.file)
        if kind in (self.cut, self.flip):
            begun = self.file.read_bytes().startswith(FIRST_LINE)
            assert said in self.expected[which] or not begun, said
            assert begun or said.endswith("not a recording of hakmem")
        return kind.__name__

    def cut(self, data: bytes) -> bytes:
        return data[: self.chance.randrange(len(data))]

    def flip(self, data: bytes) -> bytes:
        """A bit: a check finds it."""
        made = bytearray(data)
        made[self.chance.randrange(len(made))] ^= 1 << self.chance.randrange(8)
        return bytes(made)

    def patch(self, data: bytes) -> bytes:
        """Bytes are others, are missing, or there are more."""
        chance = self.chance
        made = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 9))):
            at = chance.randrange(len(made) + 1)
            made[at : at + chance.choice((0, 1, 4, 70))] = chance.randbytes(
                chance.choice((0, 1, 4))
            )
        return bytes(made)

    def shuffle(self, data: bytes) -> bytes:
        """Blocks are missing, are there twice, or in another order."""
        some = blocks(data)
        for _ in range(self.chance.randrange(1, 4)):
            at, to = (self.chance.randrange(len(some)) for _ in range(2))
            some[at:at] = some[to : to + self.chance.randrange(3)]
            del some[to : to + self.chance.randrange(2)]
            if not some:
                break
        return FIRST_LINE + b"".join(some)

    def forge(self, data: bytes) -> bytes:
        """What a block has is other, and the check is right."""
        chance = self.chance
        some = blocks(data)
        at = chance.randrange(len(some))
        content = bytearray(self.unpacker.decompress(some[at][12:], 2**26))
        for _ in range(chance.choice((1, 1, 2, 9, 100))):
            content[chance.randrange(len(content))] = chance.choice((0, 255, chance.randrange(256)))
        if chance.random() < 0.1:
            del content[chance.randrange(len(content)) :]
        packed = self.packer.compress(bytes(content))
        some[at] = some[at][:4] + struct.pack("<II", len(packed), zlib.crc32(packed)) + packed
        return FIRST_LINE + b"".join(some)


def main(inputs: int, seed: int) -> int:
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="hakmem-damaged-") as folder:
        damager = Damager(Path(folder), seed)
        for number in range(inputs):
            try:
                counts[damager.one()] += 1
            except BaseException:
                kept = Path(tempfile.gettempdir()) / f"damaged-{seed}-{number}.recording"
                kept.write_bytes(damager.file.read_bytes())
                print(f"input {number} of seed {seed}: {kept}", file=sys.stderr)
                raise
    print(f"{inputs} damaged recordings:", dict(sorted(counts.items())))
    return 0


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*(words + [3000, 1][len(words) :])))
