"""Gives a service a command through its socket file, and prints the answer.

    python3 ask.py SOCKET WORD

Fails if the service gives no answer. It imports nothing of hakmem.
"""

from __future__ import annotations

import socket
import sys


def main() -> None:
    with socket.socket(socket.AF_UNIX) as service:
        service.connect(sys.argv[1])
        service.sendall(sys.argv[2].encode())
        said = b""
        while part := service.recv(4096):
            said += part
    if not said.strip():
        sys.exit(f"no answer to {sys.argv[2]}")
    print(said.decode(), end="")


if __name__ == "__main__":
    main()
