"""The suite's rows, as its program tells them."""

import json
import subprocess
from pathlib import Path
from typing import Any


def rows_of(suite: Path) -> list[dict[str, Any]]:
    done = subprocess.run([suite, "--list-json"], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
