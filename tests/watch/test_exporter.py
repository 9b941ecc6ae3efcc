"""`hakmem exporter` and `hakmem top --prometheus`: both formats are what Prometheus' own library
and Prometheus itself read, and the figures are those of `hakmem top`."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import prometheus_client.openmetrics.parser
import prometheus_client.parser
import pytest

from hakmem import dashboard, exporter_command, metrics
from hakmem.exporter_command import Server
from hakmem.look import TooLate
from tests.nobody import as_nobody, readable_by_nobody
from tests.ran import ran
from tests.watch.watched import SECONDS, SHARE, Command, Process, running

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
FORMATS = ((OPENMETRICS, prometheus_client.openmetrics.parser), ("", prometheus_client.parser))
"""What a client accepts, and what reads it."""
Found = dict[tuple[str, ...], float]


def found_in(text: str, parser: Any, **labels: str) -> Found:
    """Samples that have the labels, by name and the values of their other labels."""
    found = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            if all(sample.labels.get(name) == value for name, value in labels.items()):
                others = [v for name, v in sample.labels.items() if name not in ("pid", "program")]
                found[(sample.name, *others)] = sample.value
    return found


@contextmanager
def exporter(
    command: Command,
    *words: str | int,
    by: Sequence[str] = (),
    says: str = "",
    ends_by: signal.Signals = signal.SIGTERM,
) -> Iterator[str]:
    """Its address. `says`: what it prints beside that."""
    words = ("exporter", "--listen", "127.0.0.1:0", *words)
    process = subprocess.Popen(
        [*by, "/bin/sh", str(command.path), *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        match = re.fullmatch(r"hakmem exporter: (http://127\.0\.0\.1:\d+)/metrics\n", line)
        assert match is not None, line
        yield match[1]
        process.send_signal(ends_by)
        assert process.wait(SECONDS) == 0
        rest = process.stderr.read()
        assert re.fullmatch("(hakmem exporter: .*\\n)*", rest) and says in rest, rest
    finally:
        process.kill()
        process.communicate()


def fetch(url: str, accept: str = "", **headers: str) -> tuple[str, str]:
    """The text and its type."""
    headers |= {"Accept": accept} if accept else {}
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return answer.read().decode(), answer.headers["Content-Type"]


def agrees(found: Found, command: Command, pid: int) -> None:
    """With what `hakmem top` says of an idle process."""
    (row,) = json.loads(command("top", "--json", pid).stdout)
    for name, key in (
        ("hakmem_resident_memory_bytes", "resident"),
        ("hakmem_live_bytes", "live"),
        ("hakmem_returnable_bytes", "returnable"),
    ):
        assert abs(found[name,] - row[key]) <= SHARE * row["resident"], name
    parts = [v for key, v in found.items() if key[0].endswith("_resident_bytes")]
    assert sum(parts) == found["hakmem_resident_memory_bytes",]


def test_both_formats(command: Command, plant: Process) -> None:
    plant.ask("live")
    plant.ask("kept")
    pid = str(plant.pid)
    with exporter(command) as url:
        for accept, parser in FORMATS:
            text, type_ = fetch(f"{url}/metrics", accept)
            assert type_.startswith(accept.partition(";")[0] or "text/plain")
            found = found_in(text, parser, pid=pid, program="watch_plant")
            agrees(found, command, plant.pid)
            assert found["hakmem_freed_bytes_total",] > 0
            assert found["hakmem_build_info", "0.1.0"] == 1
            own = found_in(text, parser)
            assert own["hakmem_scrape_duration_seconds",] > 0
    done = command("top", "--prometheus", plant.pid)
    assert done.returncode == 0, done.stderr
    agrees(found_in(done.stdout, prometheus_client.parser, pid=pid), command, plant.pid)


def test_other_pages(command: Command, plant: Process) -> None:
    with exporter(command, plant.pid) as url:
        text, kind = fetch(f"{url}/")
        assert 'href="/metrics"' in text and kind.startswith("text/html")
        with pytest.raises(urllib.error.HTTPError) as error:
            fetch(f"{url}/other")
        assert error.value.code == 404


@pytest.mark.parametrize(("path", "status"), [("/metrics", 200), ("/", 200), ("/other", 404)])
def test_head_is_get_without_its_body(
    command: Command, plant: Process, path: str, status: int
) -> None:
    def ask(method: str) -> tuple[int, str | None, bytes]:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=SECONDS)
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read()
        assert method == "HEAD" or int(answer.headers["Content-Length"]) == len(body)
        return answer.status, answer.headers["Content-Type"], body

    with exporter(command, plant.pid) as url:
        got, asked = ask("GET"), ask("HEAD")
        assert got[0] == status and len(got[2]) > 0
        assert asked == (*got[:2], b"")


def test_processes_come_and_go(command: Command, programs: Path, library: Path) -> None:
    """And one that was named and has ended counts as unreadable."""
    program = programs / "watch_plant"
    parser = prometheus_client.parser
    with exporter(command) as url:
        with running(program, library=library) as one:
            first = str(one.pid)
            assert found_in(fetch(f"{url}/metrics")[0], parser, pid=first)
            with running(program, library=library) as two:
                text = fetch(f"{url}/metrics")[0]
                assert found_in(text, parser, pid=first)
                assert found_in(text, parser, pid=str(two.pid))
        assert not found_in(fetch(f"{url}/metrics")[0], parser, pid=first)
    with ExitStack() as stack:
        named = stack.enter_context(running(program, library=library)).pid
        says = f"there is no process {named}"
        with exporter(command, named, says=says, ends_by=signal.SIGINT) as url:
            stack.close()
            text = fetch(f"{url}/metrics")[0]
            assert found_in(text, parser)["hakmem_processes_unreadable",] == 1


def test_processes_end_while_they_are_read(command: Command, library: Path, plant: Process) -> None:
    stop = threading.Event()
    environment = os.environ | {"LD_PRELOAD": str(library)}

    def come_and_go() -> None:
        while not stop.is_set():
            subprocess.run(["sleep", "0.05"], env=environment)

    threads = [threading.Thread(target=come_and_go) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        with exporter(command) as url:
            for _ in range(10):
                text = fetch(f"{url}/metrics", OPENMETRICS)[0]
                assert found_in(text, prometheus_client.openmetrics.parser, pid=str(plant.pid))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_process_whose_reading_hangs(library: Path, plant: Process, tmp_path: Path) -> None:
    """The others are there, within the time that Prometheus announces."""
    reader = tmp_path / "hakmem/look"
    reader.parent.mkdir()
    hangs, real = os.getpid(), library.resolve().parent / "hakmem/look"
    reader.write_text(f'#!/bin/sh\n[ "$1" != {hangs} ] || exec sleep 86400\nexec "{real}" "$@"\n')
    reader.chmod(0o755)
    processes = metrics.Processes(tmp_path / library.name, [hangs, plant.pid])
    with Server(("127.0.0.1", 0), processes) as server:
        loop = threading.Thread(target=server.serve_forever)
        loop.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/metrics"
            for _ in range(2):
                text = fetch(url, **{"X-Prometheus-Scrape-Timeout-Seconds": "10"})[0]
                found = found_in(text, prometheus_client.parser)
                assert found["hakmem_processes_unreadable",] == 1
                assert found["hakmem_scrape_duration_seconds",] >= 8
                assert found_in(text, prometheus_client.parser, pid=str(plant.pid))
        finally:
            server.shutdown()
            loop.join()


def test_late_processes_are_said_once(
    library: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Others are late in each look, as what was late comes first in the next."""
    processes = metrics.Processes(library, [1])
    late = iter([[3, 4], [5, 6], [7]])

    def look(_: float) -> None:
        processes.failed = [TooLate(pid) for pid in next(late)]

    monkeypatch.setattr(processes, "look", look)
    with Server(("127.0.0.1", 0), processes) as server:
        for _ in range(3):
            server.metrics("", 1)
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "not all processes were read in time" in said, said


def test_names_of_programs_hold_any_bytes(
    command: Command, programs: Path, library: Path, tmp_path: Path
) -> None:
    program = tmp_path / os.fsdecode(b'a"b\\c\nd{\xff}')
    shutil.copy(programs / "watch_plant", program)
    with running(program, library=library) as process, exporter(command, process.pid) as url:
        for accept, parser in FORMATS:
            text = fetch(f"{url}/metrics", accept)[0]
            assert found_in(text, parser, program='a"b\\c?d{\ufffd}')


@pytest.mark.parametrize(
    ("rights", "suffice"),
    [
        ("sys_ptrace", False),
        ("sys_ptrace,+dac_read_search", True),
        ("sys_ptrace,+dac_override", True),
    ],
)
def test_capabilities_of_a_user(
    command: Command, programs: Path, library: Path, rights: str, suffice: bool
) -> None:
    """A user with those of docs/watch.md sees root's processes; else is told what is missing."""
    readable_by_nobody(command.path)
    by = [*as_nobody(), f"--inh-caps=+{rights}", f"--ambient-caps=+{rights}"]
    if subprocess.run([*by, "true"], capture_output=True).returncode:
        pytest.skip("this root has not these capabilities to give")
    says = "" if suffice else "CAP_DAC_READ_SEARCH is needed beside CAP_SYS_PTRACE"
    with (
        running(programs / "watch_plant", library=library) as process,
        exporter(command, process.pid, by=by, says=says) as url,
    ):
        text = fetch(f"{url}/metrics")[0]
        found = found_in(text, prometheus_client.parser, pid=str(process.pid))
        assert bool(found) == suffice
        unreadable = found_in(text, prometheus_client.parser)["hakmem_processes_unreadable",]
        assert unreadable == (0 if suffice else 1)


def test_a_terminal_that_is_closed_ends_it(command: Command) -> None:
    with exporter(command, ends_by=signal.SIGHUP):
        pass


def test_what_was_ignored_stays_so(command: Command) -> None:
    """As nohup has it."""
    ignoring = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh"]
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    with exporter(command, by=ignoring) as url:
        procs = [Path("/proc", pid) for pid in children.read_text().split()]
        (one,) = (proc for proc in procs if b"exporter" in (proc / "cmdline").read_bytes())
        os.kill(int(one.name), signal.SIGHUP)
        assert "hakmem_processes_unreadable" in fetch(f"{url}/metrics")[0]


def test_without_rights_it_says_so(command: Command) -> None:
    readable_by_nobody(command.path)
    with exporter(command, by=as_nobody(), says="processes of other users can't be seen") as url:
        assert "hakmem_processes_unreadable" in fetch(f"{url}/metrics")[0]


def test_clients_that_hang_or_go_away(command: Command, plant: Process) -> None:
    with exporter(command, plant.pid) as url:
        port = int(url.rpartition(":")[2])
        hanging = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
        for client in hanging[:4]:
            client.sendall(b"GET /metrics HTTP/1.1\r\n")
        for client in hanging[4:6]:
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            client.close()
        assert "hakmem_live_bytes" in fetch(f"{url}/metrics")[0]
        for client in hanging:
            client.close()


@pytest.mark.parametrize("request_", [b"", b"GET /metrics HTTP/1.1\r\nHost: a\r\n"])
def test_idle_clients_do_not_keep_others_out(
    command: Command, plant: Process, request_: bytes
) -> None:
    """The first ones are closed, before their time is up, and the last ones stay."""
    with exporter(command, plant.pid) as url, ExitStack() as stack:
        address = urllib.parse.urlsplit(url)
        idle = []
        for _ in range(exporter_command.CLIENTS + 16):
            client = socket.create_connection((address.hostname, address.port), SECONDS)
            stack.enter_context(client).sendall(request_)
            idle.append(client)
        begun = time.monotonic()
        assert "hakmem_live_bytes" in fetch(f"{url}/metrics")[0]
        assert idle[0].recv(1) == b""
        assert time.monotonic() - begun < exporter_command.CLIENT_SECONDS
        idle[-1].sendall(b"\r\n" if request_ else b"GET / HTTP/1.1\r\n\r\n")
        assert idle[-1].recv(8) == b"HTTP/1.0"


def test_a_client_that_sends_slowly_is_left(
    library: Path, plant: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its whole request has a time, and so has each of its bytes."""
    monkeypatch.setattr(exporter_command, "CLIENT_SECONDS", 1)
    processes = metrics.Processes(library.resolve(), [plant.pid])
    with Server(("127.0.0.1", 0), processes) as server:
        loop = threading.Thread(target=server.serve_forever)
        loop.start()
        try:
            with socket.create_connection(("127.0.0.1", server.server_port)) as client:
                client.settimeout(SECONDS)
                with suppress(BrokenPipeError, ConnectionResetError):
                    for letter in "GET /metrics HTTP/1.1" * 100:
                        client.sendall(letter.encode())
                        time.sleep(0.1)
                    pytest.fail("it listens for ever")
        finally:
            server.shutdown()
            loop.join()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--listen", "nowhere"], "--listen nowhere: expected ADDRESS:PORT, such as .*"),
        (["--listen", "127.0.0.1:80000"], "--listen 127.0.0.1:80000: .* from 0 to 65535"),
        (["--listen", "127.0.0.1:" + "9" * 5000], "--listen .* from 0 to 65535"),
        (["--listen", "127.0.0.1:-1"], "--listen .* from 0 to 65535"),
        (["--listen", "127.0.0.1:"], "--listen .* from 0 to 65535"),
        (["--listen", "10910"], "--listen 10910: expected ADDRESS:PORT.*"),
        (["--listen", ":80"], "--listen :80: expected ADDRESS:PORT.*"),
        (["--listen", "192.0.2.1:0"], "--listen 192.0.2.1:0: this machine has no such address"),
        (["--listen", "2001:db8::1:0"], r"--listen \[2001:db8::1\]:0: .*"),
        (["--listen", "..:80"], r"--listen \.\.:80: .*"),
        (["--port", "80000"], "unrecognized arguments: --port.*"),
        (["abc"], "abc: expected a PID, a number from 1 to 4194304"),
    ],
)
def test_wrong_use(command: Command, words: list[str], line: str) -> None:
    done = command("exporter", *words)
    assert done.returncode == 2
    assert re.fullmatch(f"hakmem exporter: {line}\n", done.stderr), done.stderr


def test_a_port_that_is_taken(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = command("exporter", "--listen", f"127.0.0.1:{port}")
    assert done.returncode == 2
    said = "another program uses this port; port 0 is any that is free"
    assert done.stderr == f"hakmem exporter: --listen 127.0.0.1:{port}: {said}\n"


def test_a_port_that_only_root_may_use(command: Command) -> None:
    if int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 81:
        pytest.skip("any user may use any port here")
    readable_by_nobody(command.path)
    done = command("exporter", "--listen", "127.0.0.1:81", by=as_nobody())
    assert done.returncode == 2
    assert done.stderr.startswith("hakmem exporter: --listen 127.0.0.1:81: no permission; ")


def test_stat_refuses_what_it_must(command: Command, plant: Process) -> None:
    done = command("top", "--prometheus", "--every", 1, plant.pid)
    assert done.returncode == 2
    assert done.stderr == "hakmem top: expected --prometheus or --every, not both\n"


# ---- Prometheus and Grafana ----


def expressions() -> list[str]:
    board = json.loads(dashboard.text())
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def test_the_dashboard_asks_for_metrics_that_there_are(command: Command, plant: Process) -> None:
    text = command("top", "--prometheus", plant.pid).stdout
    there = {key[0] for key in found_in(text, prometheus_client.parser)}
    asked = {name for one in expressions() for name in re.findall(r"hakmem_\w+", one)}
    assert asked and asked <= there
    board = json.loads(command("exporter", "--dashboard").stdout)
    assert board["schemaVersion"] >= 39
    ids = [panel["id"] for panel in board["panels"]]
    assert ids == list(range(1, len(ids) + 1))


def _ask(port: int, query: str) -> list[dict[str, Any]]:
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    answer = json.loads(fetch(url)[0])
    assert answer["status"] == "success"
    return list(answer["data"]["result"])


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_real_prometheus(command: Command, plant: Process, tmp_path: Path) -> None:
    """It fetches, and has the figures; the dashboard's expressions are ones that it evaluates."""
    if shutil.which("prometheus") is None:
        pytest.skip("Prometheus is not installed")
    plant.ask("live")
    port = _free_port()
    with exporter(command, plant.pid) as url:
        (tmp_path / "prometheus.yml").write_text(
            "scrape_configs:\n"
            "  - job_name: hakmem\n"
            "    scrape_interval: 1s\n"
            "    static_configs:\n"
            f"      - targets: ['{url.removeprefix('http://')}']\n"
        )
        server = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={tmp_path}/prometheus.yml",
                f"--storage.tsdb.path={tmp_path}/data",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            query = f'hakmem_live_bytes{{pid="{plant.pid}"}}'
            until = time.monotonic() + SECONDS
            result: list[dict[str, Any]] = []
            while not result and time.monotonic() < until:
                time.sleep(0.2)
                try:
                    result = _ask(port, query)
                except OSError:
                    continue  # it starts
            (row,) = json.loads(command("top", "--json", plant.pid).stdout)
            assert abs(float(result[0]["value"][1]) - row["live"]) <= SHARE * row["live"]
            for one in expressions():
                for name in ("job", "instance", "program"):
                    one = one.replace(f"${name}", ".*")
                _ask(port, one.replace("$__rate_interval", "1m"))
            assert _ask(port, 'up{job="hakmem"}')[0]["value"][1] == "1"
        finally:
            server.kill()
            server.wait()


def _promtool(text: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    return ran("promtool", "check", "metrics", input=text)


def test_promtool_has_nothing_to_say(command: Command, plant: Process) -> None:
    """With processes and without."""
    plant.ask("live")
    ended = subprocess.Popen(["true"])
    ended.wait()
    with exporter(command, plant.pid, ended.pid, says="there is no process") as url:
        texts = [fetch(f"{url}/metrics", accept)[0] for accept in ("", "*/*", "text/plain")]
    texts += [command("top", "--prometheus", *one).stdout for one in ([plant.pid], [])]
    for text in texts:
        done = _promtool(text)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_a_process_writes_is_read_by_promtool(library: Path, tmp_path: Path) -> None:
    """The option stats_file. It is OpenMetrics, in which promtool misses the help of counters."""
    told = tmp_path / "told.prom"
    environment = os.environ | {"LD_PRELOAD": str(library), "HAKMEM_STATS_FILE": str(told)}
    subprocess.run(["ls"], env=environment, check=True, stdout=subprocess.DEVNULL)
    done = _promtool(told.read_text())
    said = (done.stdout + done.stderr).splitlines()
    assert all(re.fullmatch(r"hakmem_\w+_total no help text", line) for line in said), said
