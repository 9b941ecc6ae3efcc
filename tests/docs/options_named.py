#!/usr/bin/env python3
"""Looks for options in the pages that hakmem does not have: a variable HAKMEM_..., `--set name=`,
or `hakmem+name=`. Variables that are no options must stand in a file of the sources by that name.
Exit status: 0 all are known, 1 some are not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "src/base/options.def"
VARIABLE = re.compile(r"\bHAKMEM_[A-Z][A-Z_]*[A-Z]\b(?!_?\*)")
# A page may show what hakmem says of a wrong one.
REFUSED = re.compile(r"there is no option '(\w+)'")
OPTION = re.compile(r"(?:-o |--set[ =]|\bhakmem\+)([a-z_]+)=")


def main() -> int:
    names = options()
    known = {f"HAKMEM_{name.upper()}" for name in names} | variables_of_the_sources()
    wrong, seen = [], 0
    for page in pages():
        text = page.read_text()
        found = VARIABLE.findall(text) + OPTION.findall(text)
        known_here = known | names | set(REFUSED.findall(text))
        seen += len(found)
        wrong += [f"{page.relative_to(ROOT)}: {name}" for name in found if name not in known_here]
    if not names or not seen:
        wrong.append("no options, or none in the pages: are the files as expected?")
    for line in wrong:
        print(f"no such option: {line}")
    print(f"{len(names)} options, named {seen} times, {len(wrong)} wrong")
    return 1 if wrong else 0


def options() -> set[str]:
    return set(re.findall(r"^OPTION\((\w+),", TABLE.read_text(), re.MULTILINE))


def tracked(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *patterns]
    listed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def pages() -> list[Path]:
    return tracked("README.md", "CONTRIBUTING.md", "docs/*.md", "bindings/*.md")


def variables_of_the_sources() -> set[str]:
    """HAKMEM_CONFIG, CMake's switches, the header's macros."""
    sources = tracked("src", "include", "command", "cmake", "CMakeLists.txt", "*/CMakeLists.txt")
    return {name for file in sources for name in VARIABLE.findall(file.read_text())}


if __name__ == "__main__":
    sys.exit(main())
