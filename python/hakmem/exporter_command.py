"""`hakmem exporter`: the figures of all processes on hakmem, for Prometheus to fetch."""

from __future__ import annotations

import argparse
import signal
import socket
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType

from hakmem import look, metrics
from hakmem.look import CannotLook

HELP = "serve the memory figures of all processes on hakmem to Prometheus"
DESCRIPTION = HELP[0].upper() + HELP[1:] + "."
EPILOG = """\
Serves http://ADDRESS:PORT/metrics, as OpenMetrics or in Prometheus' older text format, whichever
the client asks for. Each request looks at all processes that have loaded hakmem's library and that
the exporter may read, or at the given ones. The metrics are those of 'hakmem stat --prometheus'.
Runs until it is interrupted or gets SIGTERM.

It serves only this machine unless --listen names another address. There is no encryption and no
password: put a reverse proxy in front of it, or keep the port inside a private network.

Needs the same rights as a debugger, as 'hakmem sheet' does: run it as root, or with
CAP_SYS_PTRACE, to see the processes of all users. Needs the Python module prometheus_client
(Debian: python3-prometheus-client).

examples:
  hakmem exporter
  hakmem exporter --listen 0.0.0.0:10910
  hakmem exporter --listen [::1]:10910 4711
  hakmem exporter --dashboard >dashboard.json

exit status:
  0  it was interrupted, or got SIGTERM; or the dashboard is printed
  2  wrong usage, the address can't be used, or a module is missing
"""
DEFAULT = "127.0.0.1:10910"
DASHBOARD = Path(__file__).resolve().parent / "dashboard.json"
CLIENT_SECONDS = 10  # in which a client has to send its request, and to take what it gets
PAGE = b"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>hakmem exporter</title></head>
<body><h1>hakmem exporter</h1><p><a href="/metrics">metrics</a></p></body></html>
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen",
        metavar="ADDRESS:PORT",
        default=DEFAULT,
        help=f"where to serve; port 0: any that is free (default: {DEFAULT})",
    )
    parser.add_argument(
        "--dashboard", action="store_true", help="print a dashboard for Grafana to import, and end"
    )
    parser.add_argument("pids", metavar="PID", nargs="*", help="a running process")


class WrongAddress(Exception):
    status = 2


def address_of(text: str) -> tuple[str, int]:
    """Raises WrongAddress."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535 or not host:
        raise WrongAddress(f"--listen {text}: expected ADDRESS:PORT, such as {DEFAULT}")
    return host.removeprefix("[").removesuffix("]"), int(port)


class Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = CLIENT_SECONDS
    server_version = "hakmem-exporter"
    sys_version = ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(*self.server.metrics(self.headers.get("Accept", "")))
        elif path == "/":
            self._answer(PAGE, "text/html; charset=utf-8")
        else:
            self.send_error(404, "There are /metrics and /")

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing: a request comes every few seconds."""


class Server(ThreadingHTTPServer):
    daemon_threads = True  # a client that hangs does not keep the exporter from ending

    def __init__(self, address: tuple[str, int], processes: metrics.Processes) -> None:
        self._processes = processes
        self._one = threading.Lock()  # many clients do not make for many looks at once
        try:
            family, *_, found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
            self.address_family = family
            super().__init__(found, Handler)  # type: ignore[arg-type]
        except OSError as error:
            said = error.strerror or str(error)
            raise WrongAddress(f"{address[0]}:{address[1]}: {said}") from error

    def server_bind(self) -> None:
        """Without looking up the machine's name, which may wait for a name server."""
        socket.socket.setsockopt(self.socket, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def metrics(self, accept: str) -> tuple[bytes, str]:
        with self._one:
            return metrics.text(self._processes, accept)

    def handle_error(self, *_: object) -> None:
        """A client that goes away in the middle is no error of ours."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            print(f"hakmem exporter: {error!r}", file=sys.stderr, flush=True)


def run(arguments: argparse.Namespace) -> int:
    if arguments.dashboard:
        with suppress(BrokenPipeError):
            print(DASHBOARD.read_text(), end="", flush=True)
        return 0
    try:
        pids = [look.read_pid(word) for word in arguments.pids]
        processes = metrics.Processes(arguments.library, pids)
        server = Server(address_of(arguments.listen), processes)
    except (CannotLook, metrics.NoClient, WrongAddress) as why:
        print(f"hakmem exporter: {why}", file=sys.stderr)
        return why.status

    def end(_: int, __: FrameType | None) -> None:
        # Waits for the loop to end, which this thread is in.
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    host, port = server.server_address[:2]
    shown = f"[{host!s}]" if ":" in str(host) else str(host)
    print(f"hakmem exporter: http://{shown}:{port}/metrics", file=sys.stderr, flush=True)
    with server:
        server.serve_forever(poll_interval=0.2)
    return 0
