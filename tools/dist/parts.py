"""What a release consists of, each part built from the unpacked source tarball."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.dist import archives

# Would change what is built, or where it is put.
STEERING = (
    *("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "DESTDIR", "LD_PRELOAD"),
    *("CMAKE_GENERATOR", "CMAKE_BUILD_TYPE", "CMAKE_PREFIX_PATH", "CARGO_TARGET_DIR"),
    *("DEB_BUILD_OPTIONS", "DEB_BUILD_PROFILES", "MAKEFLAGS", "PYTHONPATH"),
)
LOG_LINES = 40


class Failed(Exception):
    """For the user, with the end of what a command printed."""


@dataclass(frozen=True)
class Part:
    """A file of the release."""

    file: Path
    what: str  # for the notes
    purpose: str  # as SPDX calls it
    compiler: str | None = None  # whose runtime the shared library in it holds; None without one


@dataclass(frozen=True)
class Work:
    """The unpacked source, below which everything is built, and the folder of what is made."""

    source: Path
    out: Path
    seconds: int  # the commit's time, which all files get

    @property
    def name(self) -> str:
        return self.source.name

    def run(self, *command: str | Path, **variables: str) -> None:
        """Its output goes to a log that is shown if it fails."""
        kept = {key: value for key, value in os.environ.items() if key not in STEERING}
        fixed = {"SOURCE_DATE_EPOCH": str(self.seconds), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        ended = subprocess.run(
            [str(word) for word in command],
            cwd=self.source,
            env=kept | fixed | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if ended.returncode != 0:
            end = "\n".join(ended.stdout.splitlines()[-LOG_LINES:])
            raise Failed(f"{' '.join(map(str, command))}\nended with {ended.returncode}:\n{end}")

    @property
    def without_paths(self) -> str:
        """Flags that leave this folder's path out of what is compiled."""
        return f"-ffile-prefix-map={self.source}=."

    def take(self, files: Sequence[Path]) -> list[Path]:
        if not files:
            raise Failed(f"nothing was made below {self.source}")
        return [file.rename(self.out / file.name) for file in sorted(files)]


def libraries(work: Work, machine: str, compiler: str, toolchain: str | None) -> list[Part]:
    """What `cmake --install` installs, as a folder that may lie anywhere."""
    build, prefix = work.source / "build" / machine, work.source / "build/prefix" / machine
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_C_FLAGS": work.without_paths,
        "CMAKE_CXX_FLAGS": work.without_paths,
        "CMAKE_INSTALL_LIBDIR": "lib",
        "HAKMEM_CXX": "ON",
        "HAKMEM_COMMAND_PYTHON": "/usr/bin/python3",
    }
    if toolchain is not None:
        options["CMAKE_TOOLCHAIN_FILE"] = str(work.source / toolchain)
    given = [f"-D{name}={value}" for name, value in options.items()]
    work.run("cmake", "-G", "Ninja", "-S", work.source, "-B", build, *given)
    work.run("cmake", "--build", build)
    folder = prefix / f"{work.name}-linux-{machine}"
    work.run("cmake", "--install", build, "--strip", "--prefix", folder)
    packed = work.out / f"{folder.name}.tar.gz"
    archives.pack(folder, packed, work.seconds)
    what = f"shared and static libraries, header and command for {machine}; may be unpacked anywhere"
    return [Part(packed, what, "ARCHIVE", compiler)]


DEBIAN = {
    "libhakmem0": "Debian package: the shared library",
    "libhakmem-dev": "Debian package: what programs are built with",
    "hakmem": "Debian package: the command",
    "hakmem-debug": "Debian package: the library with assertions, for hakmem run --debug",
}


def debian(work: Work) -> list[Part]:
    work.run(work.source / "tools/deb", "--without-lintian")
    made = work.take(list((work.source / "build/deb").glob("*.deb")))
    parts = []
    for file in made:
        package = file.name.partition("_")[0]
        what = DEBIAN.get(package, f"Debian package: what a debugger reads of {package[:-7]}")
        library = package in ("libhakmem0", "hakmem-debug")
        parts.append(Part(file, what, "INSTALL", "gcc" if library else None))
    return parts


def wheel(work: Work) -> list[Part]:
    folder = work.source / "build/wheels"
    offline = ["--no-build-isolation", "--no-deps", "--no-index"]
    pip = [sys.executable, "-m", "pip", "wheel", *offline, "--wheel-dir", str(folder)]
    work.run(
        *pip,
        work.source,
        CFLAGS=work.without_paths,
        CXXFLAGS=work.without_paths,
    )
    (file,) = work.take(list(folder.glob("*.whl")))
    return [Part(file, "Python wheel: the library and the command", "INSTALL", "gcc")]


def crate(work: Work) -> list[Part]:
    work.run(work.source / "bindings/rust/run", "package")
    (file,) = work.take(list((work.source / "build/rust/package").glob("*.crate")))
    return [Part(file, "Rust crate: builds the library into a program", "SOURCE")]
