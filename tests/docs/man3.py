"""The pages of section 3 and hakmem.h, parsed for comparison."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# Macros that change the font, and the fonts of their arguments in turn.
FONTS = {"B": "B", "I": "I", "BI": "BI", "BR": "BR", "IB": "IB", "IR": "IR", "RB": "RB", "RI": "RI"}
NAME = re.compile(r"[A-Za-z_]\w*")


def one_line(text: str) -> str:
    """C without the spaces that mean nothing."""
    return re.sub(r" ?([*(),;]) ?", r"\1", " ".join(text.split()))


@dataclass(frozen=True)
class Function:
    name: str
    prototype: str
    parameters: tuple[str, ...]


def functions(text: str) -> list[Function]:
    found = []
    for declared in re.finditer(r"^[\w *]*?(\bhakmem_\w+)\(([^)]*)\)\s*;", text, re.MULTILINE):
        words = [part for part in declared[2].split(",") if part.strip() != "void"]
        parameters = tuple(NAME.findall(part)[-1] for part in words)
        found.append(Function(declared[1], one_line(declared[0]), parameters))
    return found


def structs(text: str) -> dict[str, list[str]]:
    """By name, the members in their order."""
    found = {}
    for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.MULTILINE | re.DOTALL):
        members = re.findall(r"^\s*\w+ ([\w, ]+);", body, re.MULTILINE)
        found[name] = [name for line in members for name in NAME.findall(line)]
    return found


class Header:
    def __init__(self, path: Path) -> None:
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        text = re.sub(r"__attribute__\(\(.*?\)\)\s*(?=;)", "", text, flags=re.DOTALL)
        self.functions = functions(text)
        self.structs = structs(text)
        self.macros = set(re.findall(r"^#define (HAKMEM_(?!HAKMEM_H)\w+)", text, re.MULTILINE))


class Page:
    """Of man(7). `target`: what it is another name of."""

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        self.source = path.read_text()
        link = re.fullmatch(r"\.so man3/(\w+)\.3\n", self.source)
        self.target = link[1] if link else None

    @cached_property
    def sections(self) -> dict[str, str]:
        parts = re.split(r'^\.SH "?([A-Z ]+?)"?\n', self.source, flags=re.MULTILINE)
        return dict(zip(parts[1::2], parts[2::2], strict=True))

    @cached_property
    def names(self) -> list[str]:
        """Those under NAME, before the dash."""
        return NAME.findall(self.sections["NAME"].split("\\-")[0])

    @cached_property
    def synopsis(self) -> str:
        lines = (plain(line) for line in self.sections["SYNOPSIS"].splitlines())
        return re.sub(r"/\*.*?\*/", "", "\n".join(lines))

    @cached_property
    def functions(self) -> list[Function]:
        return functions(self.synopsis)

    @property
    def examples(self) -> list[str]:
        return re.findall(r"^\.EX\n(.*?)^\.EE\n", self.source, re.MULTILINE | re.DOTALL)

    @property
    def programs(self) -> list[str]:
        return [plain(text) for text in self.examples if "main(" in text]

    @property
    def structs(self) -> dict[str, list[str]]:
        return structs("\n".join(text for text in self.examples if "main(" not in text))

    @property
    def terms(self) -> list[str]:
        """The names that a list explains."""
        return re.findall(r"^\.TP.*\n\.I (\w+)$", self.source, re.MULTILINE)

    def in_italics(self) -> Iterator[str]:
        """Names in italics in the text: of parameters, members, files."""
        for title, text in self.sections.items():
            if title not in ("NAME", "LIBRARY", "SYNOPSIS"):
                for line in text.splitlines():
                    for word in in_font("I", line):
                        yield from NAME.findall(re.sub(r"libhakmem[\w.]*", "", word))

    def references(self) -> list[tuple[str, str]]:
        """Name and section of other pages."""
        found = re.findall(r"^\.[BR]{2} (?:\( )?([\w\\-]+) \((\d)\)", self.source, re.MULTILINE)
        return [(name.replace("\\", ""), section) for name, section in found]


def plain(text: str) -> str:
    """Without fonts and escapes."""
    macro = re.match(r"\.([A-Z]{1,2}) (.*)", text)
    if macro and macro[1] in FONTS:
        words = words_of(macro[2])
        text = ("" if len(macro[1]) == 2 else " ").join(words)
    elif macro or text in (".PP", ".nf", ".fi"):
        return ""
    return text.replace("\\-", "-").replace("\\e", "\\")


def words_of(arguments: str) -> list[str]:
    """A macro's arguments: words, or what is in double quotes."""
    lexer = shlex.shlex(arguments, posix=True, punctuation_chars="")
    lexer.whitespace_split, lexer.quotes, lexer.commenters, lexer.escape = True, '"', "", ""
    return list(lexer)


def in_font(font: str, line: str) -> list[str]:
    macro = re.match(r"\.([A-Z]{1,2}) (.*)", line)
    if not macro or macro[1] not in FONTS:
        return []
    fonts = FONTS[macro[1]]
    return [w for at, w in enumerate(words_of(macro[2])) if fonts[at % len(fonts)] == font]


def pages(folder: Path) -> list[Page]:
    return [Page(path) for path in sorted(folder.glob("*.3"))]
