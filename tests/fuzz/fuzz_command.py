#!/usr/bin/env python3
"""What the command reads that others write: options files, /proc and ELF files. Whatever is in
them, it gets an answer or one of the errors that its callers expect. Takes libFuzzer's arguments
(run.py); driven by Atheris, and skipped where that is not there."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77

try:
    import atheris
except ImportError:
    print("SKIPPED [1] fuzz_command.py: Atheris is only installed for Python 3.11 on x86-64")
    sys.exit(SKIPPED)

sys.path.insert(0, str(ROOT / "python"))
with atheris.instrument_imports(include=["hakmem", "elftools"]):
    from hakmem import elf, options, process

FOLDER = Path(tempfile.mkdtemp(prefix="hakmem-fuzz-"))


def options_file(data: bytes) -> None:
    """The line that `hakmem options` names has the option on it."""
    path = FOLDER / "options"
    path.write_bytes(data)
    for name in ("learn", "stack_bytes"):
        source = options._source(name, {"HAKMEM_CONFIG": str(path)})
        if source is not None and source.startswith(str(path)):
            line = int(source.rpartition(":")[2])
            text = path.read_text(errors="replace").splitlines()[line - 1]
            assert re.match(rf"\s*{name}\s*=", text, re.IGNORECASE), (source, text)


def proc_folder(data: bytes) -> None:
    """The files of a /proc/PID that are lists of words and of numbers."""
    (FOLDER / "environ").write_bytes(data)
    (FOLDER / "auxv").write_bytes(data)
    environment = process._environment(FOLDER)
    assert all("=" not in name and "\0" not in name for name in environment)
    process._privileged(FOLDER)


def mapping(data: bytes) -> None:
    match = process._MAPPING.fullmatch(data.decode(errors="surrogateescape"))
    if match:
        assert int(match[1], 16) >= 0 and int(match[2], 16) >= 0 and int(match[6]) >= 0


def elf_file(data: bytes) -> None:
    path = FOLDER / "elf"
    path.write_bytes(data)
    elf._read.cache_clear()
    try:
        facts = elf.read(path)
    except elf.NotElf:
        return
    assert facts.bits in (32, 64)
    _ = facts.musl, facts.static, facts.is_hakmem, facts.allocator, facts.runtime, facts.processor


READERS = (options_file, proc_folder, mapping, elf_file)


def one_input(data: bytes) -> None:
    if data:
        READERS[data[0] % len(READERS)](data[1:])


atheris.Setup(sys.argv, one_input)
atheris.Fuzz()
