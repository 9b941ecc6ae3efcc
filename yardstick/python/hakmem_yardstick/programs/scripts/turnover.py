"""A service that holds small records, most of which go: commands arrive on a socket file.

    turnover.py RECORDS

fill      makes the records: a key, and a tuple of a number, a text and some bytes
delete    deletes four in five, at random
turn      replaces a random one of the rest, three times as often as there are records left
digest    says how many records there are, and a sum over their contents
"""

import os
import random
import signal
import socket
import sys
from array import array
from pathlib import Path
from zlib import crc32

Record = tuple[int, str, bytes]


def key(number: int) -> str:
    return f"record:{number:09}"


class Table:
    def __init__(self, count: int) -> None:
        self.rng = random.Random(11)
        self.records: dict[str, Record] = {}
        # Numbers, not objects: what is not a record should lie in few blocks.
        self.live = array("I", range(count))
        self.made = 0

    def record(self) -> Record:
        self.made += 1
        some = self.rng.randrange(40, 120)
        return self.made, f"note {self.made} " * 2, b"%07d " % self.made * (some // 8)

    def fill(self) -> None:
        for number in self.live:
            self.records[key(number)] = self.record()

    def delete(self) -> None:
        self.rng.shuffle(self.live)
        stay = len(self.live) // 5
        for number in self.live[stay:]:
            del self.records[key(number)]
        self.live = self.live[:stay]

    def turn(self) -> None:
        for _ in range(3 * len(self.live)):
            name = key(self.rng.choice(self.live))
            del self.records[name]  # else its key would be kept
            self.records[name] = self.record()

    def digest(self) -> str:
        found = 0
        for number in self.live:
            found = crc32(repr((number, self.records[key(number)])).encode(), found)
        return f"{len(self.records)} {found:08x}"


def main() -> None:
    table = Table(int(sys.argv[1]))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with socket.socket(socket.AF_UNIX) as door:
        door.bind("socket")
        door.listen()
        Path("pid").write_text(f"{os.getpid()}\n")
        while True:
            client, _ = door.accept()
            with client:
                word = client.recv(64).decode().strip()
                if word in ("fill", "delete", "turn", "digest"):
                    client.sendall(f"{getattr(table, word)() or 'done'}\n".encode())
                elif word == "ready":
                    client.sendall(b"done\n")


main()
