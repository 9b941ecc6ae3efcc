"""Where the judge keeps what it makes: inputs, compiled programs, recordings."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path

from hakmem_yardstick.peers.cache import user_folder
from hakmem_yardstick.programs.runner import sources

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE / "scripts"
KEPT_SECONDS = 14 * 86400.0


def folder(base: Path | None = None) -> Path:
    """Of this version of the judge; what others made is removed when nobody has wanted it long."""
    files = [*sorted(HERE.glob("*.py")), *sorted(SCRIPTS.iterdir())]
    text = sources().encode() + b"".join(file.read_bytes() for file in files if file.is_file())
    kept = (base or user_folder()) / "judge"
    own = kept / hashlib.sha256(text).hexdigest()[:12]
    own.mkdir(parents=True, exist_ok=True)
    os.utime(own)
    for old in kept.iterdir():
        if old.stat().st_mtime < time.time() - KEPT_SECONDS:
            shutil.rmtree(old)
    return own
