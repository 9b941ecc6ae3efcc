"""The file that `hakmem tune` writes: a file of options, as HAKMEM_CONFIG may name it, with what
was measured in comments. `hakmem run --settings` reads the comments too, by a shell script."""

from __future__ import annotations

import json
import os
import re
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
    how: Mapping[str, object]
    """Of the command line, what --check needs again."""
    told: tuple[str, ...] = ()
    """Lines on what was measured."""

    def text(self) -> str:
        comments = [
            FIRST_LINE,
            *(f"# {line}" for line in self.told),
            f"# command: {json.dumps(list(self.command))}",
            f"# base: {self.base}",
            f"# how: {json.dumps(dict(self.how))}",
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
    own = (line for line in lines if line.strip() and not line.startswith("#"))
    try:
        options = dict(re.split(r"\s*=\s*", line.strip(), maxsplit=1) for line in own)
        command, how = json.loads(facts["command"]), json.loads(facts["how"])
        words = isinstance(command, list) and all(isinstance(word, str) for word in command)
        if not words or not command or not isinstance(how, dict):
            raise ValueError("the command, or how to run it")
        return Settings(
            options,
            facts["base"],
            tuple(command),
            facts["program"],
            int(facts["processors"]),
            how,
        )
    except (KeyError, ValueError) as wrong:
        raise WrongUse(f"{path}: damaged: {wrong}") from wrong


def cpus() -> int:
    return os.sysconf("SC_NPROCESSORS_CONF")


def identity(command: Sequence[str]) -> str:
    """Of the program, by which a shell script can tell whether it is still the same: where its
    build id is in the file, and the build id; or what cksum says. Raises WrongUse."""
    found = shutil.which(command[0])
    if found is None:
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
