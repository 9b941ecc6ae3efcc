"""Inputs of the cases, all made from seeds: the same bytes on every machine."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path

WORDS = (
    "block", "cache", "slab", "shard", "map", "leaf", "run", "class", "batch", "flush", "refill",
    "purge", "page", "slice", "bit", "word", "line", "root", "door", "stack", "queue", "thread",
    "fork", "clock", "limit", "budget", "decay", "region", "span", "arena",
)  # fmt: skip
A_DAY = 1_700_000_000  # modification time given to generated files


def sentence(rng: random.Random, most: int = 12) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(3, most)))


def text(rng: random.Random, lines: int) -> str:
    return "".join(f"{number} {sentence(rng)}\n" for number in range(lines))


def tree(folder: Path) -> None:
    """Folders with many entries, long names, links and odd modes, for programs that list."""
    rng = random.Random(1)
    for part in range(40):
        place = (
            folder / "tree" / f"part-{part % 7}" / sentence(rng, 4).replace(" ", "-") / f"{part}"
        )
        place.mkdir(parents=True)
        for number in range(rng.randint(50, 400)):
            name = f"{rng.choice(WORDS)}{number}" + "x" * rng.randint(0, 120)
            (place / name).write_bytes(b"\0" * rng.randint(0, 300))
            os.utime(place / name, (A_DAY + number, A_DAY - number * 1000))
        (place / "link").symlink_to(f"../{part}")
        place.chmod(0o750)


def sql(file: Path, rows: int) -> None:
    """A script of `rows` rows, indexes, queries, changes, a view, a trigger and a VACUUM."""
    rng = random.Random(3)
    with file.open("w") as out:
        out.write("PRAGMA journal_mode=wal;\nPRAGMA cache_size=-2000;\nBEGIN;\n")
        out.write("CREATE TABLE item(id INTEGER PRIMARY KEY, kind TEXT, size INT, note TEXT);\n")
        out.write("CREATE TABLE kind(name TEXT PRIMARY KEY, weight REAL) WITHOUT ROWID;\n")
        for word in WORDS:
            out.write(f"INSERT INTO kind VALUES('{word}',{rng.randint(1, 999) / 8});\n")
        for row in range(rows):
            kind = rng.choice(WORDS)
            out.write(
                f"INSERT INTO item VALUES({row},'{kind}',{rng.randint(0, 1 << 20)},"
                f"'{sentence(rng)}');\n"
            )
        out.write(
            """COMMIT;
CREATE INDEX item_kind ON item(kind, size);
CREATE INDEX item_note ON item(note);
CREATE VIEW heavy AS SELECT i.*, k.weight FROM item i JOIN kind k ON k.name = i.kind
    WHERE k.weight > 60;
CREATE TABLE trail(id INT, was TEXT);
CREATE TRIGGER kept AFTER UPDATE OF note ON item BEGIN
    INSERT INTO trail VALUES(old.id, old.note); END;
SELECT kind, count(*), sum(size), min(note), max(note) FROM item GROUP BY kind ORDER BY kind;
SELECT count(*), total(weight * size) FROM heavy;
SELECT a.kind, b.kind, count(*) FROM item a JOIN item b ON b.id = a.id + 1
    GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 20;
SELECT id, note FROM item WHERE note LIKE '%slab shard%' ORDER BY note, id LIMIT 50;
SELECT group_concat(note, '|') FROM (SELECT note FROM item ORDER BY size, id LIMIT 3000);
WITH RECURSIVE t(n, s) AS (SELECT 1, 'x' UNION ALL SELECT n + 1, s || n FROM t WHERE n < 400)
    SELECT n, length(s), substr(s, -20) FROM t WHERE n % 40 = 0;
SELECT id, size, rank() OVER (PARTITION BY kind ORDER BY size DESC, id) AS r FROM item
    ORDER BY r, id LIMIT 60;
UPDATE item SET note = note || ' ' || kind WHERE id % 7 = 0;
DELETE FROM item WHERE id % 3 = 1;
SELECT count(*), sum(length(was)) FROM trail;
SELECT kind, count(*), sum(length(note)) FROM item GROUP BY kind ORDER BY 2 DESC, 1;
PRAGMA integrity_check;
PRAGMA journal_mode=delete;
VACUUM;
"""
        )


def c_project(folder: Path, files: int) -> None:
    """C sources that call one another, with large tables, switches and loops."""
    rng = random.Random(4)
    names = [f"{rng.choice(WORDS)}_{number}" for number in range(files)]
    header = ["#pragma once", "#include <stdint.h>", "#include <stdio.h>", "#include <string.h>"]
    header += [f"uint32_t {name}(uint32_t x, uint32_t depth);" for name in names]
    (folder / "all.h").write_text("\n".join(header) + "\n")
    for name in names:
        (folder / f"{name}.c").write_text(c_source(rng, name, names))
    calls = "\n".join(f"    sum = sum * 31 + {name}(sum, 3);" for name in names)
    (folder / "main.c").write_text(
        f'#include "all.h"\nint main(void)\n{{\n    uint32_t sum = 1;\n{calls}\n'
        '    printf("%08x\\n", sum);\n    return 0;\n}\n'
    )


def c_source(rng: random.Random, name: str, names: list[str]) -> str:
    table = ", ".join(str(rng.randint(0, 1 << 31)) for _ in range(200))
    lines = ['#include "all.h"', f"static const uint32_t table[] = {{{table}}};"]
    for number in range(25):
        cases = "\n".join(
            f"    case {k}: x ^= table[(x + {rng.randint(0, 199)}) % 200] * {rng.randint(3, 99)}u;"
            + (" break;" if rng.random() < 0.8 else " /* fall through */")
            for k in range(24)
        )
        lines.append(
            f"static uint32_t part_{number}(uint32_t x, uint32_t n)\n{{\n"
            f"    for (uint32_t i = 0; i < n % 17; i++) {{\n    switch ((x + i) % 24) {{\n{cases}\n"
            f"    }}\n    x = (x << 7 | x >> 25) + i;\n    }}\n    return x;\n}}"
        )
    body = "\n".join(f"    x += part_{number}(x, depth + {number});" for number in range(25))
    called = rng.choice(names)
    lines.append(
        f"uint32_t {name}(uint32_t x, uint32_t depth)\n{{\n{body}\n"
        f"    return depth ? {called}(x, depth - 1) : x;\n}}\n"
    )
    return "\n".join(lines)


CXX = """
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
template <int N> struct node { std::map<std::string, node<N - 1>> kids; std::vector<int> v; };
template <> struct node<0> { std::shared_ptr<std::string> leaf; };
int main()
{
    node<12> tree;
    std::unordered_map<std::string, std::vector<std::string>> index;
    std::regex words("([a-z]+) ([0-9]+)");
    for (int i = 0; i < 100; i++)
        index["key " + std::to_string(i % 10)].push_back(std::to_string(i));
    std::vector<std::string> keys;
    for (auto &e : index)
        if (std::regex_match(e.first, words)) keys.push_back(e.first);
    std::sort(keys.begin(), keys.end());
    for (auto &k : keys) std::cout << k << index[k].size() << tree.kids.size() << '\\n';
}
"""


def cxx_project(folder: Path) -> None:
    (folder / "main.cc").write_text(CXX)


def history(file: Path, commits: int) -> None:
    """A stream for `git fast-import`: `commits` commits that change and add files."""
    rng = random.Random(5)
    files: dict[str, list[str]] = {}
    with file.open("w") as out:
        for number in range(commits):
            out.write("commit refs/heads/main\n")
            out.write(f"committer A <a@example.org> {A_DAY + number * 60} +0000\n")
            out.write(data(f"change {number}: {sentence(rng)}\n"))
            for _ in range(rng.randint(1, 3)):
                name = f"{rng.choice(WORDS)}/{rng.choice(WORDS)}.txt"
                lines = files.setdefault(name, text(rng, rng.randint(10, 120)).splitlines(True))
                lines[rng.randrange(len(lines))] = f"changed {number} {sentence(rng)}\n"
                out.write(f"M 644 inline {name}\n" + data("".join(lines)))
            out.write("\n")


def data(body: str) -> str:
    return f"data {len(body.encode())}\n{body}\n"


def redis_writes(folder: Path, keys: int, parts: int) -> None:
    """Commands that build a known set of every type, with changes and deletions.

    They are written to `parts` files, in the protocol's own form for `redis-cli --pipe`.
    """
    rng = random.Random(6)
    for part in range(parts):
        out = io.StringIO()
        for n in range(keys * part // parts, keys * (part + 1) // parts):
            size = rng.choice((3, 20, 90, 400, 1500, 9000))
            value = "".join(rng.choice("abcdefgh") for _ in range(min(size, 60))) * (size // 60 + 1)
            out.write(f"SET s:{n} {value}\n")
            if n % 3 == 0:
                out.write(f"APPEND s:{n} {value[: rng.randint(1, 50)]}\nSETRANGE s:{n} 2 {n}\n")
            fields = " ".join(f"f{k} {rng.choice(WORDS)}{k * n}" for k in range(rng.randint(1, 9)))
            out.write(f"HSET h:{n % 400} {fields} n{n} {value[:40]}\n")
            out.write(f"RPUSH l:{n % 300} {value[:80]} {n}\nSADD m:{n % 200} {n} {value[:9]}\n")
            out.write(f"ZADD z:{n % 100} {rng.randint(0, 9999)} {value[:12]}{n}\n")
            out.write(f"XADD x:{n % 50} {n + 1}-1 at {n} is {rng.choice(WORDS)}\n")
            if n % 5 == 4:
                out.write(f"UNLINK s:{n - 2}\nLPOP l:{n % 300}\nINCRBY c:{n % 20} {n}\n")
        lines = (line.split(" ") for line in out.getvalue().splitlines())
        (folder / f"writes-{part}").write_text("".join(resp(words) for words in lines), newline="")


def resp(words: list[str]) -> str:
    """One command of ASCII words as redis reads it from the wire."""
    return f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)


def redis_reads(file: Path, keys: int) -> None:
    """Commands whose replies are the whole set, in an order that does not depend on hashing."""
    with file.open("w") as out:
        out.write("DBSIZE\n")
        out.writelines(f"GET s:{n}\n" for n in range(keys))
        out.writelines(f"GET c:{n}\n" for n in range(20))
        out.writelines(f"LRANGE l:{n} 0 -1\n" for n in range(300))
        out.writelines(f"SORT m:{n} ALPHA\n" for n in range(200))
        out.writelines(f"ZRANGE z:{n} 0 -1 WITHSCORES\n" for n in range(100))
        out.writelines(f"XRANGE x:{n} - +\n" for n in range(50))
        out.writelines(
            f"HMGET h:{n} f0 f1 f2 f3 f4 f5 f6 f7 f8 n{n} n{n + 400}\n" for n in range(400)
        )


def lines(file: Path, count: int) -> None:
    """Numbered lines of words, as `text` makes them."""
    file.write_text(text(random.Random(12), count))


def compressible(file: Path, mebibytes: int) -> None:
    """Pages of text that come again, with noise between them."""
    rng = random.Random(8)
    pages = [text(rng, 50).encode() for _ in range(300)]
    with file.open("wb") as out:
        while out.tell() < mebibytes << 20:
            out.write(rng.randbytes(1000) if rng.randrange(5) == 0 else rng.choice(pages))
