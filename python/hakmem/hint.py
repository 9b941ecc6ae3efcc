"""What to do next: the last line of a command, for people."""

from __future__ import annotations

import os
import sys


def hint(text: str) -> None:
    """On standard error, where standard output is a terminal: programs that read the output do not
    meet it. Dim, unless NO_COLOR is set."""
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        return
    sys.stdout.flush()
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    print(f"next: {text}" if plain else f"\x1b[2mnext: {text}\x1b[22m", file=sys.stderr)
