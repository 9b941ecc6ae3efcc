"""What the programs work on, made from seeds: the same bytes on every machine."""

from __future__ import annotations

import random
from pathlib import Path

WORDS = (
    "amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty",
    "knoll", "ledge", "marsh", "notch", "ocean", "plain", "quarry", "ridge", "shore", "tarn",
    "upland", "vale", "weir", "yarrow",
)  # fmt: skip


def sentence(rng: random.Random, most: int) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(2, most)))


def sql(file: Path, rows: int) -> None:
    """Two tables with indexes, kept in memory, and queries that sort, join, group and change."""
    rng = random.Random(1)
    with file.open("w") as out:
        out.write(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, kind TEXT, size INT, note TEXT);\n"
            "CREATE TABLE sale(item INT, day INT, price REAL);\nBEGIN;\n"
        )
        for row in range(rows):
            kind, size = rng.choice(WORDS), rng.randrange(1 << 20)
            out.write(f"INSERT INTO item VALUES({row},'{kind}',{size},'{sentence(rng, 14)}');\n")
            out.write(f"INSERT INTO sale VALUES({rng.randrange(rows)},{row % 365},{size / 64});\n")
        out.write(
            """COMMIT;
CREATE INDEX item_kind ON item(kind, size);
CREATE INDEX item_note ON item(note);
CREATE INDEX sale_item ON sale(item, day);
SELECT kind, count(*), sum(size), min(note), max(note) FROM item GROUP BY kind ORDER BY kind;
SELECT i.kind, count(*), round(sum(s.price), 2) FROM item i JOIN sale s ON s.item = i.id
    WHERE s.day BETWEEN 30 AND 200 GROUP BY i.kind ORDER BY 3 DESC;
SELECT id, rank() OVER (PARTITION BY kind ORDER BY size DESC, id) AS place FROM item
    ORDER BY place, id LIMIT 40;
SELECT length(group_concat(note, '|')) FROM (SELECT note FROM item ORDER BY size, id);
SELECT sum(length(t)), count(DISTINCT t) FROM
    (SELECT replace(upper(note), ' ', '--') || id AS t FROM item);
UPDATE item SET note = note || ' ' || kind || note WHERE id % 3 = 0;
DELETE FROM item WHERE id % 5 = 1;
SELECT kind, count(*), sum(length(note)) FROM item GROUP BY kind ORDER BY 2 DESC, 1;
PRAGMA integrity_check;
"""
        )


def c_files(folder: Path, files: int) -> None:
    """Small C files as a project has many: a few functions, a table, the usual headers."""
    rng = random.Random(2)
    for number in range(files):
        lines = [f"#include <{name}.h>" for name in ("stdio", "stdlib", "string", "unistd")]
        lines.append("struct entry { struct entry *next; char name[24]; long weight; };")
        table = ", ".join(f'{{0, "{rng.choice(WORDS)}", {rng.randrange(999)}}}' for _ in range(30))
        lines.append(f"static struct entry table[] = {{{table}}};")
        for part in range(12):
            factor, shift = rng.randrange(3, 99), rng.randrange(1, 15)
            lines.append(
                f"long part_{number}_{part}(struct entry *at, long limit)\n{{\n"
                f"    long sum = {factor};\n"
                "    for (; at && sum < limit; at = at->next) {\n"
                f'        if (strncmp(at->name, "{rng.choice(WORDS)}", 4) == 0)\n'
                f"            sum += at->weight << {shift};\n"
                "        else\n            sum ^= "
                f"table[(at->weight + sum) & 15].weight * {factor};\n    }}\n    return sum;\n}}"
            )
        (folder / f"file_{number:03}.c").write_text("\n".join(lines) + "\n")


def cxx_file(file: Path, kinds: int) -> None:
    """One C++ file that makes much of the standard library's templates."""
    rng = random.Random(3)
    headers = (
        "algorithm", "functional", "iostream", "map", "memory", "numeric", "set", "sstream",
        "string", "tuple", "unordered_map", "variant", "vector",
    )  # fmt: skip
    lines = [f"#include <{header}>" for header in headers]
    for kind in range(kinds):
        fields = " ".join(f"std::string {rng.choice(WORDS)}_{n};" for n in range(6))
        lines.append(
            f"struct kind_{kind} {{ {fields} int key; std::vector<double> parts; }};\n"
            f"long work_{kind}(std::vector<kind_{kind}> all)\n{{\n"
            f"    std::map<std::string, std::vector<std::shared_ptr<kind_{kind}>>> index;\n"
            f"    std::unordered_map<int, std::tuple<int, std::string, kind_{kind}>> by_key;\n"
            f"    std::variant<int, std::string, kind_{kind}> last;\n"
            "    std::sort(all.begin(), all.end(),"
            " [](auto &a, auto &b) { return a.key < b.key; });\n"
            "    for (auto &one : all) {\n"
            f"        auto &same = index[std::to_string(one.key)];\n"
            f"        same.push_back(std::make_shared<kind_{kind}>(one));\n"
            f"        by_key.emplace(one.key, std::make_tuple({kind}, std::string(), one));\n"
            "        last = one;\n    }\n"
            "    return index.size() + by_key.size() + last.index();\n}"
        )
    calls = " + ".join(f"work_{kind}({{}})" for kind in range(kinds))
    lines.append(f"long all() {{ return {calls}; }}")
    file.write_text("\n".join(lines) + "\n")


def smt(file: Path, problems: int) -> None:
    """Questions to a solver, each small: bit vectors, integers, arrays, reals, functions."""
    rng = random.Random(4)
    out = []
    for _ in range(problems):
        out += ["(push)", *_queens(8), "(check-sat)", "(pop)"]
        out += ["(push)", *_arrays(rng, 16), "(check-sat)", "(pop)"]
        out += ["(push)", *_reals(rng, 12), "(check-sat)", "(pop)"]
        out += ["(push)", *_bits(rng, 12), "(check-sat)", "(pop)"]
    file.write_text("\n".join(out) + "\n")


def _queens(size: int) -> list[str]:
    lines = [f"(declare-const q{n} Int)(assert (<= 1 q{n} {size}))" for n in range(size)]
    return lines + [
        f"(assert (and (distinct q{a} q{b}) (distinct (- q{a} q{b}) {b - a} {a - b})))"
        for b in range(size)
        for a in range(b)
    ]


def _arrays(rng: random.Random, size: int) -> list[str]:
    stores = "a"
    for n in range(size):
        stores = f"(store {stores} i{n} (+ 1 (select a i{rng.randrange(size)})))"
    return [
        "(declare-const a (Array Int Int))(declare-const b (Array Int Int))",
        *(f"(declare-const i{n} Int)(assert (<= 0 i{n} 20))" for n in range(size)),
        f"(assert (= b {stores}))",
        *(f"(assert (> (select b i{n}) (select a i{n})))" for n in range(0, size, 3)),
    ]


def _reals(rng: random.Random, size: int) -> list[str]:
    lines = [f"(declare-const x{n} Real)(assert (<= 0 x{n} 100))" for n in range(size)]
    for _ in range(3 * size):
        parts = " ".join(f"(* {rng.randint(-9, 9)} x{n})" for n in rng.sample(range(size), 5))
        lines.append(f"(assert (<= (+ {parts}) {rng.randint(5, 60)}))")
    least = rng.randint(0, 60 * size)
    return [*lines, f"(assert (>= (+ {' '.join(f'x{n}' for n in range(size))}) {least}))"]


def _bits(rng: random.Random, width: int) -> list[str]:
    product = rng.randrange(1 << (width - 1), 1 << width) | 1
    return [
        f"(declare-const u (_ BitVec {width}))(declare-const v (_ BitVec {width}))",
        f"(assert (= (bvmul u v) (_ bv{product} {width})))",
        f"(assert (bvugt u (_ bv{1 << (width // 2)} {width})))(assert (bvult v u))",
    ]


def postscript(file: Path, pages: int) -> None:
    """Pages of text in several fonts, curves, shades and clipped pictures."""
    rng = random.Random(5)
    out = ["%!PS-Adobe-3.0"]
    for page in range(pages):
        for line in range(46):
            font = rng.choice(("Times-Roman", "Helvetica-Bold", "Courier", "Palatino-Italic"))
            out.append(f"/{font} findfont {rng.randint(8, 13)} scalefont setfont")
            out.append(f"60 {780 - line * 15} moveto ({line} {sentence(rng, 9)}) show")
        for _ in range(60):
            curve = " ".join(str(rng.randrange(600)) for _ in range(6))
            out.append(f"{rng.random():.2f} {rng.random():.2f} 0.9 setrgbcolor "
                       f"{rng.random() * 3:.1f} setlinewidth newpath {rng.randrange(600)} "
                       f"{rng.randrange(800)} moveto {curve} curveto stroke")  # fmt: skip
        pixels = rng.randbytes(3 * 64 * 64).hex()
        out.append(f"gsave 350 {rng.randrange(500)} translate 120 120 scale 64 64 8 "
                   "[64 0 0 -64 0 64] {currentfile 192 string readhexstring pop} "
                   f"false 3 colorimage\n{pixels}\ngrestore 0 setgray")  # fmt: skip
        out.append("<< /ShadingType 2 /ColorSpace /DeviceRGB /Coords [0 0 600 0] /Function << "
                   "/FunctionType 2 /Domain [0 1] /C0 [1 0 0] /C1 [0 0 1] /N 1 >> >> gsave "
                   f"newpath 300 {page * 9 % 700} 70 0 360 arc clip shfill"
                   " grestore\nshowpage")  # fmt: skip
    file.write_text("\n".join(out) + "\n")


def compressible(file: Path, mebibytes: int) -> None:
    """Paragraphs that come again, among noise."""
    rng = random.Random(6)
    paragraphs = ["".join(sentence(rng, 12) + "\n" for _ in range(40)).encode() for _ in range(400)]
    size = 0
    with file.open("wb") as out:
        while size < mebibytes << 20:
            size += out.write(rng.choice(paragraphs) if rng.random() < 0.8 else rng.randbytes(900))


def redis_commands(file: Path, commands: int) -> None:
    """In the server's own protocol: values of all its types that grow, change and go."""
    rng = random.Random(7)
    kinds = (_redis_string, _redis_append, _redis_hash, _redis_list, _redis_set, _redis_sorted)
    with file.open("wb") as out:
        for number in range(commands):
            words = _redis_delete(rng) if number % 12 == 11 else rng.choice(kinds)(rng, number)
            out.write(b"*%d\r\n" % len(words))
            for word in words:
                out.write(b"$%d\r\n%b\r\n" % (len(word), word.encode()))


def redis_turnover(fill: Path, turnover: Path, keys: int) -> None:
    """Keys of which four in five go, at random; then new values for the rest, three for each."""
    rng = random.Random(7)
    with fill.open("wb") as out:
        for number in range(keys):
            out.write(_redis_set_some(rng, number))
        names = list(range(keys))
        rng.shuffle(names)
        live = names[: keys // 5]
        for number in names[keys // 5 :]:
            out.write(b"*2\r\n$3\r\nDEL\r\n$16\r\nkey:%012d\r\n" % number)
    with turnover.open("wb") as out:
        for _ in range(3 * len(live)):
            out.write(_redis_set_some(rng, rng.choice(live)))


def postgres_turnover(file: Path, statements: int, rest: float) -> None:
    """A session of psql: prepared statements of which four in five go, at random; then new ones for
    the rest, three for each. It says what its server process holds after each step."""
    rng = random.Random(13)
    with file.open("w") as out:
        out.write("SELECT pg_backend_pid() AS server \\gset\n\\setenv SERVER :server\n")
        for number in range(statements):
            out.write(_prepare(rng, number))
        out.write(_tell("filled"))
        names = list(range(statements))
        rng.shuffle(names)
        live = names[: statements // 5]
        for number in names[statements // 5 :]:
            out.write(f"DEALLOCATE s{number};\n")
        out.write(f"\\! sleep {rest}\n{_tell('deleted')}\\! echo begin $(date +%s.%N)\n")
        for _ in range(3 * len(live)):
            number = rng.choice(live)
            out.write(f"DEALLOCATE s{number};\n{_prepare(rng, number)}")
        out.write(f"\\! echo end $(date +%s.%N)\n\\! sleep {rest}\n{_tell('turned')}")
        out.write("SELECT 'statements', count(*) FROM pg_prepared_statements;\n")
        for number in sorted(live):
            out.write(f"EXECUTE s{number};\n")


def _tell(step: str) -> str:
    return f"\\! echo {step} $(grep ^Pss: /proc/$SERVER/smaps_rollup)\n"


def _prepare(rng: random.Random, number: int) -> str:
    columns = ", ".join(rng.sample(("aid", "bid", "abalance", "filler"), k=rng.randint(1, 4)))
    some = " OR ".join(
        f"{rng.choice(('aid', 'bid', 'abalance'))} {rng.choice('<>=')} {rng.randrange(100_000)}"
        for _ in range(rng.randint(1, 6))
    )
    return (
        f"PREPARE s{number} AS SELECT {rng.randrange(10**9)}, {columns} FROM pgbench_accounts "
        f"WHERE aid = {rng.randint(1, 100_000)} AND ({some} OR abalance = 0);\n"
    )


def _redis_set_some(rng: random.Random, number: int) -> bytes:
    size = rng.randint(250, 350)
    return b"*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$%d\r\n%b\r\n" % (
        number,
        size,
        b"%03d" % (number % 1000) * (size // 3) + b"v" * (size % 3),
    )


def _redis_string(rng: random.Random, number: int) -> list[str]:
    return ["SET", f"string:{rng.randrange(20_000)}", f"{number}" * rng.randint(1, 120)]


def _redis_append(rng: random.Random, _number: int) -> list[str]:
    return ["APPEND", f"grown:{rng.randrange(500)}", "a" * rng.randint(1, 60)]


def _redis_hash(rng: random.Random, number: int) -> list[str]:
    return ["HSET", f"hash:{rng.randrange(800)}", f"f{number % 400}", "h" * rng.randint(1, 150)]


def _redis_list(rng: random.Random, number: int) -> list[str]:
    key = f"list:{rng.randrange(800)}"
    return ["LPOP", key] if number % 3 == 0 else ["RPUSH", key, f"{number}" * rng.randint(1, 40)]


def _redis_set(rng: random.Random, number: int) -> list[str]:
    return ["SADD", f"set:{rng.randrange(600)}", f"member {number % 9000}"]


def _redis_sorted(rng: random.Random, number: int) -> list[str]:
    return ["ZADD", f"sorted:{rng.randrange(400)}", str(number % 5000), f"name {number % 7000}"]


def _redis_delete(rng: random.Random) -> list[str]:
    kind, keys = rng.choice((("string", 20_000), ("grown", 500), ("hash", 800), ("set", 600)))
    return ["UNLINK", f"{kind}:{rng.randrange(keys)}"]
