#!/usr/bin/env python3
"""Writes a list of compile commands with one for each file: that with assertions if there is one.

Usage: tools/compile_commands.py FROM FOLDER
"""

import json
import sys
from pathlib import Path


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    commands = json.loads(Path(sys.argv[1]).read_text())
    commands.sort(key=lambda command: "-DHAKMEM_ASSERT=1" in command["command"])
    last = {command["file"]: command for command in commands}
    folder = Path(sys.argv[2])
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(list(last.values()), indent=1))


if __name__ == "__main__":
    main()
