"""What `hakmem bench` and `hakmem compare` need and the rest of the command does not: the benchmark
system, a package of its own that an installation may leave out, and the libraries that it uses.
Where those are missing, they are installed into an environment of hakmem's own, once.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from hakmem.folders import Folder

PACKAGE = "hakmem_yardstick"
SIZE = "242 MB"
PERMISSION = "HAKMEM_INSTALL"
"""The variable that permits to install."""
_HERE = Path(__file__).resolve().parent
# Installed it lies beside this package; a clone has it in a folder of its own.
_BESIDE = _HERE.parent
_IN_A_CLONE = _HERE.parents[1] / "yardstick" / "python"
_HOME = _BESIDE if (_BESIDE / PACKAGE).is_dir() else _IN_A_CLONE
REQUIREMENTS = _HOME / PACKAGE / "requirements.txt"


class NotInstalled(Exception):
    """How to get the benchmark system."""

    status = 2

    def __init__(self) -> None:
        super().__init__(
            f"its package {PACKAGE} is not installed: install all of hakmem, with 'cmake --install'"
            " without --component, Debian's package hakmem, or the wheel of a release"
        )


class CannotInstall(Exception):
    """Why, and what to do."""

    status = 2


def loaded(name: str) -> ModuleType:
    """A module of the benchmark system, by its name in there. Where a library that it needs is
    missing, this does not return: the command starts again where the library is. Raises
    NotInstalled, CannotInstall."""
    if not (_HOME / PACKAGE).is_dir():
        raise NotInstalled
    if str(_HOME) not in sys.path:
        sys.path.append(str(_HOME))
    try:
        return importlib.import_module(f"{PACKAGE}.{name}")
    except ModuleNotFoundError as missing:
        if str(missing.name).startswith("hakmem"):
            raise
        start_again(str(missing.name), sys.argv[1:])


_TRY = """
import sys
sys.path[:1] = sys.argv[2:]
try:
    __import__(sys.argv[1])
except ModuleNotFoundError as missing:
    print(missing.name)
"""


def need(name: str) -> None:
    """What `loaded` does, for a module that is used in the end. It is loaded in another process:
    this one is to stay as small as it is, for what it will measure."""
    words = [sys.executable, "-E", "-c", _TRY, f"{PACKAGE}.{name}", str(_HERE.parent), str(_HOME)]
    tried = subprocess.run(words, capture_output=True, text=True, errors="replace")
    if tried.returncode:
        raise CannotInstall(f"{PACKAGE}.{name}: {tried.stderr.strip().splitlines()[-1]}")
    if tried.stdout:
        start_again(tried.stdout.strip(), sys.argv[1:])


def folder() -> Path:
    """Of this version of Python, in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return cache / "hakmem" / f"python-{sys.version_info.major}.{sys.version_info.minor}"


def start_again(module: str, words: list[str]) -> NoReturn:
    """The same command in that environment, which is made if need be; `module` is missing here."""
    home = folder()
    if Path(sys.prefix) == home:
        shutil.rmtree(home, ignore_errors=True)
        raise CannotInstall(f"{home} had no module {module}; it is removed: try once more")
    python = home / "bin" / "python"
    if not python.exists():
        _install(home, module)
    os.execv(python, [str(python), "-E", str(Path(__file__).resolve().parent), *words])


def _install(home: Path, module: str) -> None:
    by_hand = f"or install by hand what {REQUIREMENTS} names"
    _permit(home, module, by_hand)
    _say("installing, which takes some minutes")
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        new = Folder(f"new-{home.name}-", home.parent)
    except OSError as error:
        raise CannotInstall(f"{home.parent}: {error.strerror}; set XDG_CACHE_HOME") from error
    with new as made:
        _call([sys.executable, "-m", "venv", str(made)], "install python3-venv, " + by_hand)
        pip = [str(made / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        pip += ["--disable-pip-version-check", "-r", str(REQUIREMENTS)]
        _call(pip, "is the package index within reach? When it is, try again, " + by_hand)
        # Where another was faster, its environment serves as well.
        if not home.exists():
            made.rename(home)
            (home.parent / _PERMITTED).touch()


_PERMITTED = "install-permitted"
"""A file beside the environments, once somebody has said yes."""


def _permit(home: Path, module: str, by_hand: str) -> None:
    """Raises CannotInstall where nobody has said yes."""
    if os.environ.get(PERMISSION) == "yes" or (home.parent / _PERMITTED).exists():
        return
    packages = ", ".join(re.findall(r"^[\w-]+", REQUIREMENTS.read_text(), re.MULTILINE))
    what = f"{packages} and what these need, {SIZE}, from the package index of pip into {home}"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CannotInstall(
            f"{sys.executable} has no module {module}. Set {PERMISSION}=yes to have this command"
            f" install {what}; {by_hand}"
        )
    _say(f"{sys.executable} has no module {module}.")
    _say(f"This can be installed, once: {what}.")
    print("hakmem: Install? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CannotInstall(f"nothing is installed; say y, {by_hand}")


def _call(line: list[str], remedy: str) -> None:
    done = subprocess.run(line, capture_output=True, text=True, errors="replace")
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[-300:]
        raise CannotInstall(f"{' '.join(line[1:3])} failed: {said}; {remedy}")


def _say(text: str) -> None:
    print(f"hakmem: {text}", file=sys.stderr, flush=True)
