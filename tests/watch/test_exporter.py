"""`hakmem exporter` and `hakmem stat --prometheus`: both formats are what Prometheus' own library
and Prometheus itself read, and the figures are those of `hakmem stat`."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import prometheus_client.openmetrics.parser
import prometheus_client.parser
import pytest

from tests.nobody import as_nobody, readable_by_nobody
from tests.watch.watched import SECONDS, SHARE, Command, Process, running

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "python/hakmem/dashboard.json"
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
def exporter(command: Command, *words: str | int) -> Iterator[str]:
    """Its address."""
    process = subprocess.Popen(
        ["/bin/sh", str(command.path), "exporter", "--listen", "127.0.0.1:0", *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        match = re.fullmatch(r"hakmem exporter: (http://127\.0\.0\.1:\d+)/metrics\n", line)
        assert match is not None, line
        yield match[1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.communicate()


def fetch(url: str, accept: str = "") -> tuple[str, str]:
    """The text and its type."""
    request = urllib.request.Request(url, headers={"Accept": accept} if accept else {})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return answer.read().decode(), answer.headers["Content-Type"]


def agrees(found: Found, command: Command, pid: int) -> None:
    """With what `hakmem stat` says of an idle process."""
    (row,) = json.loads(command("stat", "--json", pid).stdout)
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
        for accept, kind, parser in (
            (OPENMETRICS, "application/openmetrics-text", prometheus_client.openmetrics.parser),
            ("", "text/plain", prometheus_client.parser),
        ):
            text, type_ = fetch(f"{url}/metrics", accept)
            assert type_.startswith(kind)
            found = found_in(text, parser, pid=pid, program="watch_plant")
            agrees(found, command, plant.pid)
            assert found["hakmem_freed_bytes_total",] > 0
            assert found["hakmem_build_info", "0.1.0"] == 1
            own = found_in(text, parser)
            assert own["hakmem_scrape_duration_seconds",] > 0
    done = command("stat", "--prometheus", plant.pid)
    assert done.returncode == 0, done.stderr
    agrees(found_in(done.stdout, prometheus_client.openmetrics.parser, pid=pid), command, plant.pid)


def test_other_pages(command: Command, plant: Process) -> None:
    with exporter(command, plant.pid) as url:
        text, kind = fetch(f"{url}/")
        assert 'href="/metrics"' in text and kind.startswith("text/html")
        with pytest.raises(urllib.error.HTTPError) as error:
            fetch(f"{url}/other")
        assert error.value.code == 404


def test_processes_come_and_go(
    command: Command, given: Callable[[str], Path], library: Path
) -> None:
    """And one that was named and has ended counts as unreadable."""
    program = given("--programs") / "watch_plant"
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
    with exporter(command, first) as url:
        text = fetch(f"{url}/metrics")[0]
        assert found_in(text, parser)["hakmem_processes_unreadable",] == 1


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


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--listen", "nowhere"], "--listen nowhere: expected ADDRESS:PORT, such as .*"),
        (["--listen", "127.0.0.1:70000"], "--listen 127.0.0.1:70000: expected ADDRESS:PORT.*"),
        (["--listen", ":80"], "--listen :80: expected ADDRESS:PORT.*"),
        (["--listen", "192.0.2.1:0"], "192.0.2.1:0: Cannot assign requested address"),
        (["abc"], "abc: expected a PID"),
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
    assert done.stderr == f"hakmem exporter: 127.0.0.1:{port}: Address already in use\n"


def test_stat_refuses_what_it_must(command: Command, plant: Process) -> None:
    done = command("stat", "--prometheus", "--watch", 1, plant.pid)
    assert done.returncode == 2
    assert done.stderr == "hakmem stat: expected --prometheus or --watch, not both\n"
    done = command("stat", "--prometheus", 2**30)
    assert done.returncode == 2 and "there is no process" in done.stderr


def test_another_users_process_is_not_read(command: Command, plant: Process) -> None:
    if os.geteuid() != 0:
        pytest.skip("not root")
    readable_by_nobody(command.path)
    done = command("stat", "--prometheus", plant.pid, by=as_nobody())
    assert done.returncode == 3
    assert "no permission" in done.stderr and f'pid="{plant.pid}"' not in done.stdout


# ---- Prometheus and Grafana ----


def expressions() -> list[str]:
    board = json.loads(DASHBOARD.read_text())
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def test_the_dashboard_asks_for_metrics_that_there_are(command: Command, plant: Process) -> None:
    text = command("stat", "--prometheus", plant.pid).stdout
    there = {key[0] for key in found_in(text, prometheus_client.openmetrics.parser)}
    asked = {name for one in expressions() for name in re.findall(r"hakmem_\w+", one)}
    assert asked and asked <= there
    assert command("exporter", "--dashboard").stdout == DASHBOARD.read_text()
    assert json.loads(DASHBOARD.read_text())["schemaVersion"] >= 39


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
            (row,) = json.loads(command("stat", "--json", plant.pid).stdout)
            assert abs(float(result[0]["value"][1]) - row["live"]) <= SHARE * row["live"]
            for one in expressions():
                for name in ("job", "instance", "program"):
                    one = one.replace(f"${name}", ".*")
                _ask(port, one.replace("$__rate_interval", "1m"))
            assert _ask(port, 'up{job="hakmem"}')[0]["value"][1] == "1"
        finally:
            server.kill()
            server.wait()


def test_what_a_process_writes_is_read_by_promtool(
    command: Command, plant: Process, library: Path, tmp_path: Path
) -> None:
    """Of the text of `hakmem stat`, and of the file that a process writes (option stats_file)."""
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    told = tmp_path / "told.prom"
    environment = os.environ | {"LD_PRELOAD": str(library), "HAKMEM_STATS_FILE": str(told)}
    subprocess.run(["ls"], env=environment, check=True, stdout=subprocess.DEVNULL)
    for text in (command("stat", "--prometheus", plant.pid).stdout, told.read_text()):
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=text, capture_output=True, text=True
        )
        assert "error" not in (done.stdout + done.stderr).lower(), done.stderr
