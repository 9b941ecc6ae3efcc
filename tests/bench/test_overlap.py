"""Rows that wait overlap: the next run begins when the one before it idles."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hakmem.bench.measure import children, measure
from hakmem.bench.overlap import Lost, overlapped


def _napper(name: str, log: Path, *, waits: bool) -> Callable[[Path], str]:
    def piece(waiting: Path) -> str:
        with log.open("a") as file:
            file.write(f"{name} begins\n")
        time.sleep(0.2)
        if waits:
            waiting.touch()
        time.sleep(0.3)
        with log.open("a") as file:
            file.write(f"{name} ends\n")
        return name

    return piece


@pytest.mark.parametrize(
    ("waits", "most", "order"),
    [
        (True, 3, "a+ b+ a- b-"),
        (False, 3, "a+ a- b+ b-"),
        (True, 1, "a+ a- b+ b-"),
    ],
)
def test_work_that_waits_overlaps(tmp_path: Path, waits: bool, most: int, order: str) -> None:
    log = tmp_path / "log"
    pieces = [_napper(name, log, waits=waits) for name in "ab"]
    assert overlapped(pieces, most) == ["a", "b"]
    said = log.read_text().replace(" begins", "+").replace(" ends", "-").split()
    assert " ".join(said) == order
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
            return str(measure(["sh", "-c", script], dict(os.environ), timeout=120).outcome)

        return piece

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 1.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            overlapped([runs("a"), runs("b")], 2)
    finally:
        signal.signal(signal.SIGALRM, before)
    for name in "ab":
        assert not Path("/proc", (tmp_path / name).read_text().strip()).exists()
    assert children(os.getpid()) == []
