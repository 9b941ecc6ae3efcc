"""A web server on a free port of 127.0.0.1: serves the folder given, echoes what is posted.

The port is written to the file named second, when the server listens.
"""

import gzip
import hashlib
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits for the client's acknowledgment

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(hashlib.sha256(body).hexdigest().encode() + b"\n")

    def do_GET(self) -> None:
        if not self.path.startswith("/packed/"):
            return super().do_GET()
        body = Path(self.directory, self.path.removeprefix("/packed/")).read_bytes()
        return self.answer(gzip.compress(body, mtime=0), ("Content-Encoding", "gzip"))

    def answer(self, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(200)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    folder, announced = sys.argv[1:]
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder)) as server:
        whole = Path(announced + ".part")
        whole.write_text(str(server.server_address[1]))
        whole.rename(announced)
        server.serve_forever()


main()
