#!/usr/bin/env python3
"""Runs the seed set over several allocators, interleaved: `run.py --help`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

try:
    from bench.seed.report.cli import main
except ModuleNotFoundError as missing:
    if missing.name in ("matplotlib", "numpy", "rich", "scipy"):
        sys.exit(f"{missing.name} is missing: `make setup`, then .venv/bin/python {sys.argv[0]}")
    raise

if __name__ == "__main__":
    sys.exit(main())
