"""Debian packages, and Python's: which are installed, in which version, how the missing ones come.

Python's are wheels in the versions that pyproject.toml names, in an environment of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from tests.ran import ran

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / "build" / "programs-python"
PYTHON = str(ENVIRONMENT / "bin" / "python")
AT_ONCE = 12
POLICY = Path("/usr/sbin/policy-rc.d")
SUDO = [] if os.geteuid() == 0 else ["sudo"]


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Package -> version, for those that are installed, in the order of `packages`."""
    query = ("dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev} ${Version}\n", *packages)
    if not packages:
        return {}
    done = ran(*query)
    lines = (line.split() for line in done.stdout.splitlines())
    found = {words[0]: words[2] for words in lines if len(words) == 3 and words[1] == "ii"}
    return {name: found[name] for name in packages if name in found}


def install(packages: Sequence[str]) -> None:
    """Installs what is missing, several packages a call; what cannot be installed stays missing."""
    missing = sorted(set(packages) - versions(packages).keys())
    if not missing:
        return
    with no_servers():
        apt("update", "-q")
        for first in range(0, len(missing), AT_ONCE):
            group = missing[first : first + AT_ONCE]
            print(f"installing {' '.join(group)}", flush=True)
            if not fetch(group):
                for package in group:
                    fetch([package])


def fetch(packages: Sequence[str]) -> bool:
    return apt("install", "-y", "-q", "--no-install-recommends", *packages)


def apt(*words: str) -> bool:
    command = [
        *SUDO, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=600",
        *words,
    ]  # fmt: skip
    done = ran(*command)
    if done.returncode:
        print(f"apt-get {' '.join(words)}: {done.stderr.strip()[-2000:]}", flush=True)
    return done.returncode == 0


@contextmanager
def no_servers() -> Iterator[None]:
    """The package of a server must not start it: the cases start their own."""
    if POLICY.exists():
        yield
        return
    refuse = f"printf '#!/bin/sh\\nexit 101\\n' >{POLICY} && chmod +x {POLICY}"
    subprocess.run([*SUDO, "sh", "-c", refuse], check=True)
    try:
        yield
    finally:
        subprocess.run([*SUDO, "rm", "-f", str(POLICY)], check=True)


def wheel_versions() -> dict[str, str]:
    """Python package -> version, of all in the environment."""
    places = [str(place) for place in ENVIRONMENT.glob("lib/python3*/site-packages")]
    return {found.name.lower(): found.version for found in metadata.distributions(path=places)}


def install_wheels() -> None:
    """Makes the environment, unless it has all; what cannot be installed stays missing."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    wanted: list[str] = groups["programs"]
    there = {f"{name}=={version}" for name, version in wheel_versions().items()}
    if there.issuperset(wanted):
        return
    print(f"installing {' '.join(wanted)}", flush=True)
    pip = (PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check")
    for command in (
        (sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)),
        (*pip, "--only-binary=:all:", *wanted),
    ):
        if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode:
            return
