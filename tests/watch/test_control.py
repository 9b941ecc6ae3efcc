"""`hakmem purge` and `hakmem set`: a process at work obeys, of an idle one it is said that it will,
and what is refused is refused in one line."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hakmem.table import gone
from tests.ran import clean_environment
from tests.watch.watched import Command, Process, running

# Says "ready", then frees and allocates, and says what an option is whenever it is asked.
WORKS = """
import ctypes, select, sys
library = ctypes.CDLL(None)
value = ctypes.c_uint64()
print("ready", flush=True)
kept = [bytes(300) for _ in range(200000)]
while True:
    for i in range(0, len(kept), 7):
        kept[i] = bytes(300 + i % 50)
    if select.select([sys.stdin], [], [], 0)[0]:
        word = sys.stdin.readline().strip()
        library.hakmem_option(word.encode(), ctypes.byref(value))
        print(value.value, flush=True)
"""


# Two threads allocate, then nobody calls anything any more.
IDLE = """
import threading
used = threading.Barrier(3)
def use():
    del [bytes(300) for _ in range(20000)][:]
    used.wait()
    threading.Event().wait()
for _ in range(2):
    threading.Thread(target=use).start()
used.wait()
print("ready", flush=True)
threading.Event().wait()
"""


@contextmanager
def at_work(library: Path, **variables: str) -> Iterator[Process]:
    with running(
        sys.executable, "-c", WORKS, library=library, PYTHONMALLOC="malloc", **variables
    ) as process:
        yield process


def in_the_end(command: Command, *words: str | int) -> subprocess.CompletedProcess[str]:
    """What is answered once the process got a processor, on a busy machine."""
    done = command(*words)
    for _ in range(20):
        if done.returncode != 4:
            break
        done = command(*words)
    return done


def test_a_process_at_work_purges(command: Command, library: Path) -> None:
    with at_work(library) as process:
        for _ in range(5):
            done = in_the_end(command, "purge", process.pid)
            assert (done.returncode, done.stderr) == (0, ""), done
            assert done.stdout.startswith(f"{process.pid}: ")
        command.sheet(process.pid).adds_up()


@pytest.mark.parametrize(
    ("setting", "is_then"),
    [
        ("compact=off", 0),
        ("profile_samples=7", 7),
        ("keep_bytes=16M", 16 << 20),
        ("HAKMEM_THREAD_BYTES=1 MiB", 1 << 20),
        ("keep_bytes=auto", 2**64 - 1),
        ("check_frees=on", 1),
        ("abort_on_misuse=off", 0),
        ("profile_rate=64K", 64 << 10),
        ("profile_samples=0", 0),
    ],
)
def test_an_option_changes(command: Command, library: Path, setting: str, is_then: int) -> None:
    name = setting.lower().removeprefix("hakmem_").split("=")[0]
    with at_work(library, HAKMEM_KEEP_BYTES="1M") as process:
        assert process.ask(name) != is_then
        done = command("set", process.pid, setting)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
        assert process.ask(name) == is_then


def test_an_idle_process_obeys_later(command: Command, plant: Process) -> None:
    plant.ask("kept")
    done = command("purge", plant.pid)
    assert (done.returncode, done.stdout) == (4, ""), done
    assert "is idle" in done.stderr and done.stderr.count("\n") == 1
    done = command("set", plant.pid, "compact=off")
    assert done.returncode == 4 and "an earlier order still waits" in done.stderr
    assert command.sheet(plant.pid)["kept"] > 1 << 20
    plant.ask("holes")  # it frees
    assert command.sheet(plant.pid)["kept"] == 0
    done = command("set", plant.pid, "compact=off")
    assert done.returncode == 4 and "is idle" in done.stderr


def test_an_order_that_waits_gets_a_new_value(command: Command, plant: Process) -> None:
    """Else the last that was said would not be what is done."""
    before = plant.ask("kept")
    assert command("set", plant.pid, "keep_bytes=1M").returncode == 4
    done = command("set", plant.pid, "keep_bytes=99G")
    assert done.returncode == 4 and "is idle" in done.stderr, done
    plant.ask("holes")  # it frees
    assert command.sheet(plant.pid)["kept"] > before / 2, "of 1M nothing would be left"


def test_a_profile_of_an_idle_process_is_over_when_it_works(
    command: Command, plant: Process
) -> None:
    assert command("profile", "--text", "--seconds", "0", plant.pid).returncode == 0
    plant.ask("holes")  # it frees, and obeys
    plant.ask("kept")
    done = command("sheet", "--sites", plant.pid)
    assert "no heap profile was on" in done.stdout, done


def test_orders_of_two_commands_at_once(command: Command, library: Path) -> None:
    with at_work(library) as process:
        names = [f"mark{n}" for n in range(12)]
        words = [str(command.path), "mark", str(process.pid)]
        marking = [subprocess.Popen([*words, name], env=clean_environment()) for name in names]
        for number, one in enumerate(marking):
            if one.wait() == 4:  # on a busy machine
                assert in_the_end(command, *words[1:], names[number]).returncode == 0
        said = command("top", "--prometheus", process.pid).stdout
        assert all(f'mark="{name}"' in said for name in names), said


@pytest.mark.parametrize(("scavenger", "status"), [("on", 0), ("off", 4)])
def test_an_idle_process_with_threads_obeys_soon(
    command: Command, library: Path, scavenger: str, status: int
) -> None:
    with running(
        sys.executable, "-c", IDLE, library=library, PYTHONMALLOC="malloc",
        HAKMEM_SCAVENGER=scavenger,
    ) as process:  # fmt: skip
        asks = in_the_end if status == 0 else Command.__call__
        assert asks(command, "purge", process.pid).returncode == status
        assert asks(command, "set", process.pid, "compact=off").returncode == status


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("compact", "expected NAME=VALUE"),
        ("compactt=on", "there is no option compactt"),
        ("compact=2", "the value is not allowed"),
        ("profile_samples=-1", "the value is not allowed"),
        ("profile_samples=1M", "the value is not allowed"),
        ("keep_bytes=99999999G", "the value is not allowed"),
        ("compact=auto", "the value is not allowed"),
        ("learn=off", "can only be set when a process starts"),
        *(
            (f"{name}=1M", f"there is no option {name} any more: {instead}")
            for name, instead in [*gone().items()][:1]
        ),
    ],
)
def test_what_is_refused(command: Command, plant: Process, setting: str, words: str) -> None:
    done = command("set", plant.pid, setting)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert done.stderr.startswith("hakmem set: ") and words in done.stderr


def test_many_orders_at_once(command: Command, library: Path) -> None:
    """All at one process: each is done, or waits for another."""
    with at_work(library) as process:
        words = ["/bin/sh", str(command.path), "set", str(process.pid)]
        asked = [
            subprocess.Popen(
                [*words, f"profile_samples={number}"], stderr=subprocess.PIPE, text=True
            )
            for number in range(8)
        ]
        for one in asked:
            _, said = one.communicate()
            assert one.returncode in (0, 4), said
        assert 0 <= process.ask("profile_samples") < 8


def test_from_python_alone(library: Path, programs: Path) -> None:
    """The same without the command or a compiler."""
    program = f"""
import ctypes
hakmem = ctypes.CDLL({str(library)!r})
assert hakmem.hakmem_option_set(b"compact", ctypes.c_uint64(0)) == 0
assert hakmem.hakmem_option_set(b"compactt", ctypes.c_uint64(0)) == {ctypes.c_int(2).value}
hakmem.hakmem_purge.restype = ctypes.c_size_t
hakmem.hakmem_purge()
"""
    subprocess.run([sys.executable, "-c", program], env=os.environ, check=True)
