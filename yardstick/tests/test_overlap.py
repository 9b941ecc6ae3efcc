"""Rows that wait overlap: the next run begins when the one before it idles."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hakmem_yardstick.measure import children, measure
from hakmem_yardstick.overlap import Lost, overlapped


def _piece(name: str, log: Path, *, waits: bool, awaits: str) -> Callable[[Path], str]:
    """That ends once the log has the word, however busy the machine is."""

    def piece(waiting: Path) -> str:
        with log.open("a") as file:
            file.write(f"{name}+ ")
        if waits:
            waiting.touch()
        while awaits not in log.read_text():
            time.sleep(0.01)
        time.sleep(0.1)  # in which a piece could begin that must not
        with log.open("a") as file:
            file.write(f"{name}- ")
        return name

    return piece


@pytest.mark.parametrize(
    ("waits", "most", "order"),
    [
        (True, 3, "a+ b+ a- b- "),
        (False, 3, "a+ a- b+ b- "),
        (True, 1, "a+ a- b+ b- "),
    ],
)
def test_work_that_waits_overlaps(tmp_path: Path, waits: bool, most: int, order: str) -> None:
    log = tmp_path / "log"
    awaited = {"a": "b+", "b": "a-"} if order.startswith("a+ b+") else {"a": "a+", "b": "b+"}
    pieces = [_piece(name, log, waits=waits, awaits=awaited[name]) for name in "ab"]
    assert overlapped(pieces, most) == ["a", "b"]
    assert log.read_text() == order
    assert children(os.getpid()) == []


def test_a_piece_that_fails_is_lost_and_leaves_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    def fails(_: Path) -> None:
        raise ValueError("no such luck")

    def sleeps(waiting: Path) -> None:
        waiting.touch()
        time.sleep(600)

    with pytest.raises(Lost):
        overlapped([fails, sleeps], 2)
    assert "no such luck" in capfd.readouterr().err
    assert children(os.getpid()) == []


def test_an_interrupt_ends_all_that_wait(tmp_path: Path) -> None:
    """With the programs that they run."""

    def runs(name: str) -> Callable[[Path], str]:
        def piece(waiting: Path) -> str:
            script = f"echo $$ >{tmp_path / name}; touch {waiting}; exec sleep 600"
            return str(measure(["sh", "-c", script], dict(os.environ), timeout=600).outcome)

        return piece

    def pids() -> list[str]:
        files = [tmp_path / name for name in "ab"]
        return [text for file in files if file.exists() and (text := file.read_text().strip())]

    def interrupt_once_both_run(*_: object) -> None:
        if len(pids()) == 2:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt_once_both_run)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            overlapped([runs("a"), runs("b")], 2)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    for pid in pids():
        assert not Path("/proc", pid).exists()
    assert children(os.getpid()) == []
