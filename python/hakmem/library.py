"""The library of this command, loaded into this process."""

from __future__ import annotations

import ctypes
from pathlib import Path


class Library:
    """Raises OSError, with the loader's message, if it can't be loaded."""

    def __init__(self, path: Path) -> None:
        self._loaded = ctypes.CDLL(str(path))
        if not hasattr(self._loaded, "hakmem_version"):
            raise OSError(f"{path}: this is not hakmem's library")

    @property
    def version(self) -> str:
        number = int(self._loaded.hakmem_version())
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def option(self, name: str) -> int:
        """Its value in this process. KeyError: a library of another version has no such option."""
        value = ctypes.c_uint64()
        if self._loaded.hakmem_option(name.encode(), ctypes.byref(value)) != 0:
            raise KeyError(name)
        return value.value
