"""Programs that the judge runs, and records to replay them. None of them has tuned hakmem: the rows
of `hakmem bench` have other work."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from hakmem_yardstick.programs import inputs
from hakmem_yardstick.programs.batches import PYTHON
from hakmem_yardstick.programs.program import LoadFailed, Place, Ran, Run, batch, found, row, words
from hakmem_yardstick.programs.servers import redis_client, redis_service, serve
from yardstick.judge.place import SCRIPTS

JUDGED = ("cpu", "faults", "peak")


def _text(folder: Path, sizes: Mapping[str, int]) -> None:
    rng = random.Random(101)
    with (folder / "text").open("w") as out:
        for _ in range(sizes["lines"]):
            some = inputs.sentence(rng, 12)
            out.write(f"{some} {rng.choice(inputs.WORDS)}{rng.randrange(900)}\n")


def _reads(text: str, script: str = "") -> Run:
    """A command with the text as its last word."""
    scripts = [str(SCRIPTS / script)] if script else []
    return batch(words(text, *scripts, "@INPUTS@/text"))


def _shell(text: str, outputs: str | None = None) -> Run:
    """For sh, with the inputs as $0."""
    return batch(words("sh -ec", text, "@INPUTS@"), outputs)


_work = partial(row, make=_text, judged=JUDGED)


JQ = "group_by(.kind) | map({k: .[0].kind, n: length, w: (map(.w[0]) | unique)})"
GIT = """
git init -q . && git config pack.threads 1
split -l 40 "$0/text" part-
for turn in 1 2 3; do
    git add . && git commit -q -m "turn $turn"
    for file in part-?[a-m]; do tac "$file" > new && mv new "$file"; done
done
git gc -q && git log -p --stat | cksum && git blame part-aa | wc -l && git rev-parse HEAD
"""
WHEN = "2026-01-01T00:00:00Z"
NOBODY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "n"), ("EMAIL", "e@example.org"), ("DATE", WHEN))
}

GHOSTSCRIPT = """
gs -q -dBATCH -dNOPAUSE -dSAFER -sDEVICE=ppmraw -r50 -o p%03d.ppm "$0/pages.ps"
"""

XZ = """
for i in 1 2 3; do cp "$0/text" file$i; done; tar -cf - --sort=name --mtime=@0 file* |
    xz -T2 --block-size=1MiB -1 > a.xz; xz -dc a.xz | tar -xO | cksum
"""

MAKE = """
{ printf 'all:'; for i in $(seq 400); do printf ' target-%s' $i; done; echo
  for i in $(seq 400); do
      echo "target-$i: \\$(wildcard $0/*) \\$(subst a,b,\\$(shell head -c 3000 $0/text))"
      echo "%-$i.o: %.c ; cc -c \\$< \\$(foreach w,\\$(sort x y z $i),\\$(w)\\$(w))"
  done; sed 's/ .*/:/;s/^/word-/' "$0/text" | sort -u; } > Makefile
make -s -n -r all 2>&1 | cksum
make -p -n -r -f Makefile word-amber 2>/dev/null | grep -c '^word' || true
"""


def _gcc(folder: Path, sizes: Mapping[str, int]) -> None:
    inputs.c_files(folder, sizes["lines"] // 1000)
    parts = sorted(folder.glob("*.c"))
    # One file of them all, as amalgamations are.
    names = "".join(
        path.read_text().replace("table", f"table_{at}").replace("entry", f"entry_{at}")
        for at, path in enumerate(parts)
    )
    (folder / "all.c").write_text(names)


def _records(folder: Path, sizes: Mapping[str, int]) -> None:
    rng = random.Random(103)
    with (folder / "text").open("w") as out:
        for number in range(sizes["lines"]):
            words = ", ".join(f'"{word}"' for word in rng.choices(inputs.WORDS, k=4))
            out.write(f'{{"id": {number}, "kind": "{rng.choice(inputs.WORDS)}", "w": [{words}]}}\n')


def _drawing(folder: Path, sizes: Mapping[str, int]) -> None:
    rng = random.Random(107)
    with (folder / "pages.ps").open("w") as out:
        out.write("%!PS\n/Helvetica 9 selectfont\n")
        for number in range(sizes["lines"]):
            out.write(f"{rng.randrange(500)} {rng.randrange(700)} moveto ")
            out.write(f"({inputs.sentence(rng, 6)}) show\n")
            if number % 3 == 0:
                corners = [rng.randrange(600) for _ in range(6)]
                out.write(f"{' '.join(map(str, corners))} curveto stroke newpath\n")
            if number % 300 == 299:
                out.write("showpage /Helvetica 9 selectfont\n")


def _redis(place: Place) -> Ran:
    """Lists, sets, sorted sets and hashes that redis-benchmark fills and empties."""
    service, ask = redis_service(place), redis_client(place)
    requests = place.sizes["requests"]
    for test in ("lpush,rpop", "sadd,spop", "zadd,zpopmin", "hset", "set"):
        options = f"-t {test} -c 10 -P 8 -n {requests} -r 9000 -d 90 -q".split()
        service.run(found("redis-benchmark"), "-s", place.folder / "socket", *options)
    service.run(*ask, "PING")
    measured, steps = serve(place, service)
    if steps and steps[-1]["output"].strip() != "PONG":
        raise LoadFailed("redis gives no answer")
    return Ran(measured, [b"PONG"] if steps else [])


# fmt: off
WORKS = (
    _work("python", "An index of a text, all objects from malloc",
        _reads("python3 -S", "words.py"), {"lines": 40_000}, packages="python3",
        variables={**PYTHON, "PYTHONMALLOC": "malloc"}),
    _work("perl", "Hashes of hashes of lists", _reads("perl", "words.pl"), {"lines": 60_000},
        variables={"PERL_HASH_SEED": "0"}),
    _work("sqlite", "JSON in tables in memory",
        batch(words("sqlite3 -batch :memory:", f".read '{SCRIPTS / 'types.sql'}'")), {"lines": 1},
        packages="sqlite3"),
    row("redis", "Lists, sets, sorted sets and hashes, filled and emptied", _redis,
        {"requests": 60_000}, packages="redis-server redis-tools",
        executables="redis-server redis-cli redis-benchmark", judged=JUDGED, brings="jemalloc"),
    _work("gcc", "One long C file, with -O2", _shell('gcc -O2 -w -c "$0/all.c" -o all.o', "*.o"),
        {"lines": 14_000}, proof="gcc -c -x c /dev/null -o /dev/null", of="gcc cc1 as", make=_gcc),
    _work("git", "Commits, packs, differences", _shell(GIT), {"lines": 8000}, variables=NOBODY),
    _work("ruby", "Records, grouped and sorted",
        _reads("ruby --disable-gems", "words.rb"), {"lines": 40_000}, of="libruby*.so*"),
    _work("node", "Buffers cut, packed and joined",
        _reads("node --single-threaded-gc", "texts.js"), {"lines": 300_000},
        packages="nodejs", executables="node"),
    _work("lua", "A tree of letters", _reads("lua5.4", "words.lua"), {"lines": 30_000},
        packages="lua5.4", proof="lua5.4 -v"),
    _work("php", "Arrays of arrays, all from malloc",
        _reads("php -n -d memory_limit=-1", "words.php"), {"lines": 40_000},
        packages="php-cli", executables="php", proof="php -n --version", of="php*",
        variables={"USE_ZEND_ALLOC": "0"}),
    _work("jq", "Records parsed, grouped and written",
        batch(words("jq -s -c", JQ, "@INPUTS@/text")), {"lines": 40_000}, of="libjq.so*",
        make=_records),
    _work("xz", "An archive packed by two threads, and unpacked",
        _shell(XZ), {"lines": 60_000}, packages="xz-utils", executables="xz", of="liblzma.so*"),
    _work("make", "A makefile of many rules", _shell(MAKE), {"lines": 9000}),
    _work("cmake", "Lists and strings of a script",
        batch(words("cmake -DTEXT=@INPUTS@/text -P", str(SCRIPTS / "strings.cmake"))),
        {"lines": 16_000}),
    _work("ghostscript", "Pages of text and curves to pictures", _shell(GHOSTSCRIPT, "*.ppm"),
        {"lines": 30_000}, executables="gs", of="libgs.so*", make=_drawing),
    _work("bash", "A shell's tables", _reads("bash", "words.sh"), {"lines": 12_000}),
    _work("gawk", "Tables of words", _reads("gawk -f", "words.awk"), {"lines": 30_000}),
    _work("tcl", "Dictionaries of lists", _reads("tclsh", "words.tcl"), {"lines": 50_000},
        executables="tclsh", proof="tclsh /dev/null", of="libtcl*.so*"),
)
# fmt: on
