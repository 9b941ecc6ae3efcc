"""One measured run of the batch program: Python that gets every object from malloc."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tools.demo.allocators import Allocator, DemoError
from tools.demo.sample import Sample

PROGRAM = Path(__file__).resolve().parent / "batch_work.py"
PYTHON = str(Path(sys.executable).resolve())
FIGURES = ("time, s", "CPU, s", "MiB with its data", "MiB, data deleted")


def measure(allocator: Allocator) -> tuple[Sample, str]:
    """The figures of one run, and a digest of the program's results."""
    env = allocator.env() | {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
    with subprocess.Popen(
        [PYTHON, "-S", str(PROGRAM)],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=120)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise DemoError(
            f"the batch program failed with {allocator.title} (status {process.returncode}):\n{err}"
        )
    told = json.loads(out)
    if allocator.preload and str(allocator.preload) not in told["libraries"]:
        raise DemoError(f"{allocator.preload} is not in the batch program's memory")
    figures = (told["seconds"], told["cpu"], told["full"] / 1024, told["left"] / 1024)
    return Sample(dict(zip(FIGURES, figures, strict=True))), told["digest"]
