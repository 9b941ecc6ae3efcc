"""Ways to damage a recording. After some of them no check is right; after others each is, so that
what lies behind the checks is reached: the columns of chunks, events, facts in JSON, mappings."""

from __future__ import annotations

import copy
import json
import random
import struct
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from hakmem.recording import FIRST_LINE, numpy, zstandard

_HEAD = struct.Struct("<4sII")  # of a block: its kind, bytes, check
_COLUMNS = "<u4", "<u4", "<u8", "<u8", "<u8"  # of each chunk: thread, events, order, ticks, time
_COUNTS, _TIMES = 1, range(2, 5)
_CHUNK, _EVENT = 32, 16  # bytes
KINDS = b"PROC", b"MAPS", b"SEEN", b"EVTS", b"DONE"
_NUMBERS = (0, 1, 2, 7, 15, 16, 255, 2**16, 2**20, 2**31 - 1, 2**31, 2**32 - 1, 2**44 - 1, 2**47,
            2**62, 2**63 - 1, 2**63, 2**64 - 1)  # fmt: skip
_VALUES: tuple[Any, ...] = (
           None, True, -1, 0, 1, 33, 2**31, 2**63 - 1, 2**63, 2**64, 10**400, 0.5, -1.5, 1e308,
           float("nan"), float("inf"), "", "x", "\0", "\n", "\x1b[2J", "\ud800", "x" * 3000, "/a/b",
           [], [[]], [0], [[16, 1]], [[-1, 2**70]], [[16]], {}, {"1": "a"},
           {"a": None})  # fmt: skip


def blocks(data: bytes) -> list[bytes]:
    """Each whole, without the first line."""
    found = []
    at = len(FIRST_LINE)
    while at < len(data):
        length = _HEAD.size + struct.unpack_from("<I", data, at + 4)[0]
        found.append(data[at : at + length])
        at += length
    return found


def number(bits: int, now: int, chance: random.Random) -> int:
    """One at a bound, or near the one that is there."""
    near = now + chance.choice((-1, 1, -4, 4, 1000, -(2**20), 2**40, now))
    found: int = chance.choice((*_NUMBERS, near, near, near))
    return found % (1 << bits)


def altered(content: bytes, chance: random.Random) -> bytes:
    """A value of JSON is another, is missing, or is there too much."""
    facts: Any = None
    with suppress(ValueError, RecursionError):  # it was altered before
        facts = json.loads(content)
    if not isinstance(facts, dict):
        return content
    for _ in range(chance.choice((1, 1, 2, 4))):
        place: Any = facts
        key = chance.choice(list(place) or ["process"])
        while isinstance(place.get(key) if isinstance(place, dict) else place[key], dict | list):
            inner = place[key]
            if not inner or chance.random() < 0.3:
                break
            place = inner
            key = (
                chance.choice(list(place))
                if isinstance(place, dict)
                else chance.randrange(len(place))
            )
        if chance.random() < 0.15:
            del place[key]
        elif chance.random() < 0.5 and type(place[key]) is int:
            place[key] = number(64, abs(place[key]), chance)
        else:
            place[key] = copy.deepcopy(chance.choice(_VALUES))
        if not isinstance(facts, dict) or not facts:
            break
    text = json.dumps(facts)
    if chance.random() < 0.05:
        text = chance.choice(("[" * 9999, "9" * 5000, "", "null", "[]", text[:-1]))
    return text.encode()


class Recording:
    """A sound one."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.blocks = blocks(data)

    @cached_property
    def contents(self) -> list[bytes]:
        unpacker = zstandard().ZstdDecompressor()
        return [unpacker.decompress(block[_HEAD.size :], 2**26) for block in self.blocks]

    @cached_property
    def kinds(self) -> list[bytes]:
        return [block[:4] for block in self.blocks]


class Damages:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.packer = zstandard().ZstdCompressor(level=1)
        self.ways: dict[Callable[[Recording, Sequence[Recording]], bytes], float] = {
            self.cut: 6, self.flip: 12, self.length: 8, self.splice: 14, self.inside: 16,
            self.columns: 12, self.events: 28, self.facts: 18, self.bomb: 0.05,
        }  # fmt: skip

    def one(self, of: Recording, others: Sequence[Recording]) -> tuple[str, bytes]:
        """Its kind, and what was made of the recording; of `others` it may have parts."""
        (way,) = self.chance.choices(list(self.ways), list(self.ways.values()))
        return way.__name__, way(of, others)

    # ---- a check finds it ----

    def cut(self, of: Recording, _: object) -> bytes:
        return of.data[: self.chance.randrange(len(of.data))]

    def flip(self, of: Recording, _: object) -> bytes:
        """A bit."""
        made = bytearray(of.data)
        made[self.chance.randrange(len(made))] ^= 1 << self.chance.randrange(8)
        return bytes(made)

    def length(self, of: Recording, _: object) -> bytes:
        """What the head of a block says: its kind, how long it is, its check."""
        chance = self.chance
        some = list(of.blocks)
        at = chance.randrange(len(some))
        kind, length, check = _HEAD.unpack(some[at][: _HEAD.size])
        body = some[at][_HEAD.size :]
        which = chance.randrange(4)
        if which == 0:
            kind = chance.choice((*KINDS, b"\0\0\0\0", b"evts", b"XXXX"))
        elif which == 1:
            length = chance.choice((*(one for one in _NUMBERS if one < 2**32), length - 1, 2**26))
        elif which == 2:
            check = chance.choice((0, 2**32 - 1, check ^ 1, zlib.crc32(b"")))
        else:  # shorter, and as it says
            body = body[: chance.randrange(len(body))]
            length, check = len(body), zlib.crc32(body)
        some[at] = _HEAD.pack(kind, length, check) + body
        return FIRST_LINE + b"".join(some)

    # ---- each block is sound ----

    def splice(self, of: Recording, others: Sequence[Recording]) -> bytes:
        """Blocks of two recordings."""
        chance = self.chance
        other = chance.choice(others).blocks
        at, to = chance.randrange(len(of.blocks) + 1), chance.randrange(len(other) + 1)
        if chance.random() < 0.5:
            some = of.blocks[:at] + other[to:]
        else:
            some = of.blocks[:at] + other[to : to + 2] + of.blocks[at + chance.randrange(2) :]
        return FIRST_LINE + b"".join(some)

    # ---- the check of what a block has is right ----

    def _block(self, kind: bytes, content: bytes) -> bytes:
        packed: bytes = self.packer.compress(content)
        return _HEAD.pack(kind, len(packed), zlib.crc32(packed)) + packed

    def _with(self, of: Recording, at: int, content: bytes) -> bytes:
        some = list(of.blocks)
        some[at] = self._block(of.kinds[at], content)
        return FIRST_LINE + b"".join(some)

    def _any(self, of: Recording, *kinds: bytes) -> int:
        return self.chance.choice([at for at, one in enumerate(of.kinds) if one in kinds])

    def inside(self, of: Recording, _: object) -> bytes:
        """Bytes, anywhere."""
        chance = self.chance
        at = chance.randrange(len(of.blocks))
        content = bytearray(of.contents[at])
        for _ in range(chance.choice((1, 1, 2, 9, 100))):
            content[chance.randrange(len(content))] = chance.choice((0, 255, chance.randrange(256)))
        if chance.random() < 0.1:
            del content[chance.randrange(len(content)) :]
        return self._with(of, at, bytes(content))

    def _number(self, bits: int, now: int) -> int:
        return number(bits, now, self.chance)

    def columns(self, of: Recording, _: object) -> bytes:
        """What is said of chunks. Mostly the number of events stays."""
        chance = self.chance
        at = self._any(of, b"EVTS")
        content = bytearray(of.contents[at])
        count = struct.unpack_from("<III", content)[1]
        for _ in range(chance.choice((1, 1, 2, 5))):
            which = chance.choice((0, 2, 3, 3, 3, 4, 4)) if count else -1
            if which < 0 or chance.random() < 0.1:
                where = 4 * chance.randrange(3)
                (now,) = struct.unpack_from("<I", content, where)
                struct.pack_into("<I", content, where, self._number(32, now))
                continue
            width = 4 if which <= _COUNTS else 8
            begin = 12 + count * (4 * min(which, 2) + 8 * max(which - 2, 0))
            where = begin + width * chance.randrange(count)
            word = "<I" if width == 4 else "<Q"
            (now,) = struct.unpack_from(word, content, where)
            struct.pack_into(word, content, where, self._number(8 * width, now))
        return self._with(of, at, bytes(content))

    def events(self, of: Recording, _: object) -> bytes:
        """Events that no program makes, in the right places."""
        np, chance = numpy(), self.chance
        at = self._any(of, b"EVTS")
        content = of.contents[at]
        (count,) = struct.unpack_from("<I", content, 4)
        head, rest = content[: 12 + _CHUNK * count], content[12 + _CHUNK * count :]
        words = np.frombuffer(rest, "u1").reshape(_EVENT, -1).T.copy().view("<u8")
        counts = np.frombuffer(head, "<u4", count, 12 + 4 * count).copy()
        for _ in range(chance.choice((1, 1, 2, 5, 20))):
            if not len(words):
                break
            one, other = chance.randrange(len(words)), chance.randrange(len(words))
            word, now = chance.randrange(2), int(words[one, 0])
            kind = chance.randrange(9)
            if kind < 3:  # its kind
                mask, bits = 7 << 44, chance.randrange(8) << 44
            elif kind == 3:  # its address
                mask, bits = 2**44 - 1, int(words[other, 0])
            elif kind == 4:  # its path, or which path it is
                mask, bits = 2**64 - 2**47, self._number(17, now >> 47) << 47
            elif kind == 5:
                word, mask, bits = 1, 2**64 - 2**32, self._number(32, int(words[one, 1])) << 32
            elif kind == 6:  # its time, as a difference
                word, mask, bits = 1, 2**32 - 1, self._number(32, int(words[one, 1]))
            elif kind == 7:
                words[[one, other]] = words[[other, one]]
                continue
            else:
                mask, bits = 2**64 - 1, self._number(64, now)
            words[one, word] = int(words[one, word]) & ~mask & 2**64 - 1 | bits & mask
        if chance.random() < 0.2 and len(words):  # one is there twice, or not at all
            one = chance.randrange(len(words))
            whose = int(np.searchsorted(np.cumsum(counts), one, side="right"))
            if chance.random() < 0.5:
                words = np.insert(words, one, words[one], axis=0)
                counts[whose] += 1
            else:
                words = np.delete(words, one, axis=0)
                counts[whose] -= 1
            head = head[:8] + struct.pack("<I", len(words)) + head[12 : 12 + 4 * count]
            head += counts.tobytes() + content[len(head) + 4 * count : 12 + _CHUNK * count]
        planes = np.ascontiguousarray(words).view("u1").reshape(-1, _EVENT).T.tobytes()
        return self._with(of, at, head + planes)

    def facts(self, of: Recording, _: object) -> bytes:
        """A value of JSON is another, is missing, or is there too much."""
        chance = self.chance
        at = self._any(of, *(one for one in KINDS if one != b"EVTS"))
        return self._with(of, at, altered(of.contents[at], chance))

    def bomb(self, of: Recording, _: object) -> bytes:
        """Some bytes that unpack to many."""
        chance = self.chance
        at = chance.randrange(len(of.blocks))
        size = 2 ** chance.choice((16, 18, 20, 22, 26))
        if of.kinds[at] == b"EVTS" and chance.random() < 0.7:
            (process,) = struct.unpack_from("<I", of.contents[at])
            if chance.random() < 0.5:  # many chunks that have nothing
                more = size // _CHUNK
                head = struct.pack("<III", process, more, 0)
                return self._with(of, at, head + bytes(_CHUNK * more))
            counts = struct.pack("<III", process, 1, size // _EVENT)
            counts += struct.pack("<IIQQQ", 1, size // _EVENT, 0, 10**6, 0)
            content = (
                counts
                + bytes(size // _EVENT) * 5
                + bytes([chance.randrange(128)]) * (size // _EVENT)
            )
            return self._with(of, at, content + bytes(size // _EVENT) * 10)
        what = chance.choice((b"[],", b"0", b" ", b'"a",', b"\0", b"[[[],0],"))
        facts = of.contents[at][:-1] + b', "more": [' + what * (size // len(what)) + b"0]}"
        return self._with(of, at, facts)
