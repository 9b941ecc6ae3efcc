"""Reads every address of a server with several threads, plain, packed and in part.

Usage: http_read.py PORT FILE-OF-PATHS REPEATS. Prints one line for each address, in their order.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

THREADS = 8


def read(port: int, paths: list[str], repeats: int) -> dict[str, str]:
    """Path -> status, size and hash of the body, which are the same every time and in each form."""
    found: dict[str, str] = {}
    server = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for _ in range(repeats):
        for path in paths:
            plain = get(server, path, {})
            packed = get(server, path, {"Accept-Encoding": "gzip"})
            if plain != packed:
                raise SystemExit(f"{path}: {plain} plain, {packed} packed")
            if found.setdefault(path, plain) != plain:
                raise SystemExit(f"{path}: {found[path]}, then {plain}")
        part = get(server, paths[0], {"Range": "bytes=10-99"})
        found[f"{paths[0]} 10-99"] = part
    return found


def get(server: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> str:
    server.request("GET", path, headers=headers)
    answer = server.getresponse()
    body = answer.read()
    if answer.headers["Content-Encoding"] == "gzip":
        body = gzip.decompress(body)
    return f"{answer.status} {len(body)} {hashlib.sha256(body).hexdigest()[:16]}"


def main() -> None:
    port, repeats = int(sys.argv[1]), int(sys.argv[3])
    paths = Path(sys.argv[2]).read_text().split()
    with ThreadPoolExecutor(THREADS) as pool:
        parts = [paths[n::THREADS] for n in range(THREADS)]
        answers = pool.map(lambda part: read(port, part, repeats), parts)
        found = {path: answer for part in answers for path, answer in part.items()}
    for path in sorted(found):
        print(path, found[path])


main()
