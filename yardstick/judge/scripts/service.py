"""A service whose life the judge looks at: commands arrive on a socket file.

    service.py KIND SIZE

threads   eight threads, each with records of its own
forks     what is loaded first is shared by three workers, forked, each with records of its own
numpy     one thread with arrays
"""

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

KIND, SIZE = sys.argv[1], int(sys.argv[2])


class Part:
    """What one thread or process has."""

    def __init__(self, number: int) -> None:
        self.lot = Random(number)
        self.kept: dict[str, Any] = {}
        self.made = 0

    def record(self) -> Any:
        self.made += 1
        if KIND == "numpy":
            import numpy

            return numpy.arange(self.lot.randrange(300, 60_000), dtype="f8") * self.made
        size = self.lot.randrange(10, 700)
        return {"n": self.made, "text": "x" * size, "tags": [str(self.made)] * (size % 7)}

    def load(self, count: int = SIZE) -> None:
        for _ in range(count):
            self.kept[f"record {self.made}"] = self.record()

    def free(self) -> None:
        names = list(self.kept)
        self.lot.shuffle(names)
        for name in names:
            del self.kept[name]

    def light(self) -> None:
        for _ in range(20):
            some = [self.record() for _ in range(5)]
            del some

    def take(self, word: str) -> None:
        getattr(self, word)()


class Crew:
    """Threads or processes that take each word, and sleep between."""

    def __init__(self, number: int) -> None:
        self.ends: list[Callable[[str], None]] = []
        for at in range(number):
            mine, theirs = socket.socketpair()
            if KIND == "forks":
                if os.fork() == 0:
                    mine.close()
                    serve(Part(at), theirs)
                    os._exit(0)
                theirs.close()
            else:
                threading.Thread(target=serve, args=(Part(at), theirs), daemon=True).start()
            self.ends.append(self.end(mine))

    @staticmethod
    def end(mine: socket.socket) -> Callable[[str], None]:
        def ask(word: str) -> None:
            mine.sendall(word.encode())
            mine.recv(16)

        return ask

    def take(self, word: str) -> None:
        for ask in self.ends:
            ask(word)


def serve(part: Part, end: socket.socket) -> None:
    while word := end.recv(64):
        part.take(word.decode())
        end.sendall(b"done")


def main() -> None:
    shared = Part(99)
    if KIND == "forks":
        shared.load(SIZE)
    workers = {"threads": 8, "forks": 3}.get(KIND, 0)
    taker: Any = Crew(workers) if workers else Part(7)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    with socket.socket(socket.AF_UNIX) as door:
        door.bind("socket")
        door.listen()
        Path("pid").write_text(f"{os.getpid()}\n")
        while True:
            client, _ = door.accept()
            with client:
                word = client.recv(64).decode().strip()
                if word in ("load", "free", "light"):
                    taker.take(word)
                client.sendall(b"done\n")


main()
