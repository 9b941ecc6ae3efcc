"""The file that `hakmem tune` writes: a file of options, as HAKMEM_CONFIG may name it, with what
was measured in comments. `hakmem run --settings` reads the comments too, by a shell script."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from hakmem.arguments import WrongUse

FIRST_LINE = "# hakmem settings 1"


@dataclass(frozen=True)
class Settings:
    options: Mapping[str, str]
    base: str
    """What they were compared with: hakmem, perhaps with settings."""
    command: tuple[str, ...]
    identity: str
    cpus: int
    told: tuple[str, ...] = ()
    """Lines on what was measured."""
    how: Mapping[str, object] | None = None
    """Of the command line, what --check needs again."""

    def text(self) -> str:
        comments = [
            FIRST_LINE,
            *(f"# {line}" for line in self.told),
            f"# command: {json.dumps(list(self.command))}",
            f"# base: {self.base}",
            f"# how: {json.dumps(self.how or {})}",
            f"# program: {self.identity}",
            f"# processors: {self.cpus}",
        ]
        options = [f"{name} = {value}" for name, value in self.options.items()]
        return "\n".join([*comments, *options]) + "\n"


def read(path: Path) -> Settings:
    """Raises WrongUse."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise WrongUse(f"{path}: {why}") from error
    if not lines or lines[0] != FIRST_LINE:
        raise WrongUse(f"{path}: no file of 'hakmem tune': its first line is not {FIRST_LINE!r}")
    facts = dict(line[2:].split(": ", 1) for line in lines if re.match(r"# [a-z]+: ", line))
    options = dict(
        re.split(r"\s*=\s*", line, maxsplit=1) for line in lines if line and line[0] != "#"
    )
    try:
        return Settings(
            options,
            facts["base"],
            tuple(json.loads(facts["command"])),
            facts["program"],
            int(facts["processors"]),
            how=json.loads(facts["how"]),
        )
    except (KeyError, ValueError) as wrong:
        raise WrongUse(f"{path}: damaged: {wrong}") from wrong


def cpus() -> int:
    return os.sysconf("SC_NPROCESSORS_CONF")


def identity(command: Sequence[str], folder: Path | None = None) -> str:
    """Of the program, by which a shell script can tell whether it is still the same: where its
    build id is in the file, and the build id; or what cksum says. Raises WrongUse."""
    found = shutil.which(command[0], path=None if "/" not in command[0] else str(folder or "."))
    if "/" in command[0]:
        found = str((folder or Path()) / command[0])
    if found is None or not Path(found).is_file():
        raise WrongUse(f"{command[0]}: no such program")
    try:
        with Path(found).open("rb") as file:
            elf = ELFFile(file)
            section: Any = elf.get_section_by_name(".note.gnu.build-id")
            for note in section.iter_notes() if section is not None else ():
                if note["n_type"] == "NT_GNU_BUILD_ID":
                    identifier = bytes.fromhex(note["n_desc"])
                    at = section["sh_offset"] + section.data().index(identifier)
                    return f"build-id {at} {identifier.hex()}"
    except ELFError:
        pass
    said = subprocess.run(["cksum", found], capture_output=True, text=True, check=True)
    return "cksum " + " ".join(said.stdout.split()[:2])


def line(command: Sequence[str]) -> str:
    return shlex.join(command)
