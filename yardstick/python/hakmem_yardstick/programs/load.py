"""Loads a server while it is measured: started before it, as a program of its own.

    python3 load.py PLAN ANSWER

A plan is JSON: `ready`, a command that succeeds once the server answers; `pid`, a file whose first
line is the server's process; `steps`; `stop`, the number of the signal that ends the server. A step
is {"run": [WORDS], "stdin": FILE or null}, {"pause": SECONDS} or {"resident": true}. The answer has
`ok`, `said` of what failed, and for each step its seconds, output and resident KiB, of the server
and its children. This program is no child of the server nor its parent, and imports nothing of
hakmem: nothing of it is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

READY_SECONDS = 30.0
STEP_SECONDS = 300.0


class Failed(Exception):
    pass


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text())
    steps: list[dict[str, Any]] = []
    answer = {"ok": True, "said": "", "steps": steps}
    try:
        wait(plan["ready"])
        for step in plan["steps"]:
            steps.append(take(step, Path(plan["pid"])))
    except (Failed, OSError, subprocess.TimeoutExpired) as error:
        answer |= {"ok": False, "said": str(error)}
    written = Path(sys.argv[2] + ".new")
    written.write_text(json.dumps(answer))
    written.rename(sys.argv[2])
    # Not before: the server's end is the end of the run.
    os.kill(server(Path(plan["pid"])), plan["stop"])


def wait(command: list[str]) -> None:
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        done = subprocess.run(command, capture_output=True, check=False, timeout=STEP_SECONDS)
        if done.returncode == 0:
            return
        time.sleep(0.02)
    raise Failed(f"no answer in {READY_SECONDS:.0f} seconds: {done.stderr.decode()[-200:]}")


def take(step: dict[str, Any], pid: Path) -> dict[str, Any]:
    if "pause" in step:
        time.sleep(step["pause"])
        return {}
    if "resident" in step:
        return {"kib": sum(resident(one) for one in with_children(server(pid)))}
    begin = time.perf_counter()
    with Path(step["stdin"] or os.devnull).open("rb") as source:
        done = subprocess.run(
            step["run"], stdin=source, capture_output=True, check=False, timeout=STEP_SECONDS
        )
    seconds = time.perf_counter() - begin
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()[-300:]
        raise Failed(f"{Path(step['run'][0]).name}: exit status {done.returncode}: {said}")
    return {"seconds": seconds, "output": done.stdout.decode(errors="replace")}


def server(file: Path) -> int:
    return int(file.read_text().split()[0])


def with_children(pid: int) -> list[int]:
    """The process, and all that it and they have forked."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise Failed(f"no Pss in /proc/{pid}/smaps_rollup")


if __name__ == "__main__":
    main()
