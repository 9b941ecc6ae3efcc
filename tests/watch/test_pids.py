"""What every subcommand that takes a PID says where there is nothing to look at: one line, the same
words, and the status that its help promises."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.nobody import as_nobody, public_folder, readable_by_nobody
from tests.ran import ran
from tests.watch.watched import Command, running

VERBS: dict[str, tuple[str, ...]] = {
    "doctor": ("doctor", "PID"),
    "exporter": ("exporter", "--listen", "127.0.0.1:0", "PID"),
    "profile": ("profile", "--text", "PID"),
    "purge": ("purge", "PID"),
    "record": ("record", "-o", "/nonexistent/a", "--seconds", "0", "PID"),
    "set": ("set", "PID", "check_frees=on"),
    "sheet": ("sheet", "PID"),
    "sheet_sites": ("sheet", "--sites", "PID"),
    "stat": ("top", "--once", "PID"),
    "stat_prometheus": ("top", "--prometheus", "PID"),
    "top": ("top", "PID"),
    "why": ("why", "PID"),
}
NUMBER = "{}: expected a PID, a number from 1 to 4194304"


@contextmanager
def _zombie() -> Iterator[int]:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        yield process.pid


def _ended() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def _kernel_thread() -> int:
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):  # it has ended
            text = status.read_text(errors="replace")
            # Where the kernel has no such line, one of the kernel's is the child of no process.
            if "\nKthread:\t1" in text or ("\nVmSize:" not in text and "\nPPid:\t2\n" in text):
                return int(status.parent.name)
    pytest.skip("this system shows no threads of the kernel's")


def _fails(command: Command, verb: str, pid: str | int, says: str, status: int = 2) -> None:
    words = [str(pid) if word == "PID" else word for word in VERBS[verb]]
    done = command(*words)
    hint = "; a program comes after --, as in 'hakmem doctor -- ls -l'"
    line = done.stderr.replace(hint, "") if verb.startswith("doctor") else done.stderr
    assert (done.returncode, done.stdout, line) == (status, "", f"hakmem {words[0]}: {says}\n")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("pid", ["0", "-1", "9" * 30, "4194305"])
def test_no_number_of_a_process(command: Command, verb: str, pid: str) -> None:
    _fails(command, verb, pid, NUMBER.format(pid))


@pytest.mark.parametrize("verb", VERBS)
def test_text(command: Command, verb: str) -> None:
    """Or the name of a file, where that may be given as well."""
    says = {
        "profile": "abc: No such file or directory",
        "sheet": "abc: No such file or directory",
        "sheet_sites": "--sites needs a running process",
    }.get(verb, NUMBER.format("abc"))
    _fails(command, verb, "abc", says)


@pytest.mark.parametrize("verb", VERBS)
def test_none(command: Command, verb: str) -> None:
    """As of $(pgrep NAME) where there is none: no files of this folder are meant."""
    _fails(command, verb, "", NUMBER.format("''"))


def test_spaces_as_ps_prints_them(command: Command, programs: Path, library: Path) -> None:
    with running(programs / "watch_plant", library=library) as process:
        for verb in ("why", "sheet", "doctor", "stat"):
            words = [f"  {process.pid}" if word == "PID" else word for word in VERBS[verb]]
            done = command(*words)
            assert (done.returncode, done.stderr) == (0, "") and "watch_plant" in done.stdout, done


@pytest.mark.parametrize("verb", ["sheet", "top"])
def test_without_proc(command: Command, verb: str) -> None:
    words = shlex.join([str(command.path), *VERBS[verb][:-1], "1"])
    without = ["unshare", "--mount", "sh", "-c"]
    if subprocess.run([*without, "umount -l /proc"], capture_output=True).returncode != 0:
        pytest.skip("/proc can't be unmounted here")
    done = ran(*without, f"umount -l /proc; exec {words}")
    assert (done.returncode, done.stderr) == (2, f"hakmem {verb}: /proc is not mounted\n"), done


@pytest.mark.parametrize("verb", VERBS)
def test_a_process_that_has_ended(command: Command, verb: str) -> None:
    pid = _ended()
    _fails(command, verb, pid, f"there is no process {pid}")


@pytest.mark.parametrize("verb", VERBS)
def test_a_zombie(command: Command, verb: str) -> None:
    with _zombie() as pid:
        says = "has ended, and its parent has not asked for its status (a zombie)"
        _fails(command, verb, pid, f"process {pid} {says}")


@pytest.mark.parametrize("verb", VERBS)
def test_a_thread_of_the_kernel(command: Command, verb: str) -> None:
    pid = _kernel_thread()
    _fails(command, verb, pid, f"process {pid} is a kernel thread")


# The doctor has an answer for such, and an exporter waits for others.
LOOKS = [verb for verb in VERBS if verb not in ("doctor", "exporter")]


@pytest.mark.parametrize("verb", LOOKS)
def test_another_users_process(command: Command, programs: Path, library: Path, verb: str) -> None:
    readable_by_nobody(command.path)
    with running(programs / "watch_plant", library=library) as process:
        words = [str(process.pid) if word == "PID" else word for word in VERBS[verb]]
        done = command(*words, by=as_nobody())
    assert done.returncode == 3, done
    assert f"process {process.pid}: it is a process of another user" in done.stderr


@pytest.mark.parametrize("verb", LOOKS)
def test_one_without_hakmem(command: Command, verb: str, tmp_path: Path) -> None:
    with running("sh", "-c", "echo ready; exec sleep 100") as process:
        given = {"PID": str(process.pid), "/nonexistent/a": str(tmp_path / "a")}
        done = command(*(given.get(word, word) for word in VERBS[verb]))
    assert done.returncode == 1, done
    assert "does not use hakmem" in done.stderr


def test_one_of_several(command: Command, programs: Path, library: Path) -> None:
    """The others are shown; nothing is said of an exporter's before somebody asks."""
    gone = _ended()
    with running(programs / "watch_plant", library=library) as process:
        for words in (("top", "--once"), ("top", "--prometheus"), ("purge",)):
            done = command(*words, gone, process.pid)
            assert done.returncode in (2, 4) and str(process.pid) in done.stdout + done.stderr
            assert f"hakmem {words[0]}: there is no process {gone}\n" in done.stderr
        assert str(process.pid) in command("top", gone, process.pid).stdout


def test_a_core_file_may_be_called_like_a_pid(command: Command, tmp_path: Path) -> None:
    (tmp_path / "4711").write_bytes(b"no core file")
    done = command("sheet", str(tmp_path / "4711"))
    assert done.returncode == 2 and "there is no process" not in done.stderr


# ---- names ----


def test_a_program_is_called_as_it_was_started(
    command: Command, programs: Path, library: Path
) -> None:
    """By a link, as Debian's redis-server is one to redis-check-rdb."""
    with public_folder() as folder:
        link, program = folder / "the-link", folder / "the-file"
        shutil.copy(programs / "watch_plant", program)
        subprocess.run(["strip", program], check=True)  # its functions are called by its name
        link.symlink_to(program)
        with running(
            link, library=library, HAKMEM_PROFILE="on", HAKMEM_PROFILE_RATE="1K"
        ) as process:
            process.ask("live")
            pid = process.pid
            assert command("sheet", pid).stdout.startswith(f"the-link (PID {pid})")
            assert f"{pid} the-link " in command("top", "--once", pid).stdout
            assert f"{pid} the-link " in command("top", pid).stdout
            assert 'program="the-link"' in command("top", "--prometheus", pid).stdout
            said = command("doctor", pid).stdout
            assert said.startswith(f"hakmem is active in {link} (PID {pid})\n")
            said = command("profile", "--text", "--seconds", "0", pid).stdout
            assert said.startswith(f"the-link.{pid}: ")
            assert "the-link+0x" in said and "the-file" not in said
        # And so in what to run instead.
        with running(link) as process:
            said = " ".join(command("doctor", process.pid).stdout.split())
            assert f"hakmem run {link}" in said and "the-file" not in said
