"""Debug files from debuginfod servers, by elfutils' client, where DEBUGINFOD_URLS names some. The
client keeps what it got, and asks again for what was not there after some minutes.
https://sourceware.org/elfutils/Debuginfod.html
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

URLS = "DEBUGINFOD_URLS"
MOST = "DEBUGINFOD_MAXTIME"  # seconds for a file
SECONDS = 90
CLIENT = "debuginfod-find"
NOT_THERE = "No such file or directory"

_refused: set[str] = set()  # the servers that did not answer
_told: set[str] = set()


def debug_file(build_id: str, notes: list[str]) -> Path | None:
    """None where there is none. Says on standard error that it asks, and how long that may take."""
    urls = " ".join(os.environ.get(URLS, "").split())
    if not urls or urls in _refused:
        return None
    client = shutil.which(CLIENT)
    if client is None:
        notes.append(f"{URLS} is set, but there is no {CLIENT} (Debian: debuginfod)")
        _refused.add(urls)
        return None
    seconds = _seconds()
    if urls not in _told:
        _told.add(urls)
        print(
            f"hakmem: asks {urls} for debug files, for at most {seconds} s each ({MOST}); without"
            f" {URLS} it would not",
            file=sys.stderr,
            flush=True,
        )
    try:
        done = subprocess.run(
            [client, "debuginfo", build_id],
            env={**os.environ, MOST: str(seconds)},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds + 10,
        )
        said = (done.stderr.strip() or "no answer").splitlines()[-1]
    except (OSError, subprocess.SubprocessError) as why:
        done, said = None, str(why)
    if done is not None and done.returncode == 0:
        path = Path(done.stdout.strip())
        return path if path.is_file() else None
    if NOT_THERE not in said:
        notes.append(f"{urls}: {said}; it is not asked again")
        _refused.add(urls)
    return None


def _seconds() -> int:
    said = os.environ.get(MOST, "")
    return int(said) if said.isdecimal() and int(said) else SECONDS
