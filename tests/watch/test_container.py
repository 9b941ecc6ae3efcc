"""The sheet across namespaces, as containers have them: from outside into one, and inside; where
the library has another path than outside, and where its file is gone or another one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ran import ran
from tests.watch.watched import Command, Process, Sheet, running

# In mounts of its own: there the library lies where outside nothing is.
INSIDE = """
mount -t tmpfs none /mnt
cp "$0" /mnt/libhakmem.so
cp "$1" /mnt/program
LD_PRELOAD=/mnt/libhakmem.so HAKMEM_SCAVENGER=off exec /mnt/program
"""


@contextmanager
def contained(library: Path, program: Path) -> Iterator[tuple[Process, int]]:
    """The program, which is process 1 in there; and the PID that it has out here."""
    apart = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"]
    if os.geteuid() != 0:
        apart[1:1] = ["--user", "--map-root-user"]
    tried = subprocess.run([*apart, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    if tried.returncode:
        pytest.skip(f"no namespaces here: {tried.stderr.decode().strip()}")
    with running(*apart, "sh", "-c", INSIDE, library.resolve(), program) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield process, int(children[0])


def adds_up(sheet: Sheet) -> None:
    sheet.agrees()
    assert sheet.said["live"] > 1 << 20


def test_into_a_container_and_inside(command: Command, programs: Path, library: Path) -> None:
    with contained(library, programs / "watch_plant") as (process, outside):
        process.ask("live")
        from_outside = command.sheet(outside)
        adds_up(from_outside)
        assert command("purge", outside).returncode in (0, 4), "done, or it waits for a free"
        if os.geteuid() != 0:
            return
        enter = ["nsenter", f"--target={outside}", "--pid", "--mount", "--"]
        reader = library.resolve().parent / "hakmem/look"
        shutil.copy(reader, f"/proc/{outside}/root/mnt/look")
        done = ran(*enter, "/mnt/look", "1")
        assert done.returncode == 0, done.stderr
        inside = json.loads(done.stdout)
        assert inside["pid"] == 1 and inside["version"] == from_outside.said["version"]


def test_a_process_that_changed_its_root(command: Command, library: Path, tmp_path: Path) -> None:
    """As many services do once they have loaded what they need: it has files outside."""
    changes = """
import os, sys
os.chroot(sys.argv[1])
print("ready", flush=True)
while True:
    len([bytes(1000) for _ in range(1000)])
"""
    apart = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]
    if apart and subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("a process can't change its root here")
    words = (*apart, "python3", "-c", changes, str(tmp_path))
    with running(*words, library=library, PYTHONMALLOC="malloc") as process:
        done = command("profile", "--seconds", "0.5", "--text", process.pid)
    assert (done.returncode, done.stderr) == (0, "")
    assert "in use" in done.stdout


def test_proc_of_another_namespace(command: Command, plant: Process) -> None:
    """A number there names one process in /proc and another one in a call: no order is given."""
    apart = ["unshare", "--pid", "--fork", "--kill-child"]
    if os.geteuid() != 0:
        apart[1:1] = ["--user", "--map-root-user"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("no namespaces here")
    seen = command("sheet", plant.pid, by=apart)
    assert seen.returncode in (0, 3), "the one that /proc shows"
    for words in ("purge", plant.pid), ("set", plant.pid, "compact=off"):
        done = command(*words, by=apart)
        if done.returncode == 3:
            continue  # a user's own namespace may not be allowed to read out of it
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
        assert "PID namespace" in done.stderr
    done = command("set", plant.pid, "compact=off")
    assert "an earlier order" not in done.stderr, "none was written"


def test_the_file_of_the_library_is_gone(
    command: Command, programs: Path, library: Path, tmp_path: Path
) -> None:
    """Or replaced by another: an upgrade of the package, say."""
    copy = tmp_path / "libhakmem.so.0"
    shutil.copy(library.resolve(), copy)
    program = programs / "watch_plant"
    with running(program, library=copy, HAKMEM_SCAVENGER="off") as process:
        process.ask("live")
        copy.unlink()
        adds_up(command.sheet(process.pid))
        copy.write_bytes(b"another one")
        adds_up(command.sheet(process.pid))
        done = command("top", "--once", process.pid)
        assert done.returncode == 0 and "watch_plant" in done.stdout
