"""`hakmem sheet`: its lines add up to what the kernel says is resident, planted memory is found in
the line that it belongs to, what could be less becomes less when it is tried, and a process that
can't be read gives one clear line."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hakmem import look, rights
from tests.nobody import as_nobody, readable_by_nobody
from tests.watch.watched import SECONDS, SHARE, Command, Process, Sheet, running

EXPLAINED = 12  # looks at a heap at work, of so many:
LOOKS_MOST = 240


@pytest.mark.parametrize(
    "kind",
    ["live", "holes", "free_pages", "slices", "kept", "caches", "anonymous", "file", "stack"],
)
def test_planted(command: Command, plant: Process, kind: str) -> None:
    before = command.sheet(plant.pid)
    planted = plant.ask(kind)
    after = command.sheet(plant.pid)
    before.agrees()
    after.agrees()
    assert planted > 1 << 20
    # The program's own files become resident, too. Of the blocks in caches some were never written.
    unsure = {"file": 2**19, "caches": 0.05 * planted}.get(kind, 0)
    assert abs(after[kind] - before[kind] - planted) <= SHARE * planted + unsure
    assert after["unexplained"] == 0, "nothing changed meanwhile"


def tenths(text: str) -> int:
    assert re.fullmatch(r"-?\d+\.\d", text.strip()), text
    return int(text.replace(".", ""))


def test_what_is_shown_adds_up(command: Command, plant: Process) -> None:
    """To the last digit: the lines to the total, which is that of the first line, and to 100%."""
    for kind in ("live", "holes", "free_pages", "kept", "anonymous"):
        plant.ask(kind)
        first, *others = command("sheet", plant.pid).stdout.splitlines()
        (resident,) = re.findall(r": ([\d.]+) MiB resident", first)
        (total,) = (line for line in others if line.startswith("total"))
        rows = [line for line in others if line.startswith("  ")]
        assert len(rows) > 5 and total[40:49].strip() == resident
        assert sum(tenths(row[40:49]) for row in rows) == tenths(resident)
        assert sum(tenths(row[49:55]) for row in rows) == 1000


def test_planted_in_a_hardened_heap(command: Command, programs: Path, library: Path) -> None:
    """Blocks that a thread holds back are free."""
    program = programs / "watch_plant"
    with running(program, library=library, HAKMEM_PRESET="hardened") as plant:
        before = command.sheet(plant.pid)
        planted = plant.ask("live")
        after = command.sheet(plant.pid)
        plant.ask("caches")
        freed = command.sheet(plant.pid)
    for sheet in (before, after, freed):
        sheet.agrees()
        assert sheet["unexplained"] == 0
    assert abs(after["live"] - before["live"] - planted) <= SHARE * planted
    assert freed["caches"] > before["caches"]
    assert abs(freed["live"] - after["live"]) <= SHARE * planted


@pytest.mark.skipif(
    len(Path("/proc/swaps").read_text().splitlines()) < 2, reason="this machine has no swap"
)
def test_swapped(command: Command, plant: Process) -> None:
    """What is in swap is in use, but not resident, and the sheet says how much it is."""
    before = command.sheet(plant.pid)
    planted = plant.ask("swapped")
    after = command.sheet(plant.pid)
    after.agrees()
    assert after.said["live"] - before.said["live"] >= planted
    gone = after.said["swapped"]["heap"]
    assert gone > planted / 2, "the kernel may keep some"
    assert after["live"] - before["live"] <= planted - gone + SHARE * planted
    assert "in swap, not resident" in command("sheet", plant.pid).stdout


def test_limits(command: Command, programs: Path, library: Path) -> None:
    """Those that options set, and what they are compared with."""
    program = programs / "watch_plant"
    with running(program, library=library, HAKMEM_HARD_LIMIT_BYTES="500M") as process:
        process.ask("live")
        said = command.sheet(process.pid).said
        assert said["limits"]["hard"] == 500 << 20 and said["limits"]["soft"] is None
        assert said["live"] <= said["held"] <= 500 << 20
        assert "hard_limit_bytes 500.0" in command("sheet", process.pid).stdout


@pytest.mark.parametrize("kind", ["free_pages", "kept", "slices"])
def test_what_could_be_less_becomes_so(
    command: Command, programs: Path, library: Path, kind: str
) -> None:
    with running(
        programs / "watch_plant",
        library=library,
        HAKMEM_SCAVENGER="off",
    ) as plant:
        plant.ask(kind)
        before = command.sheet(plant.pid)
        plant.ask("trim")
        after = command.sheet(plant.pid)
    assert before[kind] > 1 << 20
    # The main thread says what it did, for which it takes some blocks.
    assert after[kind] <= before.could_be(kind) + 2**17


def test_at_work(command: Command, programs: Path, library: Path) -> None:
    """Looks at a program whose threads allocate, hand over and fork. On a machine that does much
    else most looks may take so long that the heap is another one at their end."""
    with subprocess.Popen(
        [
            programs.parent / "stress/stress_fork",
            "--threads",
            "16",
            "--forks",
            "100000000",
            "--timeout",
            "300",
        ],
        env=os.environ | {"LD_PRELOAD": str(library)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as stress:
        try:
            while command.sheet(stress.pid)["live"] == 0:
                time.sleep(0.05)
            explained = 0
            for _ in range(LOOKS_MOST):
                sheet = command.sheet(stress.pid)
                sheet.adds_up()
                assert sheet["live"] > 0
                explained += sheet.is_explained()
                if explained == EXPLAINED:
                    break
            assert stress.poll() is None, "it goes on"
            assert explained == EXPLAINED
        finally:
            stress.kill()


def test_size_classes(command: Command, plant: Process) -> None:
    plant.ask("holes")
    sheet = command.sheet(plant.pid)
    done = command("sheet", "--classes", plant.pid)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.split("size classes")[1].splitlines()[1:]]
    classes = {row["size"]: row for row in sheet.said["classes"]}
    assert {int(row[0]) for row in rows} == set(classes)
    for row in rows:
        found = classes[int(row[0])]
        # The process is idle, so that nothing changes between the two looks.
        assert (int(row[1]), int(row[3])) == (found["live"], found["free"])
    assert int(rows[0][0]) == 256, "the largest comes first"


# ---- core files (test_cores.py) ----


@pytest.fixture
def core(plant: Process, tmp_path: Path) -> Path:
    if shutil.which("gcore") is None:
        pytest.skip("gdb is not installed")
    plant.ask("live")
    plant.ask("kept")
    words = ["gcore", "-o", str(tmp_path / "core"), str(plant.pid)]
    subprocess.run(words, check=True, capture_output=True, timeout=SECONDS)
    return tmp_path / f"core.{plant.pid}"


def test_core_files_that_are_damaged(command: Command, core: Path) -> None:
    """Cut off, and with bytes changed: a sheet or one line, soon."""
    whole = core.read_bytes()
    damaged = core.with_name("damaged")
    for length in 0, 10, 64, 5000, 100_000, len(whole) // 2:
        damaged.write_bytes(whole[:length])
        fails(command("sheet", str(damaged)), 2)
    rng = random.Random(1)
    for _ in range(30):
        changed = bytearray(whole)
        for _ in range(rng.choice([3, 300, 30000])):
            at = rng.choice([rng.randrange(8192), rng.randrange(len(whole))])
            changed[at] = rng.randrange(256)
        damaged.write_bytes(changed)
        done = command("sheet", str(damaged))
        assert done.returncode in (0, 1, 2) and done.stderr.count("\n") <= 1, done
        assert "Traceback" not in done.stderr


# ---- what is wrong ----


def fails(done: subprocess.CompletedProcess[str], status: int, *words: str) -> None:
    assert done.returncode == status, done
    assert done.stdout == ""
    assert done.stderr.startswith("hakmem sheet: ") and done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr


def test_no_core_file(command: Command) -> None:
    fails(command("sheet", "/etc/passwd"), 2, "/etc/passwd: expected a PID, or a core file")


# A program of another user that protects itself.
PROTECTED = """
import ctypes, os, time
os.setgid(65534), os.setuid(65534)
ctypes.CDLL(None).prctl(4, 0)
print("ready", flush=True)
time.sleep(600)
"""


def test_one_that_is_not_dumpable(command: Command, library: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not root")
    readable_by_nobody(command.path)
    with running("/usr/bin/python3", "-c", PROTECTED, library=library) as process:
        done = command("sheet", process.pid, by=as_nobody())
        fails(done, 3, f"no permission to read process {process.pid}: it is not dumpable")
        assert command("sheet", process.pid).returncode == 0, "root may"


@pytest.mark.parametrize(
    ("scope", "what"), [("1", "watch=on"), ("2", "only root"), ("3", "no process may")]
)
def test_where_only_parents_may(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scope: str, what: str
) -> None:
    (tmp_path / "scope").write_text(f"{scope}\n")
    monkeypatch.setattr(rights, "YAMA", tmp_path / "scope")
    monkeypatch.setattr(rights, "_has", lambda *_: False)
    own = os.getpid()
    if os.geteuid() == 0 and scope != "3":
        assert "this root has no CAP_SYS_PTRACE" in rights.reason(own)
        pytest.skip("as root there is nothing more to see")
    assert what in rights.reason(own)


def test_one_that_ends_meanwhile(command: Command, programs: Path, library: Path) -> None:
    """Killed at some moment of a look: the sheet is whole, or one line says that it ended."""
    for wait in range(12):
        with running(programs / "watch_plant", library=library) as process:
            process.ask("live")
            with subprocess.Popen(
                ["/bin/sh", command.path, "sheet", "--json", str(process.pid)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as looks:
                time.sleep(0.01 * wait)
                os.kill(process.pid, signal.SIGKILL)
                process.process.wait()
                out, err = looks.communicate(timeout=SECONDS)
        if looks.returncode == 0:
            Sheet(json.loads(out)).adds_up()
        else:
            assert (looks.returncode, out, err.count("\n")) == (2, "", 1), (looks.returncode, err)


@pytest.mark.parametrize("seed", range(16))
def test_one_that_means_to_mislead(command: Command, programs: Path, seed: int) -> None:
    with running(programs / "watch_hostile", str(seed)) as process:
        done = command("sheet", process.pid)
        if done.returncode == 0:
            assert re.search("hakmem 9.9.9", done.stdout)
        else:
            fails(done, 1, "is invalid")
        assert "\x1b" not in done.stdout + done.stderr


def test_without_the_reader(tmp_path: Path) -> None:
    """A part of the installation is missing."""
    with pytest.raises(look.CannotLook, match="install hakmem again") as why:
        look.sheet(os.getpid(), tmp_path / "libhakmem.so")
    assert why.value.status == 2
