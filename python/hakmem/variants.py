"""hakmem with settings, as in hakmem+keep_bytes=16M on the command line."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from hakmem.arguments import WrongUse

OURS = "hakmem"
REFUSED = 125  # as in 'hakmem run'
_SETTING = re.compile(r"\+(?=[A-Za-z_][A-Za-z0-9_]*=)")


class WrongOption(WrongUse):
    """The option does not exist, or does not accept the value."""

    status = REFUSED


def split(name: str) -> tuple[str, dict[str, str]]:
    """Splits NAME+VAR=VALUE into the name and the settings."""
    base, *settings = _SETTING.split(name)
    pairs = (setting.partition("=") for setting in settings)
    return base, {variable: value for variable, _, value in pairs}


def check(names: Iterable[str], front: Path, folder: Path | None = None) -> None:
    """Raises WrongOption for settings that 'hakmem run --set' refuses in `folder`. It runs that
    command, so that both accept the same and say the same. `front` is bin/hakmem."""
    for name in names:
        base, settings = split(name)
        if base == OURS:
            for variable, value in settings.items():
                _check(f"{variable}={value}", front, folder)


def _check(setting: str, front: Path, folder: Path | None) -> None:
    done = subprocess.run(
        ["/bin/sh", str(front), "run", "--set", setting, "true"],
        cwd=folder if folder is not None and folder.is_dir() else None,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="backslashreplace",
    )
    of_the_option = "hakmem run: --set "
    if done.returncode == REFUSED and done.stderr.startswith(of_the_option):
        raise WrongOption(f"{OURS}+{done.stderr.removeprefix(of_the_option).strip()}")
