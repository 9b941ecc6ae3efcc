"""`hakmem exporter`: the figures of all processes on hakmem, for Prometheus to fetch."""

from __future__ import annotations

import argparse
import errno
import io
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hakmem import dashboard, interrupts, look, metrics, rights
from hakmem.look import CannotLook, TooLate
from hakmem.modules import NoModule

HELP = "serve the memory figures of all processes on hakmem to Prometheus"
DESCRIPTION = HELP[0].upper() + HELP[1:] + "."
EPILOG = """\
Serves http://ADDRESS:PORT/metrics, as OpenMetrics or in Prometheus' older text format, whichever
the client asks for. Each request looks at all processes that have loaded hakmem's library and that
the exporter may read, or at the given ones. The metrics are those of 'hakmem top --prometheus'.
Runs until it is interrupted or gets SIGTERM or SIGHUP.

A request is answered within 80% of the time that Prometheus announces for it, or within 8 seconds.
A process that was not read by then counts as unreadable, and is the first one in the next request.
Why a process is unreadable is printed once.

It serves only this machine unless --listen names another address. There is no encryption and no
password: put a reverse proxy in front of it, or keep the port inside a private network.

Needs the same rights as a debugger, as 'hakmem sheet' does: run it as root, or with CAP_SYS_PTRACE
and CAP_DAC_READ_SEARCH, to see the processes of all users. Needs the Python module
prometheus_client (Debian: python3-prometheus-client).

examples:
  hakmem exporter
  hakmem exporter --listen 0.0.0.0:10910
  hakmem exporter --listen [::1]:10910 4711
  hakmem exporter --dashboard >dashboard.json

exit status:
  0  it was interrupted, or got SIGTERM or SIGHUP; or the dashboard is printed
  2  wrong usage, no such process, the address can't be used, or a module is missing
"""
DEFAULT = "127.0.0.1:10910"
LOOK_SECONDS = 8.0  # Prometheus waits for ten unless its configuration says otherwise
LOOK_SHARE = 0.8  # of the time that a client announces
LOOK_MOST = 600.0
CLIENTS = 64  # at a time; for one more the connection goes that was idle longest
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

    def __init__(self, text: str, why: str) -> None:
        super().__init__(f"--listen {text}: {why}")


def address_of(text: str) -> tuple[str, int]:
    """Raises WrongAddress."""
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65535:
        raise WrongAddress(
            text, f"expected ADDRESS:PORT, such as {DEFAULT}; a port is a number from 0 to 65535"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


CANNOT_LISTEN = {
    errno.EADDRINUSE: "another program uses this port; port 0 is any that is free",
    errno.EADDRNOTAVAIL: "this machine has no such address",
    errno.EACCES: "no permission; ports below 1024 need root or CAP_NET_BIND_SERVICE",
}


class Request(io.RawIOBase):
    """What a client sends, all of it within CLIENT_SECONDS, however slowly it sends."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._until = time.monotonic() + CLIENT_SECONDS

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        count = self._connection.recv_into(buffer)
        if count == 0:  # half a request is none
            raise ConnectionAbortedError
        return count


class Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = CLIENT_SECONDS
    server_version = "hakmem-exporter"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(Request(self.connection))

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            with self.server.at_work(self.connection):
                answer = self.server.metrics(self.headers.get("Accept", ""), self._seconds())
            self._answer(*answer)
        elif path == "/":
            self._answer(PAGE, "text/html; charset=utf-8")
        else:
            self.send_error(404, "There are /metrics and /")

    do_HEAD = do_GET

    def _seconds(self) -> float:
        """For a look, from what Prometheus says of its own patience."""
        with suppress(ValueError):
            said = float(self.headers.get("X-Prometheus-Scrape-Timeout-Seconds", ""))
            if 0 < said <= LOOK_MOST:
                return LOOK_SHARE * said
        return LOOK_SECONDS

    def _answer(self, body: bytes, kind: str) -> None:
        self.connection.settimeout(CLIENT_SECONDS)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing: a request comes every few seconds."""


def _reason(why: CannotLook) -> str:
    """Which processes are late changes from look to look: of all of them one line is printed."""
    late = "not all processes were read in time; those that are missing come first in the next look"
    return late if isinstance(why, TooLate) else str(why)


class Server(ThreadingHTTPServer):
    daemon_threads = True  # a client that hangs does not keep the exporter from ending
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], processes: metrics.Processes) -> None:
        self._processes = processes
        self._one = threading.Lock()  # many clients do not make for many looks at once
        self._looked = 0.0  # when the last look ended
        self._said: set[str] = set()
        self._clients: dict[Any, bool] = {}  # idle? Those idle longest come first
        self._clients_lock = threading.Lock()
        try:
            family, *_, found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
            self.address_family = family
            super().__init__(found, Handler)  # type: ignore[arg-type]
        except (OSError, UnicodeError) as error:  # the latter of names that can't be any
            number = getattr(error, "errno", None)
            said = CANNOT_LISTEN.get(number or 0, getattr(error, "strerror", None) or str(error))
            host = f"[{address[0]}]" if ":" in address[0] else address[0]
            raise WrongAddress(f"{host}:{address[1]}", said) from error

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own."""
        if not self._let_in(request):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def _let_in(self, client: Any) -> bool:
        """Not if all others are being answered."""
        with self._clients_lock:
            if len(self._clients) >= CLIENTS:
                oldest = next((one for one, idle in self._clients.items() if idle), None)
                if oldest is None:
                    return False
                del self._clients[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # which ends its thread
            self._clients[client] = True
        return True

    @contextmanager
    def at_work(self, client: Any) -> Iterator[None]:
        """The client waits for us, not we for the client."""
        self._mark(client, idle=False)
        try:
            yield
        finally:
            self._mark(client, idle=True)

    def _mark(self, client: Any, idle: bool) -> None:
        with self._clients_lock:
            if self._clients.pop(client, None) is not None:
                self._clients[client] = idle

    def shutdown_request(self, request: Any) -> None:
        with self._clients_lock:
            self._clients.pop(request, None)
        super().shutdown_request(request)

    def server_bind(self) -> None:
        """Without looking up the machine's name, which may wait for a name server."""
        socket.socket.setsockopt(self.socket, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def metrics(self, accept: str, seconds: float) -> tuple[bytes, str]:
        came = time.monotonic()
        with self._one:
            if self._looked < came:  # else who came before has just looked
                self._processes.look(seconds)
                self._looked = time.monotonic()
                self._say(set(map(_reason, self._processes.failed)))
            return metrics.text(self._processes, accept)

    def _say(self, lines: set[str]) -> None:
        """What was not said at the last look."""
        for line in sorted(lines - self._said):
            print(f"hakmem exporter: {line}", file=sys.stderr, flush=True)
        self._said = lines

    def handle_error(self, *_: object) -> None:
        """A client that goes away in the middle is no error of ours."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            print(f"hakmem exporter: {error!r}", file=sys.stderr, flush=True)


def run(arguments: argparse.Namespace) -> int:
    if arguments.dashboard:
        with suppress(BrokenPipeError):
            print(dashboard.text(), end="", flush=True)
        return 0
    try:
        pids = look.read_pids(arguments.pids)
        processes = metrics.Processes(arguments.library, pids)
        server = Server(address_of(arguments.listen), processes)
    except (CannotLook, NoModule, WrongAddress) as why:
        print(f"hakmem exporter: {why}", file=sys.stderr)
        return why.status

    host, port = server.server_address[:2]
    shown = f"[{host!s}]" if ":" in str(host) else str(host)
    # To shut it down is to wait for the loop to end, which this thread is in.
    with server, interrupts.handled(lambda *_: threading.Thread(target=server.shutdown).start()):
        print(f"hakmem exporter: http://{shown}:{port}/metrics", file=sys.stderr, flush=True)
        if not pids and rights.hidden():
            print(f"hakmem exporter: {rights.HIDDEN}", file=sys.stderr, flush=True)
        server.serve_forever(poll_interval=0.2)
    return 0
