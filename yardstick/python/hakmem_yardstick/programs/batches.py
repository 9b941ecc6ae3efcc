"""Programs that are started, work and end."""

from __future__ import annotations

from hakmem_yardstick.programs import inputs
from hakmem_yardstick.programs.program import Place, Ran, Run, batch, made, row, words

PYTHON = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
# z3's own counters of what it did: only its memory and its time may differ.
Z3_MAY_DIFFER = (b"memory", b"time")
COMPILE_ALL = """for f in "$0"/*.c; do gcc -O1 -fPIC -c "$f" || exit; done
gcc -shared *.o -o all.so"""
PAGES = """gs -q -dBATCH -dNOPAUSE -dSAFER -sDEVICE=pdfwrite -o pages.pdf "$0" &&
gs -q -dBATCH -dNOPAUSE -dSAFER -sDEVICE=pgmraw -r40 -o page%03d.pgm pages.pdf"""


def _script(interpreter: str, file: str, *options: str) -> Run:
    return batch(words(interpreter, *options, f"@SCRIPTS@/{file}", "@turns@"))


def _z3(place: Place) -> Ran:
    command = words("z3 smt.random_seed=1 -st @INPUTS@/questions.smt2")
    measured = place.measure(command(place))
    lines = measured.stdout.encode().splitlines()
    kept = [line for line in lines if not any(word in line for word in Z3_MAY_DIFFER)]
    return Ran(measured, kept)


# fmt: off
PROGRAMS = (
    row("python-malloc",
        "Every object of CPython from malloc: small blocks by the million, most short-lived",
        _script("python3", "objects.py", "-S"), {"turns": 3}, packages="python3",
        proof="python3 -S -c 1", own="none, with PYTHONMALLOC=malloc",
        variables={**PYTHON, "PYTHONMALLOC": "malloc"}, tier="quick"),
    row("python", "The same as users run it: malloc gets only what is above 512 bytes",
        _script("python3", "objects.py", "-S"), {"turns": 3}, packages="python3",
        proof="python3 -S -c 1",
        own="pymalloc has all blocks up to 512 bytes, in arenas of 1 MiB from mmap",
        variables=PYTHON),
    row("lua",
        "Tables, strings and closures under a collector that calls realloc and free for each",
        _script("lua5.4", "objects.lua"), {"turns": 2}, packages="lua5.4", proof="lua5.4 -v",
        own="none"),
    row("ruby",
        "Strings, arrays and hashes whose contents are malloc's, their heads the collector's",
        _script("ruby", "objects.rb", "--disable-gems"), {"turns": 3},
        proof="ruby --disable-gems -e 1", of="libruby*.so*",
        own="heads of objects, up to 40 bytes, lie in pages of 64 KiB from mmap or posix_memalign"),
    row("perl", "Hashes of arrays of strings, matching, sorting; reference counts free at once",
        _script("perl", "objects.pl"), {"turns": 2}, proof="perl -e 1",
        own="heads of values come from arenas of 4 KiB that it never gives back",
        variables={"PERL_HASH_SEED": "0"}),
    row("node", "Buffers of 5 to 100 KiB and zlib's states, beside objects in a heap of its own",
        _script("node", "buffers.js", "--single-threaded-gc"), {"turns": 6}, packages="nodejs",
        executables="node", proof="node -e 1",
        own="V8 maps its heap itself: malloc has buffers, zlib, parsing and compiling",
        judged=("cpu", "peak")),
    row("sqlite", "A database in memory is built, indexed, sorted, joined and changed",
        batch(words("sqlite3 -batch :memory:", ".read '@INPUTS@/rows.sql'")), {"rows": 80_000},
        packages="sqlite3", make=made(inputs.sql, "rows.sql", "rows"),
        own="lookaside: slots for a connection's smallest and shortest-lived blocks"),
    row("gcc-small",
        "Many short processes, as in every build: what an allocator costs before it is warm",
        batch(words("sh -c", COMPILE_ALL, "@INPUTS@"), "*.[os]*"), {"files": 24},
        packages="gcc binutils", executables="gcc sh",
        proof="gcc -c @INPUTS@/file_000.c -o /dev/null", of="gcc cc1 as",
        own="trees lie in pages of its own collector, lists in obstacks of some KiB from malloc",
        make=made(inputs.c_files, "", "files")),
    row("g++-large", "One file full of templates: a process that grows to some 170 MiB and ends",
        batch(words("g++ -O1 -c @INPUTS@/large.cc"), "*.o"), {"kinds": 2}, packages="g++",
        proof="g++ -c -x c++ /dev/null -o /dev/null", of="g++ cc1plus as", own="as gcc",
        make=made(inputs.cxx_file, "large.cc", "kinds")),
    row("z3",
        "Questions to a solver: tables that grow, trails that go back, many types of small block",
        _z3, {"rounds": 40},
        own="blocks up to 256 bytes of one kind lie in regions of 8 KiB from malloc",
        make=made(inputs.smt, "questions.smt2", "rounds")),
    row("ghostscript",
        "PostScript to PDF, and the PDF to pictures: an interpreter with fonts and bands",
        batch(words("sh -c", PAGES, "@INPUTS@/pages.ps"), "*.pgm"), {"pages": 180},
        executables="gs sh", proof="gs -q -dBATCH -dNODISPLAY -c quit", of="libgs.so*",
        own="its objects lie in chunks of some ten KiB from malloc",
        make=made(inputs.postscript, "pages.ps", "pages")),
    row("zstd", "Few and large blocks, taken and given back by two threads",
        batch(words("zstd -T2 -9 -q @INPUTS@/data -o data.zst"), "*.zst"),
        {"mebibytes": 96}, proof="zstd -q -c /etc/hostname",
        own="a pool of buffers, each of some MiB",
        make=made(inputs.compressible, "data", "mebibytes"), threads=2, judged=("cpu", "peak")),
)
# fmt: on
