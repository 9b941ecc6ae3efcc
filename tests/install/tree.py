"""An installed hakmem, and how to run programs with it."""

import json
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[2]
HERE = Path(__file__).parent


def done(
    command: Sequence[object], timeout: float = 300, cwd: Path = HERE, **variables: str
) -> str:
    """What it printed; it has to succeed."""
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "DESTDIR")}
    ended = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        cwd=cwd,
        env=environment | variables,
    )
    assert ended.returncode == 0, f"{' '.join(map(str, command))}\n{ended.stdout[-4000:]}"
    return ended.stdout


def one(folder: Path, pattern: str) -> Path:
    """The file of a release that has such a name."""
    (file,) = folder.glob(pattern)
    return file


def check_commit(said: str, made: Path | None) -> None:
    """What `hakmem --version` says; that of a release is the commit of its notes."""
    assert re.search(r"\(commit ([0-9a-f]{12}|not known: )", said), said
    if made is not None:
        notes = (made / "RELEASE-NOTES.md").read_text()
        assert said.split("commit ")[1][:12] == notes.split("commit ")[1][:12]


def check_sheet(command: Path, PATH: str = "/usr/bin:/bin") -> None:
    """`hakmem sheet` finds its reader, and that finds a process's heap."""
    program = [command, "run", "sh", "-c", f'exec "{command}" sheet --json $$']
    assert json.loads(done(program, PATH=PATH))["live"] > 0


@dataclass
class Installed:
    prefix: Path

    @property
    def libraries(self) -> Path:
        (library,) = self.prefix.glob("lib/**/libhakmem.a")
        return library.parent

    @property
    def command(self) -> Path:
        return self.prefix / "bin" / "hakmem"

    def pkg_config(self, *arguments: str, package: str = "hakmem") -> list[str]:
        folder = str(self.libraries / "pkgconfig")
        return done(["pkg-config", *arguments, package], PKG_CONFIG_PATH=folder).split()
