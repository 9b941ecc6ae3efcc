"""The command line: which subcommands there are, and which module does each.

bin/hakmem starts `main` with its own path and the library's before what the user wrote.
"""

from __future__ import annotations

import argparse
import sys


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="hakmem", description="Programs on hakmem's malloc.")
    return top


def main() -> None:
    _front, _library, *arguments = sys.argv[1:]
    parser().parse_args(arguments)


if __name__ == "__main__":
    main()
