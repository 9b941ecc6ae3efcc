"""Started by bin/hakmem: as a folder, `python3 .../hakmem`."""

import sys
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from hakmem.cli import main

if __name__ == "__main__":
    main()
