"""bin/hakmem starts this folder as a program (`python3 .../hakmem`). Started by hand as a module of
the Python package (`python3 -m hakmem ...`), it starts the command."""

import os
import resource
import sys
from importlib import metadata
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)


def front() -> str:
    """The command that was installed with this module."""
    try:
        files = metadata.files("hakmem") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.parts[-2:] == ("bin", "hakmem"):
            return str(file.locate())
    sys.exit("python -m hakmem: not installed by pip; call bin/hakmem of your installation")


if __name__ == "__main__":
    if __package__:
        os.execv(front(), ["hakmem", *sys.argv[1:]])
    # Where files must be small, the beginnings of compiled modules would be left for good.
    if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
        sys.dont_write_bytecode = True
    from hakmem.cli import main

    main()
