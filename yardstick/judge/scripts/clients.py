"""Many clients of an HTTP server at once, which all ask before one of them reads.

clients.py SOCKET CLIENTS REQUESTS
"""

import socket
import sys

PATH, CLIENTS, REQUESTS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
HEADS = b"GET /page HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nCookie: "
ASKED = HEADS + b"c" * 900 + b"\r\n\r\n"


def answer(client: socket.socket) -> None:
    got = b""
    while not got.endswith(b"0\r\n\r\n"):
        part = client.recv(1 << 16)
        if not part:
            sys.exit(f"the server closed: {got[:200]!r}")
        got = got[-16:] + part


clients = []
for _ in range(CLIENTS):
    client = socket.socket(socket.AF_UNIX)
    client.connect(PATH)
    clients.append(client)
for _ in range(REQUESTS):
    for client in clients:
        client.sendall(ASKED)
    for client in clients:
        answer(client)
print("done")
