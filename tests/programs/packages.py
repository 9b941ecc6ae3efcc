"""Debian packages: which are installed, in which version, and how the missing ones come."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

AT_ONCE = 12
POLICY = Path("/usr/sbin/policy-rc.d")
SUDO = [] if os.geteuid() == 0 else ["sudo"]


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Package -> version, for those that are installed."""
    query = ("dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev} ${Version}\n", *packages)
    if not packages:
        return {}
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    lines = (line.split() for line in done.stdout.splitlines())
    return {words[0]: words[2] for words in lines if len(words) == 3 and words[1] == "ii"}


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
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
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
