"""An index of a text: words, the lines they are in, neighbours; then a report."""

import json
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path


def main() -> None:
    text = Path(sys.argv[1]).read_text()
    lines_of: dict[str, list[int]] = defaultdict(list)
    pairs: Counter[tuple[str, str]] = Counter()
    for number, line in enumerate(text.splitlines()):
        words = [word.capitalize() for word in line.split()]
        for word in words:
            lines_of[word].append(number)
        pairs.update(pairwise(words))
    entries = [
        {"word": word, "lines": [f"line {at}" for at in lines]} for word, lines in lines_of.items()
    ]
    entries.sort(key=lambda entry: (len(entry["lines"]), entry["word"]))
    report = json.dumps(entries)
    back = json.loads(report)
    print(len(report), len(back), pairs.most_common(5))


main()
