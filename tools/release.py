#!/usr/bin/env python3
"""Writes a version and its date wherever they stand, and says what to do next.

Usage: tools/release.py VERSION [DATE]

VERSION is MAJOR.MINOR.PATCH; DATE is YYYY-MM-DD, today if it is left out. CHANGELOG.md must have
changes under "Unreleased": they become those of VERSION. Nothing is committed."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, date, datetime
from email.utils import format_datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
UNRELEASED = "## Unreleased\n"
# Of each file what stands before the version. The lock of the crate has other versions, too.
PLACES = {
    "CMakeLists.txt": r"project\(hakmem\s+VERSION ",
    "pyproject.toml": r'\[project\]\nname = "hakmem"\nversion = "',
    "python/hakmem/__init__.py": r'__version__ = "',
    "bindings/rust/Cargo.toml": r'\[package\]\nname = "hakmem-malloc"\nversion = "',
    "bindings/rust/Cargo.lock": r'name = "hakmem-malloc"\nversion = "',
}
HEADER = "include/hakmem/hakmem.h"
DEBIAN = "debian/changelog"
CHANGES = "CHANGELOG.md"


def written(root: Path, version: str, day: date) -> dict[str, str]:
    """The new text of each file. Exits where a file is not as expected."""
    texts = {name: (root / name).read_text() for name in (*PLACES, HEADER, DEBIAN, CHANGES)}

    def put(name: str, pattern: str, text: str) -> None:
        texts[name], times = re.subn(pattern, text, texts[name])
        if times != 1:
            sys.exit(f"{name}: {pattern!r} is there {times} times, expected once")

    for name, before in PLACES.items():
        put(name, rf"({before})\d+\.\d+\.\d+", rf"\g<1>{version}")
    for part, number in zip(("MAJOR", "MINOR", "PATCH"), version.split("."), strict=True):
        put(HEADER, rf"(#define HAKMEM_VERSION_{part}) \d+", rf"\g<1> {number}")
    put(CHANGES, UNRELEASED, f"{UNRELEASED}\n## {version} - {day.isoformat()}\n")
    last = re.match(r"hakmem \(([\d.]+)\)", texts[DEBIAN])
    if last is None:
        sys.exit(f"{DEBIAN}: expected the last version in the first line")
    if last[1] == version:  # as with the first one, which had an entry before it was released
        texts[DEBIAN] = re.sub(
            r"(?m)^( -- .*>  ).*$", rf"\g<1>{_noon(day)}", texts[DEBIAN], count=1
        )
    else:
        maintainer = re.search(r"(?m)^ -- (.*>)  ", texts[DEBIAN])
        assert maintainer is not None
        entry = f"hakmem ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n"
        texts[DEBIAN] = f"{entry} -- {maintainer[1]}  {_noon(day)}\n\n{texts[DEBIAN]}"
    return texts


def _noon(day: date) -> str:
    return format_datetime(datetime(day.year, day.month, day.day, 12, tzinfo=UTC))


def main() -> None:
    if len(sys.argv) not in (2, 3) or VERSION.fullmatch(sys.argv[1]) is None:
        sys.exit(__doc__)
    version = sys.argv[1]
    day = date.fromisoformat(sys.argv[2]) if len(sys.argv) == 3 else datetime.now(UTC).date()
    for name, text in written(ROOT, version, day).items():
        (ROOT / name).write_text(text)
    # What is made from these files.
    subprocess.run([sys.executable, str(ROOT / "tools/pages.py")], check=True)
    print(f"This is hakmem {version} of {day}. Next:")
    print(f"  git commit -am 'Release {version}'    # after a look at 'git diff'")
    print("  make test-dist    # makes the release twice, and tries it")
    print(f"  git tag -a v{version} -m 'hakmem {version}'")


if __name__ == "__main__":
    main()
