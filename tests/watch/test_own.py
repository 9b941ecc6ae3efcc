"""What a process says of itself: hakmem_sheet, and the options stats, stats_file and stats_signal.
Its figures are those that `hakmem sheet` sees from outside."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.nobody import as_nobody, public_folder, readable_by_nobody
from tests.ran import ran
from tests.watch.watched import SECONDS, SHARE, Command, running

# It says what it is asked for with a number: 0 is text, 1 OpenMetrics.
PROGRAM = """
import ctypes, os, sys
hakmem = ctypes.CDLL(None)
kept = [bytearray(i % 3000) for i in range(60000)]
del kept[::3]
print("ready", flush=True)
for line in sys.stdin:
    file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    print(hakmem.hakmem_sheet(file, int(line)), flush=True)
    os.close(file)
"""
SIGNALS = 100
QUIET = {"HAKMEM_SCAVENGER": "off"}
NAMES = {
    "hakmem_resident_memory_bytes",
    "hakmem_live_bytes",
    "hakmem_heap_resident_bytes",
    "hakmem_other_resident_bytes",
    "hakmem_swapped_bytes",
    "hakmem_returnable_bytes",
    "hakmem_freed_bytes_total",
    "hakmem_returned_bytes_total",
    "hakmem_taken_again_bytes_total",
    "hakmem_thread_caches",
    "hakmem_build_info",
}


def metrics(text: str) -> dict[str, int]:
    """By name and label's value. All lines are what OpenMetrics allows."""
    *lines, end = text.splitlines()
    assert end == "# EOF"
    found: dict[str, int] = {}
    described: set[str] = set()
    for line in lines:
        if line.startswith("#"):
            word, name, rest = line.removeprefix("# ").split(" ", 2)
            assert word in ("TYPE", "UNIT", "HELP") and rest
            assert word != "UNIT" or name.endswith("_" + rest)
            described.add(name)
            continue
        match = re.fullmatch(r'(\w+?)(?:\{\w+="([\w.]+)"\})? (-?\d+)', line)
        assert match is not None, line
        name, label, number = match.groups()
        assert re.sub("_total$", "", name) in described
        found[f"{name} {label}" if label else name] = int(number)
    assert {key.split()[0] for key in found} == NAMES
    return found


def adds_up(found: dict[str, int]) -> None:
    parts = [n for key, n in found.items() if "_resident_bytes " in key]
    assert sum(parts) == found["hakmem_resident_memory_bytes"]


@pytest.fixture
def told(library: Path, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    return tmp_path / "told", os.environ | {"LD_PRELOAD": str(library)}


def test_the_same_figures_as_from_outside(command: Command, library: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    words = [sys.executable, "-c", PROGRAM, str(told)]
    with running(*words, library=library, PYTHONMALLOC="malloc", **QUIET) as process:
        assert process.ask("1") == 0
        inside = metrics(told.read_text())
        outside = command.sheet(process.pid)
        adds_up(inside)
        for line in (*outside.said["heap"], *outside.said["others"]):
            found = [n for key, n in inside.items() if key.endswith(f" {line['name']}")]
            # The program reads and prints meanwhile.
            assert abs(found[0] - line["resident"]) <= SHARE * line["resident"] + 2**17, line
        assert process.ask("0") == 0
        text = told.read_text()
        assert process.ask("2") == 22, "EINVAL"
    for line in outside.said["heap"]:
        assert f"\n  {line['title']} " in text, "the titles are those of the command"
    assert re.search(r"^since the start: [\d.]+ MiB freed", text, re.MULTILINE)
    resident = re.search(r": ([\d.]+) MiB resident", text)
    rows = re.findall(r"^  \S.{39} +(-?[\d.]+) +(-?[\d.]+)$", text, re.MULTILINE)
    assert resident is not None and len(rows) == len(outside.said["heap"] + outside.said["others"])
    sums = [sum(int(row[i].replace(".", "")) for row in rows) for i in range(2)]
    assert sums == [int(resident[1].replace(".", "")), 1000], "to the last digit"


def test_at_the_end(told: tuple[Path, dict[str, str]]) -> None:
    path, environment = told
    done = ran(
        sys.executable,
        "-c",
        "print('done')",
        env=environment | {"HAKMEM_STATS": "exit", "HAKMEM_STATS_FILE": f"{path}.%p.%%"},
    )
    assert (done.returncode, done.stdout) == (0, "done\n")
    head = re.search(
        r"^.* \(PID \d+\), .*: ([\d.]+) MiB resident \(at most ([\d.]+)\)", done.stderr
    )
    assert head is not None and 1 < float(head[1]) <= float(head[2])
    assert "  blocks in use  " in done.stderr and "size classes" in done.stderr
    (file,) = path.parent.iterdir()
    assert re.fullmatch(r"told\.\d+\.%", file.name)
    adds_up(metrics(file.read_text()))


def test_each_process_of_a_tree_has_its_file(told: tuple[Path, dict[str, str]]) -> None:
    path, environment = told
    program = """
import os
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    done = ran(sys.executable, "-c", program, env=environment | {"HAKMEM_STATS_FILE": f"{path}.%p"})
    assert (done.returncode, done.stderr) == (0, "")
    files = list(path.parent.iterdir())
    assert len(files) == 2
    for file in files:
        adds_up(metrics(file.read_text()))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("missing/file", "there is no such file"),
        (".", "it is a directory|error 16"),
        ("pipe", "it is a pipe that nobody reads, or a socket"),
        ("file", ""),
    ],
)
def test_a_file_that_cannot_be_written(
    told: tuple[Path, dict[str, str]], name: str, why: str
) -> None:
    """One line, and the program's own result stays. The last one is a full disk."""
    path, environment = told
    target = path.parent / name
    os.mkfifo(path.parent / "pipe")

    def no_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    done = ran(
        sys.executable,
        "-S",
        "-c",
        "raise SystemExit(5)",
        env=environment | {"HAKMEM_STATS_FILE": str(target)},
        preexec_fn=no_room if not why else None,
    )
    assert done.returncode == 5
    shown = re.escape(str(target))
    assert re.fullmatch(
        f"hakmem: stats_file: {shown}: ({why or 'too large for .*'})\n", done.stderr
    )
    assert not list(path.parent.glob("*.tmp")) and not (path.parent / "file").exists()


def test_standard_error_that_nobody_reads(told: tuple[Path, dict[str, str]]) -> None:
    """A pipe whose reader has gone would end a program by SIGPIPE."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-S", "-c", "raise SystemExit(5)"],
        env=told[1] | {"HAKMEM_STATS": "exit"},
        stderr=writer,
        timeout=SECONDS,
    )
    os.close(writer)
    assert done.returncode == 5


def test_a_process_that_may_not_read_itself(library: Path, programs: Path, tmp_path: Path) -> None:
    """It is not dumpable; the file is not to blame."""
    readable_by_nobody(library)
    with public_folder() as folder:
        folder.chmod(0o777)
        program = "import ctypes; ctypes.CDLL(None).prctl(4, 0)"
        done = ran(
            *as_nobody(),
            "/usr/bin/python3",
            "-S",
            "-c",
            program,
            env=os.environ | {"LD_PRELOAD": str(library), "HAKMEM_STATS_FILE": f"{folder}/told.%p"},
        )
        said = "hakmem: stats_file: the process can't read itself in /proc: permission denied\n"
        assert (done.returncode, done.stderr.splitlines(True)[-1]) == (0, said)
        assert not [one for one in folder.iterdir() if one.name.endswith("tmp")]


def test_the_most_that_was_resident(told: tuple[Path, dict[str, str]]) -> None:
    """By the kernel, before the look itself needs memory."""
    program = """
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    done = ran(sys.executable, "-S", "-c", program, env=told[1] | {"HAKMEM_STATS": "exit"})
    most = re.search(r"at most ([\d.]+)\)", done.stderr)
    assert most is not None
    assert int(done.stdout) / 1024 - 0.1 <= float(most[1]) <= int(done.stdout) / 1024 + 1


def test_where_the_first_thread_has_ended(
    command: Command, programs: Path, library: Path, tmp_path: Path
) -> None:
    """The process lives, though the kernel shows its first thread as ended: it is seen from
    outside, takes orders, and sees itself, also on a signal that meets a small stack."""
    told = tmp_path / "told"
    with running(
        programs / "watch_plant",
        "second",
        library=library,
        HAKMEM_STATS_FILE=str(told),
        HAKMEM_STATS_SIGNAL=str(int(signal.SIGUSR2)),
        **QUIET,
    ) as process:
        planted = process.ask("live")
        sheet = command.sheet(process.pid)
        sheet.adds_up()
        assert sheet["live"] >= planted
        assert process.ask("small") == 1
        inside = metrics(told.read_text())
        adds_up(inside)
        assert inside["hakmem_live_bytes"] >= planted
        assert str(process.pid) in command("top", "--once").stdout
        process.ask("slices")
        assert command("purge", process.pid).returncode in (0, 4), "done, or when it next frees"


def test_a_signal_in_an_idle_process(library: Path, tmp_path: Path) -> None:
    """It has one thread, which sleeps in a system call."""
    told = tmp_path / "told"
    with running(
        sys.executable,
        "-c",
        "print('ready', flush=True)\ninput()\nprint(7, flush=True)\ninput()",
        library=library,
        HAKMEM_STATS_FILE=str(told),
        HAKMEM_STATS_SIGNAL=str(int(signal.SIGUSR2)),
    ) as process:
        os.kill(process.pid, signal.SIGUSR2)
        until = time.monotonic() + SECONDS
        while not told.exists() and time.monotonic() < until:
            time.sleep(0.01)
        adds_up(metrics(told.read_text()))
        assert process.ask("") == 7, "it goes on where it was"


def test_signals_among_threads_that_allocate(
    told: tuple[Path, dict[str, str]], programs: Path
) -> None:
    """Whichever thread it meets, in the middle of malloc or free, too: the program goes on, and
    what it says adds up. The stress program checks its blocks."""
    path, environment = told
    with subprocess.Popen(
        [programs.parent / "stress/stress", "--live-mb", "64", "--timeout", "300"],
        env=environment
        | {"HAKMEM_STATS_FILE": str(path), "HAKMEM_STATS_SIGNAL": str(int(signal.SIGUSR2))},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as stress:
        sent = seen = 0
        # The handler is there when the first block is: the program has mapped files by then.
        while stress.poll() is None and not _handles(stress.pid, signal.SIGUSR2):
            time.sleep(0.001)
        while stress.poll() is None and sent < SIGNALS:
            os.kill(stress.pid, signal.SIGUSR2)
            sent += 1
            if path.exists():
                adds_up(metrics(path.read_text()))
                seen += 1
            time.sleep(0.01)
        stress.wait(300)
        assert stress.stderr is not None
        assert (stress.returncode, stress.stderr.read()) == (0, "")
    assert seen > 0
    assert [file.name for file in path.parent.iterdir()] == ["told"]


def _handles(pid: int, number: int) -> bool:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


@pytest.mark.parametrize(
    ("number", "why"),
    [("9", "a signal that can be handled"), ("11", "a signal that is no fault")],
)
def test_signals_that_are_refused(told: tuple[Path, dict[str, str]], number: str, why: str) -> None:
    done = ran("/bin/ls", "/", env=told[1] | {"HAKMEM_STATS_SIGNAL": number})
    assert done.returncode == 0
    assert done.stderr == f"hakmem: stats_signal: expected {why}: nothing is set\n"
