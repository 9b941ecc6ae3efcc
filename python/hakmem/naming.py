"""Which function, file and line some addresses of a file belong to, asked of llvm-symbolizer or
addr2line, and of the file's own tables."""

from __future__ import annotations

import bisect
import functools
import json
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

TOOL_SECONDS = 600
# What pyelftools raises of damaged files.
BROKEN = (ELFError, struct.error, LookupError, ValueError, OSError, MemoryError, AssertionError)

_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
_RUST_ESCAPE = re.compile(r"\$(LT|GT|RF|BP|LP|RP|SP|C|u[0-9a-f]{1,6})\$")
_RUST_LETTERS = {
    "LT": "<",
    "GT": ">",
    "RF": "&",
    "BP": "*",
    "LP": "(",
    "RP": ")",
    "SP": "@",
    "C": ",",
}
_CXX_FILE = re.compile(r"/include/c\+\+/(v1|\d[\d.]*)/")
_VERSION = re.compile(r"@@?[A-Z][A-Za-z_]*[0-9.]*$")  # of a symbol, such as @GLIBC_2.34

SYMBOL = struct.Struct("<IBBHQQ")
FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC


@dataclass(frozen=True)
class Line:
    function: str
    file: str = ""
    line: int = 0
    is_wrapper: bool = False
    is_script: bool = False

    def __str__(self) -> str:
        return f"{self.function} ({self.where})" if self.file else self.function

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


Lines = dict[int, tuple[Line, ...]]


def lines_of(files: list[Path], addresses: list[int]) -> Lines:
    found: Lines = {}
    for file in files:
        left = [address for address in addresses if address not in found]
        found |= _asked(file, left) if left else {}
    left = [address for address in addresses if address not in found]
    return found | _of_tables(files, left)


def _asked(path: Path, addresses: list[int]) -> Lines:
    """By a tool of this system."""
    for name, ask in (("llvm-symbolizer", _by_llvm), ("addr2line", _by_addr2line)):
        tool = shutil.which(name)
        if tool is not None:
            with suppress(OSError, subprocess.SubprocessError, *BROKEN):
                return ask(tool, path, addresses)
    return {}


def _says(words: list[str], addresses: Iterable[int]) -> list[str]:
    # These tools would ask debuginfod's servers by themselves, and say nothing.
    environment = {name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"}
    asked = "".join(f"{address:#x}\n" for address in addresses)
    return subprocess.run(
        words,
        input=asked,
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        timeout=TOOL_SECONDS,
        check=True,
    ).stdout.splitlines()


def _by_llvm(tool: str, path: Path, addresses: list[int]) -> Lines:
    words = [tool, "--output-style=JSON", "--inlines", "--demangle", f"--obj={path}"]
    found = {}
    for text in _says(words, addresses):
        said = json.loads(text)
        lines = tuple(
            Line(_readable(one["FunctionName"], one["FileName"]), one["FileName"], one["Line"])
            for one in said.get("Symbol", ())
            if one["FunctionName"]
        )
        if lines:
            found[int(said["Address"], 16)] = lines
    return found


def _readable(name: str, file: str) -> str:
    """Without its version; of Rust without its hash, and with the letters that older compilers
    write by name. Functions of C++'s library that were inlined may have their short name alone: of
    types that are local to a file, such as lambdas."""
    if _RUST_HASH.search(name) is None:
        short = _CXX_FILE.search(file) and "::" not in re.split("[<(]", name, maxsplit=1)[0]
        return f"std::{name}" if short else _VERSION.sub("", name)
    name = re.sub(r"(^|::)_(?=\$)", r"\1", _RUST_HASH.sub("", name))

    def letter(match: re.Match[str]) -> str:
        code = match[1]
        return _RUST_LETTERS.get(code) or chr(min(int(code[1:], 16), 0x10FFFF))

    return _RUST_ESCAPE.sub(letter, name).replace("..", "::")


def _by_addr2line(tool: str, path: Path, addresses: list[int]) -> Lines:
    said = _says([tool, "-a", "-i", "-f", "-C", "-e", str(path)], addresses)
    found: dict[int, list[Line]] = {}
    address, function = -1, ""
    for text in said:
        if re.fullmatch("0x[0-9a-f]+", text):
            address, function = int(text, 16), ""
        elif not function:
            function = text
        else:
            # FILE:LINE, with a remark such as (discriminator 3) after it
            place = re.match(r"(.*):([0-9]+|\?)(?: \(.*\))?$", text)
            file = place[1] if place and not place[1].startswith("?") else ""
            number = int(place[2]) if place and file and place[2] != "?" else 0
            if function != "??":
                line = Line(_readable(function, file), file, number)
                found.setdefault(address, []).append(line)
            function = ""
    return {address: tuple(lines) for address, lines in found.items()}


def _of_tables(files: list[Path], addresses: list[int]) -> Lines:
    found: Lines = {}
    for file in files if addresses else ():
        status = file.stat()
        starts, symbols = _table(file, status.st_ino, status.st_mtime_ns)
        for address in addresses:
            at = bisect.bisect_right(starts, address) - 1
            if at >= 0 and address not in found:
                name, size = symbols[at]
                if address < starts[at] + size:
                    found[address] = (Line(name),)
    return found


@functools.lru_cache(maxsize=16)
def _table(path: Path, _inode: int, _changed: int) -> tuple[list[int], list[tuple[str, int]]]:
    """Where functions begin, and the name and size of each."""
    functions: dict[int, tuple[str, int]] = {}
    for section in ".dynsym", ".symtab":
        with suppress(*BROKEN), path.open("rb") as file:
            functions.update(_functions(ELFFile(file), section))
    starts = sorted(functions)
    return starts, [functions[start] for start in starts]


def _functions(elf: ELFFile, section: str) -> Iterator[tuple[int, tuple[str, int]]]:
    table = elf.get_section_by_name(section)
    if table is None or table["sh_type"] == "SHT_NOBITS":
        return
    if elf.elfclass != 64 or not elf.little_endian:
        return
    names = elf.get_section(table["sh_link"]).data()
    for at, info, _, where, value, size in SYMBOL.iter_unpack(table.data()):
        if info & 15 in FUNCTIONS and where and size:
            name = names[at : names.index(b"\0", at)].decode(errors="replace")
            yield value, (name, size)
