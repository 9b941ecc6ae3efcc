"""hakmem with settings, as a command line names it: hakmem+big_cache_bytes=16M."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from hakmem.arguments import WrongUse

OURS = "hakmem"
REFUSED = 125  # by 'hakmem run' too
_SETTING = re.compile(r"\+(?=[A-Za-z_][A-Za-z0-9_]*=)")


class WrongOption(WrongUse):
    """There is no such option, or it takes no such value."""

    status = REFUSED


def split(name: str) -> tuple[str, dict[str, str]]:
    """NAME+VAR=VALUE taken apart."""
    base, *settings = _SETTING.split(name)
    pairs = (setting.partition("=") for setting in settings)
    return base, {variable: value for variable, _, value in pairs}


def check(names: Iterable[str], front: Path, folder: Path | None = None) -> None:
    """Raises WrongOption for what 'hakmem run -o' refuses in `folder`: it is asked, so that both
    take the same and say the same. `front` is bin/hakmem."""
    for name in names:
        base, settings = split(name)
        if base == OURS:
            for variable, value in settings.items():
                _check(f"{variable}={value}", front, folder)


def _check(setting: str, front: Path, folder: Path | None) -> None:
    done = subprocess.run(
        ["/bin/sh", str(front), "run", "-o", setting, "true"],
        cwd=folder if folder is not None and folder.is_dir() else None,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="backslashreplace",
    )
    of_the_option = "hakmem run: -o "
    if done.returncode == REFUSED and done.stderr.startswith(of_the_option):
        raise WrongOption(f"{OURS}+{done.stderr.removeprefix(of_the_option).strip()}")
