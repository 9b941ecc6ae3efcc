"""The rows of the suite's program, and one run of a row."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

SECONDS = 300


def rows_of(suite: Path) -> list[dict[str, Any]]:
    listed = subprocess.run([suite, "--list-json"], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in listed.stdout.splitlines()]


def run(
    suite: Path, preload: Path | None, row: str, *options: str
) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    if preload is not None:
        environment["LD_PRELOAD"] = str(preload)
    command = [str(suite), row, *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)


def figures(done: subprocess.CompletedProcess[str]) -> dict[str, float]:
    """Of its own."""
    assert done.returncode == 0, done
    told = json.loads(done.stdout)["figures"]
    return {name: float(figure["value"]) for name, figure in told.items()}
