"""The answer, where it is known what it should be. What is judged here are page faults and memory,
which a busy machine hardly changes."""

from __future__ import annotations

import sys

from yardstick.tests.tune.tuned import Tuned

# Keeps nothing that was freed, so it is fetched from the kernel each time; in small pages, since
# whether there are huge ones depends on what else runs.
KEEPS_NOTHING = "hakmem+keep_bytes=0+huge_pages=off"


def test_a_planted_gain(tuned: Tuned) -> None:
    """And the file works: the program runs with it, and --check finds the gain again."""
    program = [str(tuned.plant), "again", "20", "1"]
    done = tuned.tune(
        *("--base", KEEPS_NOTHING, "--with", "none", "--measures", "faults", "--least", "10%"),
        *("--held-out", f"{tuned.plant} again 30 2", "-o", str(tuned.settings), "--", *program),
    )
    assert "these settings gain: hakmem+" in done.stdout
    text = tuned.settings.read_text()
    assert "\nkeep_bytes = " in text and "# processors: " in text
    tuned.call("run", "--settings", str(tuned.settings), *program)
    done = tuned.call("tune", "--minutes", "0.01", "--check", str(tuned.settings))
    assert "still gain" in done.stdout


SERVICE = """\
import signal, socket, sys, threading
blocks = [bytearray(1000) for _ in range(20000)]
server = socket.create_server(("127.0.0.1", 0))
open(sys.argv[1], "w").write(str(server.getsockname()[1]))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
while True:
    client, _ = server.accept()
    while client.recv(1):
        b"".join(blocks)
        client.sendall(b"x")
"""
CLIENT = """\
import socket, sys
client = socket.create_connection(("127.0.0.1", int(open(sys.argv[1]).read())))
for _ in range(int(sys.argv[2])):
    client.sendall(b"x")
    client.recv(1)
print("requests: 1,234.5 each second")
"""


def _service(tuned: Tuned, figure: str) -> list[str]:
    (tuned.folder / "service.py").write_text(SERVICE)
    (tuned.folder / "client.py").write_text(CLIENT)
    port = tuned.folder / "port"
    client = f"{sys.executable} {tuned.folder / 'client.py'} {port}"
    return [
        *("--prepare", f"rm -f {port}", "--ready", f"{client} 1", "--load", f"{client} 5"),
        *("--figure", figure, "--more-is-better", "--with", "none", "-o", str(tuned.settings)),
        *("--", sys.executable, str(tuned.folder / "service.py"), str(port)),
    ]


def test_a_service(tuned: Tuned) -> None:
    """Its figure is the same in each run."""
    done = tuned.tune("--measures", "figure", *_service(tuned, r"requests: ([\d.,]+)"))
    assert "keep the defaults" in done.stdout
    assert not tuned.settings.exists()


def test_a_figure_that_is_not_printed(tuned: Tuned) -> None:
    done = tuned.tune("--measures", "figure", *_service(tuned, r"nonsense: ([\d.,]+)"), status=4)
    assert "--figure" in done.stderr


def test_programs_that_fail(tuned: Tuned) -> None:
    done = tuned.tune("--with", "none", "--", str(tuned.plant), "nonsense", "1", "1", status=4)
    assert "the program failed: exit status 2" in done.stderr
    done = tuned.tune(
        "--load", "false", "--with", "none", "--", str(tuned.plant), "idle", "1", "1", status=4
    )
    assert "--load ended with status 1" in done.stderr
