"""Threads that ask a name server, over UDP and, for what is too long, over TCP.

Usage: dns_load.py PORT NAMES ROUNDS. Prints for each thread a hash of all answers, in the order of
its questions, without their times to live; inputs_servers.py makes the zone.
"""

from __future__ import annotations

import hashlib
import random
import socket
import struct
import sys
from concurrent.futures import ThreadPoolExecutor

THREADS = 4
AT_ONCE = 32
TRIES = 20
KINDS = {"A": 1, "CNAME": 5, "TXT": 16, "AAAA": 28}
TRUNCATED, REFUSAL, NO_NAME = 0x200, 0xF, 3


def question(number: int, name: str, kind: int) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack("!6H", number, 0x100, 1, 0, 0, 0) + labels + struct.pack("!BHH", 0, kind, 1)


def name_at(message: bytes, at: int) -> tuple[bytes, int]:
    """The name that begins there, and where what follows it begins."""
    labels: list[bytes] = []
    after = 0
    while size := message[at]:
        if size >= 0xC0:
            after = after or at + 2
            at = (size & 0x3F) << 8 | message[at + 1]
        else:
            labels.append(message[at + 1 : at + 1 + size])
            at += 1 + size
    return b".".join(labels), after or at + 1


def answers(message: bytes) -> list[bytes]:
    """Kind and data of all answers, sorted: a server may turn their order."""
    count = struct.unpack_from("!H", message, 6)[0]
    _, at = name_at(message, 12)
    at += 4
    found = []
    for _ in range(count):
        owner, at = name_at(message, at)
        kind, _, _, size = struct.unpack_from("!HHIH", message, at)
        at += 10
        data = message[at : at + size]
        if kind == KINDS["CNAME"]:
            data, _ = name_at(message, at)
        found.append(b"%b %d %b" % (owner, kind, data))
        at += size
    return sorted(found)


def flags(message: bytes) -> int:
    return int.from_bytes(message[2:4], "big")


def over_tcp(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as server:
        server.sendall(struct.pack("!H", len(request)) + request)
        with server.makefile("rb") as stream:
            size = struct.unpack("!H", stream.read(2))[0]
            return stream.read(size)


def ask_all(server: socket.socket, port: int, requests: dict[int, bytes]) -> dict[int, bytes]:
    """All answers; a question is asked again if its answer is late, or if the server gave up."""
    found: dict[int, bytes] = {}
    for _ in range(TRIES):
        missing = requests.keys() - found.keys()
        if not missing:
            return found
        for number in sorted(missing):
            server.send(requests[number])
        try:
            for _ in missing:
                message = server.recv(65535)
                number = int.from_bytes(message[:2], "big")
                if flags(message) & TRUNCATED and number in missing:
                    message = over_tcp(port, requests[number])
                if number in missing and flags(message) & REFUSAL in (0, NO_NAME):
                    found[number] = message
        except TimeoutError:
            continue
    raise SystemExit(f"no answer after {TRIES} tries: {sorted(requests.keys() - found.keys())}")


def work(me: int, port: int, names: int, rounds: int) -> str:
    rng, digest, long = random.Random(me), hashlib.sha256(), 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.connect(("127.0.0.1", port))
        server.settimeout(5)
        for first in range(0, rounds, AT_ONCE):
            requests = {}
            for number in range(first, first + AT_ONCE):
                letter = rng.choices("hax", (6, 3, 1))[0]
                name = f"{letter}{rng.randrange(names)}.proof.example"
                requests[number % 65536] = question(
                    number % 65536, name, rng.choice([*KINDS.values()])
                )
            found = ask_all(server, port, requests)
            for number in sorted(found):
                lines = answers(found[number])
                long += sum(len(line) for line in lines) > 400
                digest.update(b"%d %b\n" % (flags(found[number]) & REFUSAL, b"|".join(lines)))
    return f"{rounds} questions, {long} long answers, {digest.hexdigest()[:24]}"


def main() -> None:
    port, names, rounds = map(int, sys.argv[1:])
    with ThreadPoolExecutor(THREADS) as pool:
        jobs = [pool.submit(work, me, port, names, rounds) for me in range(THREADS)]
        for me, job in enumerate(jobs):
            print(me, job.result())


main()
