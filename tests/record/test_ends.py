"""Recordings that end in another way than with their program."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hakmem import events
from tests.nobody import as_nobody, public_folder, readable_by_nobody
from tests.ran import clean_environment, ran
from tests.record.recorded import LONG, MARK, Recorded, leftovers


def test_killed_program(recorded: Recorded) -> None:
    recorded.run("killed", "20000", status=128 + signal.SIGKILL)
    process, calls, _ = recorded.only()
    assert process.done is not None and not process.done["orderly"]
    assert MARK in calls.size.tolist()  # the last thing that it did


def test_status_and_arguments_of_the_program(recorded: Recorded) -> None:
    recorded.run("nonsense", status=2)
    assert recorded.only()[0].facts["command"] == [str(recorded.plant), "nonsense"]


def _start(recorded: Recorded, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        recorded.command(*words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(),
        start_new_session=True,
    )


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def _when(what: str, true: object, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if true():  # type: ignore[operator]
            return
        time.sleep(0.01)
    raise AssertionError(f"not within {seconds} s: {what}")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_the_program_goes_on_without_its_recorder(recorded: Recorded, number: int) -> None:
    """Its memory for events is full, and nobody empties it."""
    command = _start(recorded, "work", "20000000")
    program = 0
    try:
        _when(
            "it records",
            lambda: recorded.file.exists() and recorded.file.stat().st_size > 1_000_000,
        )
        (program,) = _children(command.pid)
        os.kill(command.pid, number)
        gone = Path(f"/proc/{program}/status")
        _when("it ends", lambda: not gone.exists() or "zombie" in gone.read_text())
        found, _ = recorded.processes()
        assert events.calls_of(found[-1]) > 1000
        assert "cut off" in recorded.trace().stderr
    finally:
        os.killpg(command.pid, signal.SIGKILL)
        command.communicate(timeout=LONG)
        for folder in leftovers(program):
            shutil.rmtree(folder)


def test_what_a_killed_recorder_leaves_the_next_removes(recorded: Recorded) -> None:
    """But not what belongs to one that is at work."""

    def serving() -> tuple[subprocess.Popen[str], int]:
        recorded.file.unlink(missing_ok=True)
        command = _start(recorded, "serve")
        _when("it records", lambda: recorded.file.exists() and recorded.file.stat().st_size > 1000)
        return command, _children(command.pid)[0]

    commands: list[subprocess.Popen[str]] = []
    try:
        for _ in range(2):
            commands.append((one := serving())[0])
            assert leftovers(one[1])
        (killed,), (lives,) = (_children(command.pid) for command in commands)
        commands[0].kill()
        commands[0].wait()
        assert leftovers(killed) and leftovers(lives)
        recorded.run("work", "1000")
        assert not leftovers(killed) and leftovers(lives)
    finally:
        for command in commands:
            os.killpg(command.pid, signal.SIGKILL)
            command.communicate(timeout=LONG)
    recorded.run("work", "1000")
    assert not leftovers(lives)


def test_interrupted(recorded: Recorded) -> None:
    """Ctrl-C ends the program, and the recording with it."""
    command = _start(recorded, "serve")
    _when("it records", lambda: recorded.file.exists() and recorded.file.stat().st_size > 1000)
    os.killpg(command.pid, signal.SIGINT)
    _, said = command.communicate(timeout=LONG)
    assert command.returncode == 128 + signal.SIGINT, said
    assert " events of 1 process, " in said
    assert recorded.processes()[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_who_ends_the_command_ends_the_recording(recorded: Recorded, number: int) -> None:
    """SIGTERM is handed on, as nobody else sends it to the program; SIGHUP, as from a terminal,
    reaches all of them."""
    command = _start(recorded, "serve")
    _when("it records", lambda: recorded.file.exists() and recorded.file.stat().st_size > 1000)
    if number == signal.SIGTERM:
        command.send_signal(number)
    else:
        os.killpg(command.pid, number)
    _, said = command.communicate(timeout=LONG)
    assert command.returncode == 128 + number, said
    assert " events of 1 process, " in said
    assert recorded.processes()[1]


def test_limit(recorded: Recorded) -> None:
    said = recorded.run("work", "2000000", options=("--limit", "1")).stderr
    assert "the recording ends early" in said and "(see --limit)" in said
    assert recorded.file.stat().st_size < 8 * 2**20
    assert recorded.processes()[1]


def test_full_disk(recorded: Recorded) -> None:
    """As a limit on the size of files makes it: the ring fits, the recording soon doesn't."""
    most = 10 * 2**20
    said = recorded.run(
        *("work", "4000000"),
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    ).stderr
    assert "the recording ends early: " in said and "File too large" in said
    found, whole = recorded.processes()
    assert whole and len(found) == 1
    assert recorded.file.stat().st_size <= most


def test_no_room_for_the_first_byte(recorded: Recorded) -> None:
    """Nothing is left of it, and nothing is started."""

    def before() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4))

    done = recorded.run("work", "10", status=125, before=before)
    assert done.stderr == f"hakmem record: {recorded.file}: File too large\n"
    assert not recorded.file.exists()


def test_no_room_for_an_index(recorded: Recorded) -> None:
    """A line says so."""
    recorded.run("work", "20000")
    done = subprocess.run(
        [str(recorded.hakmem), "trace", "--index", str(recorded.file)],
        capture_output=True,
        text=True,
        timeout=LONG,
        env=clean_environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512)),
    )
    index = recorded.file.with_name(recorded.file.name + ".index")
    said = f"hakmem trace: {index}: File too large\n"
    assert (done.returncode, done.stderr) == (5, said) and not index.exists()


def test_a_umask_that_lets_nobody_in(recorded: Recorded) -> None:
    """Not even the user whose files these are."""
    by = []
    if os.geteuid() == 0:  # which may do all
        readable_by_nobody(recorded.hakmem)
        by = as_nobody()
    with public_folder() as folder:
        folder.chmod(0o777)
        script = ["sh", "-c", 'umask 777; exec "$@"', "sh"]
        words = ["record", "-o", str(folder / "r"), "--", str(recorded.plant), "work", "1000"]
        done = subprocess.run(
            [*by, *script, str(recorded.hakmem), *words],
            capture_output=True,
            text=True,
            timeout=LONG,
            env=clean_environment(),
        )
        assert done.returncode == 0, done.stderr
        assert re.search(r": [\d,]{4,} events of 1 process, ", done.stderr), done.stderr
        assert [path.name for path in folder.iterdir()] == ["r"]


def test_a_long_command_line(recorded: Recorded) -> None:
    """Its end is left out; more of it where the process was gone before anybody asked."""
    words = ["-c", ":", "sh", *(f"{n}" + "x" * 3000 for n in range(30)), "x" * 100_000]
    done = subprocess.run(
        [str(recorded.hakmem), "record", "-o", str(recorded.file), "--", "/bin/sh", *words],
        capture_output=True,
        text=True,
        timeout=LONG,
        env=clean_environment(),
    )
    assert done.returncode == 0, done.stderr
    (shell,), whole = recorded.processes()
    command = shell.facts["command"]
    assert whole and command[:5] == ["/bin/sh", *words[:4]] and len(command) < len(words)
    assert "/bin/sh -c : sh 0xxx" in recorded.trace().stdout


def test_what_it_says_of_bad_input(recorded: Recorded) -> None:
    def says(*words: str) -> tuple[int, str]:
        done = ran(str(recorded.hakmem), *words, env=clean_environment())
        return done.returncode, done.stderr.strip()

    assert says("record")[0] == 2
    assert says("record", "1", "--", "true")[0] == 2
    assert says("record", "-o", "/nonexistent/a", "--", "true") == (
        125,
        "hakmem record: /nonexistent/a: No such file or directory",
    )
    missing = says("record", "-o", str(recorded.file), "--", "/nonexistent")
    assert missing == (127, "hakmem run: /nonexistent: there is no such file")
    assert not recorded.file.exists()
    assert says("trace", "/nonexistent") == (
        2,
        "hakmem trace: /nonexistent: No such file or directory",
    )
    assert says("trace", str(recorded.plant))[1].endswith("not a recording of hakmem")
    assert says("trace", "-") == (
        1,
        "hakmem trace: -: a recording is read more than once; write it to a file, and name that",
    )
    recorded.run("work", "100")
    words = f"cat '{recorded.file}' | {recorded.hakmem} trace /dev/stdin"
    done = ran("sh", "-c", words)
    assert done.returncode == 1 and "/dev/stdin: a recording is read more" in done.stderr
    assert says("trace", "-o", "a.txt", str(recorded.file))[0] == 2


def _alone(
    recorded: Recorded, folder: str, before: Callable[[], object] | None = None
) -> subprocess.CompletedProcess[str]:
    """The planted program with the option, and nobody who records it."""
    return ran(
        str(recorded.plant),
        "work",
        "1000",
        env=clean_environment() | {"LD_PRELOAD": str(recorded.library), "HAKMEM_RECORD": folder},
        preexec_fn=before,
    )


def test_no_folder_for_the_ring(recorded: Recorded) -> None:
    done = _alone(recorded, "/nonexistent")
    assert (done.returncode, done.stderr) == (0, "")  # who asked has ended


# ---- a running process ----


def _run_plant(recorded: Recorded, what: str) -> subprocess.Popen[bytes]:
    plant = subprocess.Popen(
        [str(recorded.plant), what],
        env=clean_environment() | {"LD_PRELOAD": str(recorded.library)},
    )
    maps = Path(f"/proc/{plant.pid}/maps")
    _when("it has the library", lambda: recorded.library.name in maps.read_text())
    return plant


def _record(recorded: Recorded, pid: int, *words: str) -> subprocess.CompletedProcess[str]:
    return ran(
        str(recorded.hakmem),
        "record",
        "-o",
        str(recorded.file),
        *words,
        str(pid),
        env=clean_environment(),
    )


def test_a_running_process(recorded: Recorded) -> None:
    """Twice: the second recording knows nothing of the first."""
    plant = _run_plant(recorded, "serve")
    try:
        for _ in range(2):
            done = _record(recorded, plant.pid, "--seconds", "1")
            assert done.returncode == 0, done.stderr
            process, calls, _ = recorded.only()
            assert process.facts["pid"] == plant.pid
            assert len(calls.kind) > 1000
            assert process.done is not None and process.done["lost"] == 0
            assert "work_on" in recorded.trace().stdout
        assert plant.poll() is None
        assert not leftovers(plant.pid)
    finally:
        plant.kill()
        plant.wait()


def test_a_process_whose_name_is_cut_within_a_letter(recorded: Recorded, tmp_path: Path) -> None:
    """As the kernel does at 15 bytes."""
    named = replace(recorded, plant=tmp_path / "fourteen_bytesé")
    shutil.copy(recorded.plant, named.plant)
    plant = _run_plant(named, "serve")
    try:
        done = _record(named, plant.pid, "--seconds", "1")
        assert done.returncode == 0, done.stderr
        assert named.only()[0].facts["pid"] == plant.pid
    finally:
        plant.kill()
        plant.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_who_ends_the_command_ends_the_recording_of_a_process(
    recorded: Recorded, number: int
) -> None:
    plant = _run_plant(recorded, "serve")
    words = [str(recorded.hakmem), "record", "-o", str(recorded.file), "--seconds", "1000"]
    with subprocess.Popen(
        [*words, str(plant.pid)], stderr=subprocess.PIPE, text=True, env=clean_environment()
    ) as command:
        try:
            size = recorded.file.stat
            _when("it records", lambda: recorded.file.exists() and size().st_size > 1000)
            command.send_signal(number)
            _, said = command.communicate(timeout=LONG)
            assert command.returncode == 0, said
            assert plant.poll() is None and not leftovers(plant.pid)
            assert recorded.only()[1].kind.size > 0
        finally:
            plant.kill()
            plant.wait()
            command.kill()


def test_a_process_that_is_idle_or_another_allocators(recorded: Recorded) -> None:
    plant = _run_plant(recorded, "idle")
    try:
        done = _record(recorded, plant.pid, "--seconds", "1")
        assert done.returncode == 4 and "is idle" in done.stderr
    finally:
        plant.kill()
        plant.wait()
    with subprocess.Popen(["sleep", "100"], env=clean_environment()) as other:
        done = _record(recorded, other.pid)
        other.kill()
        assert done.returncode == 1 and "does not use hakmem" in done.stderr


def test_a_process_that_ends_before_its_recording(recorded: Recorded) -> None:
    plant = _run_plant(recorded, "serve")
    words = [str(recorded.hakmem), "record", "-o", str(recorded.file), "--seconds", "1000"]
    command = subprocess.Popen(
        [*words, str(plant.pid)], stderr=subprocess.PIPE, text=True, env=clean_environment()
    )
    try:
        _when("it records", lambda: recorded.file.exists() and recorded.file.stat().st_size > 1000)
        plant.kill()
        plant.wait()
        _, said = command.communicate(timeout=LONG)
        assert command.returncode == 0, said
        assert len(recorded.only()[1].kind) > 100
        assert not leftovers(plant.pid)
    finally:
        plant.kill()
        command.kill()


def test_a_limit_of_file_sizes_below_the_ring(recorded: Recorded) -> None:
    """Not a signal, but a line."""
    done = _alone(
        recorded,
        str(recorded.folder),
        lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    assert done.returncode == 0
    assert "nothing is recorded" in done.stderr
