"""Programs that `hakmem doctor` runs and that do not end, or not by themselves."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from tests.command.command import Answer, Built, is_in_force, link_target


def without_end(built: Built, *command: str) -> Answer:
    """Of a program that would not end. On a busy machine it takes longer to start."""
    for seconds in "2", "10", "50":
        answer = built.doctor("--seconds", seconds, "--", *command)
        if "unseen" not in answer.causes:
            break
    return answer


def test_one_that_would_not_end(built: Built) -> None:
    is_in_force(without_end(built, "sleep", "100000"))
    is_in_force(without_end(built, "sh", "-c", "trap '' TERM; while :; do sleep 100000; done"))


def test_one_that_is_ended_in_its_loader(built: Built, tmp_path: Path) -> None:
    """It might have taken the library: nothing is said against it."""
    os.mkfifo(tmp_path / "nobody-writes")
    preload = f"LD_PRELOAD={built.library}:{tmp_path}/nobody-writes"
    answer = built.doctor("--seconds", "2", "--", "env", preload, "sleep", "100000")
    assert (answer.status, answer.verdict) == (3, "unknown"), answer
    assert set(answer.causes) == {"unseen"}


def test_too_little_time_to_start(built: Built) -> None:
    done = built("doctor", "--seconds", "0.001", "--", "sleep", "1")
    assert (done.status, done.out) == (3, ""), done
    assert "'hakmem run' did not start it within 0.001 s; give it more --seconds" in done.err


def test_what_a_script_waits_for_ends_with_it(built: Built, tmp_path: Path) -> None:
    script = f"sleep 1000 & echo $! >{tmp_path}/pid; wait"
    is_in_force(without_end(built, "sh", "-c", script))
    pid = int((tmp_path / "pid").read_text())
    end = time.monotonic() + 30
    while link_target(Path(f"/proc/{pid}/exe")) and time.monotonic() < end:
        time.sleep(0.01)
    assert link_target(Path(f"/proc/{pid}/exe")) is None


def test_what_it_leaves_behind_goes_on(built: Built, tmp_path: Path) -> None:
    script = f"sleep 1000 >/dev/null 2>&1 & echo $! >{tmp_path}/pid"
    try:
        is_in_force(built.doctor("--", "sh", "-c", script))
        pid = int((tmp_path / "pid").read_text())
        while Path(f"/proc/{pid}/comm").read_text() != "sleep\n":
            time.sleep(0.01)
        is_in_force(built.doctor(str(pid)))
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
