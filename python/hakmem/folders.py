"""Temporary folders. One that a killed process left is removed by the next that makes one like it.

A folder is somebody's as long as it is locked. The kernel unlocks it when the process has ended,
however that ended.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

LOCKED = ".locked"  # how the names of such folders end


class Folder:
    """Can be reached by its descriptor (`within`) also where its path leads nowhere any more: in
    the root of a process that has ended."""

    def __init__(self, prefix: str, where: Path | None = None) -> None:
        """Raises OSError."""
        where = Path(tempfile.gettempdir()) if where is None else where
        remove_left(prefix, where)
        self._parent = os.open(where, os.O_RDONLY | os.O_DIRECTORY)
        try:
            while not self._make(prefix, where):
                pass
        except OSError:
            os.close(self._parent)
            raise
        self.within = Path(f"/proc/self/fd/{self.descriptor}")

    def _make(self, prefix: str, where: Path) -> bool:
        """Not where somebody took it for left behind, before it was locked."""
        self.path = Path(tempfile.mkdtemp(LOCKED, prefix, where))
        try:
            self.path.chmod(0o700)  # whatever umask says
            self.descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return False
        if _may_lock(self.descriptor) and self.path.exists():
            return True
        os.close(self.descriptor)
        return False

    def remove(self) -> None:
        shutil.rmtree(self.path.name, ignore_errors=True, dir_fd=self._parent)
        os.close(self.descriptor)
        os.close(self._parent)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


def remove_left(prefix: str, where: Path) -> None:
    """What is nobody's, as far as this user may."""
    for path in where.glob(f"{prefix}*{LOCKED}"):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)


def _may_lock(descriptor: int) -> bool:
    """A file system without locks on folders has none left to remove either."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
