"""Publishers and subscribers of an MQTT broker, each a thread with a connection of its own.

Usage: mqtt_load.py PORT MESSAGES, or mqtt_load.py PORT MESSAGES retained. Each subscriber knows
what has to come, and prints a hash of it; messages of one publisher must come in their order. With
the third word it is asked what the broker has retained of all that.
"""

from __future__ import annotations

import hashlib
import random
import socket
import struct
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

PUBLISHERS = 3
TOPICS = 500
AT_ONCE = 40
SIZES = (3, 40, 200, 900, 5000, 60_000)
WEIGHTS = (30, 30, 20, 10, 5, 0.5)
FILTERS = ("house/#", "house/+/7", "house/1/#", "house/2/+", "+/0/499", "house/0/#")
CONNECT, CONNACK, PUBLISH, PUBACK, SUBSCRIBE, SUBACK = 0x10, 0x20, 0x30, 0x40, 0x82, 0x90
ONCE, RETAIN = 0x02, 0x01  # flags of PUBLISH: delivered at least once; kept for who comes later


def messages(publisher: int, count: int) -> Iterator[tuple[str, bytes, bool]]:
    rng = random.Random(publisher)
    for number in range(count):
        size = rng.choices(SIZES, WEIGHTS)[0]
        payload = b"%d %d " % (publisher, number) + rng.randbytes(size // 2).hex().encode()
        yield f"house/{publisher}/{rng.randrange(TOPICS)}", payload, number % 5 == 0


def matches(pattern: str, topic: str) -> bool:
    wanted, words = pattern.split("/"), topic.split("/")
    if wanted[-1] == "#":
        wanted, words = wanted[:-1], words[: len(wanted) - 1]
    pairs = zip(wanted, words, strict=False)
    return len(wanted) == len(words) and all(want in ("+", word) for want, word in pairs)


class Client:
    def __init__(self, port: int, name: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.stream = self.socket.makefile("rb")
        self.send(CONNECT, text("MQTT") + b"\x04\x02" + struct.pack("!H", 0) + text(name))
        self.expect(CONNACK)

    def send(self, head: int, body: bytes) -> None:
        size, length = len(body), bytearray()
        while True:
            size, part = divmod(size, 128)
            length.append(part | (128 if size else 0))
            if not size:
                break
        self.socket.sendall(bytes([head]) + length + body)

    def receive(self) -> tuple[int, bytes]:
        head, size, shift = self.byte(), 0, 0
        while True:
            part = self.byte()
            size |= (part & 127) << shift
            shift += 7
            if part < 128:
                return head, self.stream.read(size)

    def byte(self) -> int:
        found = self.stream.read(1)
        if not found:
            raise SystemExit("the broker closed the connection")
        return found[0]

    def expect(self, wanted: int) -> None:
        head, _ = self.receive()
        if head != wanted:
            raise SystemExit(f"packet {head:#x} instead of {wanted:#x}")

    def subscribe(self, pattern: str) -> None:
        self.send(SUBSCRIBE, struct.pack("!H", 1) + text(pattern) + b"\x01")

    def message(self) -> bytes:
        """The payload of the next message, which is acknowledged."""
        while True:
            head, body = self.receive()
            if head == SUBACK:
                continue
            if head & 0xF0 != PUBLISH:
                raise SystemExit(f"packet {head:#x} instead of a message")
            at = 2 + struct.unpack_from("!H", body)[0]
            if head & 0x06:
                self.send(PUBACK, body[at : at + 2])
                at += 2
            return body[at:]


def text(words: str) -> bytes:
    return struct.pack("!H", len(words)) + words.encode()


def publish(port: int, publisher: int, count: int) -> str:
    client, waiting = Client(port, f"publisher{publisher}"), 0
    for number, (topic, payload, retain) in enumerate(messages(publisher, count)):
        head = PUBLISH | ONCE | (RETAIN if retain else 0)
        client.send(head, text(topic) + struct.pack("!H", number % 65535 + 1) + payload)
        waiting += 1
        if waiting == AT_ONCE or number == count - 1:
            for _ in range(waiting):
                client.expect(PUBACK)
            waiting = 0
    return f"publisher {publisher} {count}"


def listen(client: Client, pattern: str, count: int) -> str:
    wanted = {
        payload
        for publisher in range(PUBLISHERS)
        for topic, payload, _ in messages(publisher, count)
        if matches(pattern, topic)
    }
    last = [-1] * PUBLISHERS
    found = set()
    for _ in range(len(wanted)):
        payload = client.message()
        publisher, number = map(int, payload.split()[:2])
        if number <= last[publisher]:
            raise SystemExit(f"{pattern}: message {number} of {publisher} after {last[publisher]}")
        last[publisher] = number
        found.add(payload)
    if found != wanted:
        raise SystemExit(f"{pattern}: {len(wanted - found)} messages of {len(wanted)} are missing")
    return f"{pattern} {digest(found)}"


def retained(port: int, count: int) -> str:
    wanted: dict[str, bytes] = {}
    for publisher in range(PUBLISHERS):
        wanted |= {topic: load for topic, load, kept in messages(publisher, count) if kept}
    client = Client(port, "later")
    client.subscribe("house/#")
    found = {client.message() for _ in wanted}
    if found != set(wanted.values()):
        raise SystemExit("what was retained is not what was published last")
    return f"retained {digest(found)}"


def digest(found: set[bytes]) -> str:
    return f"{len(found)} {hashlib.sha256(b'|'.join(sorted(found))).hexdigest()[:24]}"


def main() -> None:
    port, count = int(sys.argv[1]), int(sys.argv[2])
    if sys.argv[3:]:
        print(retained(port, count))
        return
    listeners = [Client(port, f"listener{n}") for n in range(len(FILTERS))]
    for client, pattern in zip(listeners, FILTERS, strict=True):
        client.subscribe(pattern)
        client.expect(SUBACK)
    with ThreadPoolExecutor(len(FILTERS) + PUBLISHERS) as pool:
        heard = [
            pool.submit(listen, client, pattern, count)
            for client, pattern in zip(listeners, FILTERS, strict=True)
        ]
        told = [pool.submit(publish, port, publisher, count) for publisher in range(PUBLISHERS)]
        for job in (*told, *heard):
            print(job.result())


main()
