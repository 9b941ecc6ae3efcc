"""What a test needs to run a program as a user without any rights of its own."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534  # user and group


def as_nobody() -> list[str]:
    """A command that runs another one as a user without rights."""
    if os.geteuid() != 0:
        pytest.skip("only root can run a program as somebody else")
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    # The root of a user namespace need not have other users in it.
    tried = subprocess.run([*command, "true"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"this root can run no program as somebody else: {tried.stderr.strip()}")
    return command


def readable_by_nobody(path: Path) -> None:
    done = subprocess.run([*as_nobody(), "test", "-r", str(path)])
    if done.returncode:
        pytest.skip(f"{path} is in a folder that only its owner may enter")


@contextmanager
def public_folder() -> Iterator[Path]:
    """Which everybody may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="hakmem-tests-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
