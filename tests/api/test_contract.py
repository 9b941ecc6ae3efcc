"""Each test that docs/contract.md names is one of that topic.

Usage: test_contract.py docs/contract.md
"""

import re
import sys
from pathlib import Path

NAMED = re.compile(r"`(\w+): (\w+)`")
HERE = Path(__file__).parent


def source(topic: str) -> str:
    for name in f"{topic}.c", f"{topic}.cc":
        if (HERE / name).exists():
            return (HERE / name).read_text()
    return ""


def main() -> int:
    table = Path(sys.argv[1]).read_text()
    named = sorted(set(NAMED.findall(table)) - {("topic", "function")})
    missing = [
        f"{topic}: {function}"
        for topic, function in named
        if not re.search(rf"^TEST\w*\({function}\)", source(topic), re.MULTILINE)
    ]
    for name in missing:
        print(f"named in {sys.argv[1]}: expected that it is run, found no TEST of {name}")
    print(f"{len(named)} tests named, {len(missing)} missing")
    return 1 if missing or not named else 0


if __name__ == "__main__":
    sys.exit(main())
