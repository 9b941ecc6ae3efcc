"""Records the program that is to be tuned, once, with 'hakmem record'."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import hakmem
from hakmem_yardstick.compare_runs import Broken
from hakmem_yardstick.service import Service
from hakmem_yardstick.subject import Program

_LONGER = 10  # than a run may take without a recorder
_OWN = "hakmem record: "
_SUMMARY = " events of "  # the recorder says it in the end, whatever became of the program


def record(
    front: Path, library: Path, program: Program, service: Service | None, folder: Path
) -> tuple[Path, str]:
    """The file, and what the recorder says of it. Raises Broken; leaves no process."""
    file = folder / "recording"
    said = folder / "said"
    # By the Python that runs this, which has the modules; the one that `front` starts may not.
    command = [sys.executable, "-E", str(Path(hakmem.__file__).parent), str(front), str(library)]
    command += ["record", "-o", str(file), "--", *program.command]
    with (program.stdin or Path(os.devnull)).open("rb") as stdin, said.open("wb") as errors:
        started = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd=program.cwd,
            start_new_session=True,
        )
        try:
            if service is not None:
                service.library = None
                service.started(started.pid)
            status = started.wait(_LONGER * program.timeout)
        except subprocess.TimeoutExpired:
            raise Broken("the program took too long while it was recorded") from None
        finally:
            _end(started)
    if service is not None:
        failure = service.answered()
        if failure:
            raise Broken(f"while it was recorded: {failure}")
    lines = said.read_text(errors="replace").splitlines()
    own = [line for line in lines if line.startswith(_OWN)]
    others = " ".join(line for line in lines if not line.startswith(_OWN))[-300:]
    if not own or _SUMMARY not in own[-1]:
        why = own[-1].removeprefix(_OWN) if own else others
        if service is not None and status == -signal.SIGTERM:
            why = "--load ended before the program began; --ready makes it wait"
        raise Broken(f"could not record the program: {why or f'exit status {status}'}")
    by_us = (-signal.SIGTERM, 128 + signal.SIGTERM) if service is not None else ()
    if status not in (0, *by_us):
        raise Broken(f"the program failed: exit status {status}{': ' + others if others else ''}")
    return file, own[-1].removeprefix(_OWN).removeprefix(f"{file}: ")


def _end(started: subprocess.Popen[bytes]) -> None:
    """The recorder hands SIGTERM on to the program; what does not end is killed."""
    if started.poll() is None:
        with suppress(ProcessLookupError):
            os.kill(started.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            started.wait(5)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()
