"""Signals that ask a command to end: what is half done goes, and whoever waits sees by what."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[2] / "python"
WRITES = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from hakmem import cli, outputs

def parts():
    yield b"some of it"
    print("begun", flush=True)
    time.sleep(600)

cli.run = lambda words: outputs.replace(Path(sys.argv[2]), parts())
cli.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_half_a_file_goes(tmp_path: Path, number: signal.Signals) -> None:
    """And one that was there before stays."""
    (tmp_path / "file").write_text("before")
    with subprocess.Popen(
        [sys.executable, "-c", WRITES, str(PACKAGES), str(tmp_path / "file")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as writes:
        assert writes.stdout is not None
        assert writes.stdout.readline() == "begun\n"
        assert len(list(tmp_path.iterdir())) == 2
        writes.send_signal(number)
        _, said = writes.communicate(timeout=60)
    assert (writes.returncode, said) == (-number, "")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "before"
