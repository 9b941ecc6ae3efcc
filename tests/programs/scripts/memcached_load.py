"""Threads that set, read, change and delete values of a memcached server and check every answer.

Usage: memcached_load.py PORT ROUNDS. Prints a hash of what each thread's keys hold in the end.
"""

from __future__ import annotations

import hashlib
import random
import socket
import sys
import threading

THREADS = 4
KEYS = 4000
SIZES = (5, 60, 300, 900, 4000, 30000, 200000)
WEIGHTS = (30, 30, 20, 10, 8, 2, 0.3)


class Client:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.answers = self.socket.makefile("rb")

    def tell(self, request: bytes, expected: bytes) -> None:
        self.socket.sendall(request)
        answer = self.answers.readline()
        if answer.rstrip() != expected:
            raise SystemExit(f"{request[:60]!r}: {answer!r} instead of {expected!r}")

    def get(self, keys: list[str]) -> dict[str, bytes]:
        self.socket.sendall(f"get {' '.join(keys)}\r\n".encode())
        found: dict[str, bytes] = {}
        while (line := self.answers.readline()) != b"END\r\n":
            _, key, _, size = line.split()
            found[key.decode()] = self.answers.read(int(size) + 2)[:-2]
        return found


def work(port: int, me: int, rounds: int, results: dict[int, str]) -> None:
    rng, client = random.Random(me), Client(port)
    held: dict[str, bytes] = {}
    for number in range(rounds):
        key = f"{me}:{rng.randrange(KEYS)}"
        choice = rng.random()
        if choice < 0.5 or key not in held:
            value = rng.randbytes(rng.choices(SIZES, WEIGHTS)[0] // 2).hex().encode()
            held[key] = value
            client.tell(b"set %b 0 0 %d\r\n%b\r\n" % (key.encode(), len(value), value), b"STORED")
        elif choice < 0.6 and len(held[key]) < 100000:
            held[key] += b"tail%d" % number
            more = b"tail%d" % number
            client.tell(b"append %b 0 0 %d\r\n%b\r\n" % (key.encode(), len(more), more), b"STORED")
        elif choice < 0.7:
            del held[key]
            client.tell(b"delete %b\r\n" % key.encode(), b"DELETED")
        else:
            keys = [f"{me}:{rng.randrange(KEYS)}" for _ in range(20)]
            wanted = {k: held[k] for k in keys if k in held}
            if client.get(keys) != wanted:
                raise SystemExit(f"thread {me}: wrong values of {keys}")
    digest = hashlib.sha256()
    for key in sorted(held):
        if client.get([key]) != {key: held[key]}:
            raise SystemExit(f"thread {me}: {key} was lost")
        digest.update(key.encode() + held[key])
    results[me] = f"{len(held)} keys, {digest.hexdigest()[:24]}"


def main() -> None:
    port, rounds = int(sys.argv[1]), int(sys.argv[2])
    results: dict[int, str] = {}
    threads = [
        threading.Thread(target=work, args=(port, me, rounds, results)) for me in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(results) != THREADS:
        sys.exit(1)
    for me in sorted(results):
        print(me, results[me])


main()
