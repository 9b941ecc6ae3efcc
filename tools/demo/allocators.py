"""The allocators that the demo preloads, and the proof that the loader uses them."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.demo import inforce


class DemoError(Exception):
    """A problem that the user can fix; the message says how."""


@dataclass(frozen=True)
class Allocator:
    title: str
    preload: Path | None  # None: the program as it is installed
    names: str = ""  # the beginning of its mappings' names, if the kernel keeps names

    def env(self) -> dict[str, str]:
        own = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "PYTHON"))}
        return own | ({"LD_PRELOAD": str(self.preload)} if self.preload else {})

    def check(self, *argv: str) -> None:
        """Fails unless the loader binds malloc of the program in `argv` to this allocator."""
        if self.preload:
            wrong = inforce.bound_elsewhere(
                inforce.bindings(argv, self.env()), Path(argv[0]).name, self.preload
            )
            if wrong:
                raise DemoError(f"{self.title} is not active: {wrong}")


def system_allocator() -> Allocator:
    """glibc's malloc, preloaded by its path: then a program linked with another malloc uses it."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split()[-1]
        if "/libc.so" in path or "/libc-2" in path:
            return Allocator("glibc", Path(path))
    raise DemoError(
        "this process has no libc.so in its memory; the demo needs glibc to compare with"
    )


def hakmem(library: Path) -> Allocator:
    if not library.is_file():
        raise DemoError(f"{library}: no such file. Build it first: make build")
    return Allocator("hakmem", library.resolve(), "[anon:hakmem")


def shipped_redis() -> Allocator | None:
    """redis-server as it is installed, if its malloc is not the system's: Debian's has jemalloc."""
    line = subprocess.run(
        [find("redis-server"), "--version"], capture_output=True, text=True, check=True
    ).stdout
    name = next((word[7:] for word in line.split() if word.startswith("malloc=")), "libc")
    return None if name.startswith("libc") else Allocator(name.partition("-")[0], None)


def find(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise DemoError(f"{program} is not installed. On Debian: sudo apt install redis-server")
    return path
