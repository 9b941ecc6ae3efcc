"""Languages beyond the light ones: a script each, of many kinds of data, threads and collection."""

from __future__ import annotations

from pathlib import Path

from tests.programs import inputs
from tests.programs.harness import SCRIPTS, Case, Run, nothing, script

PYTHON = "/usr/bin/python3"
LANGUAGES = "languages"
PYTHON_ENV = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
PYTHON_TESTS = (
    "test_list", "test_dict", "test_set", "test_tuple", "test_bytes",
    "test_array", "test_deque", "test_heapq", "test_sort", "test_unicode", "test_format",
    "test_re", "test_json", "test_pickle", "test_marshal", "test_struct", "test_memoryview",
    "test_gc", "test_generators", "test_coroutines", "test_descr", "test_collections",
    "test_functools", "test_copy", "test_zlib", "test_memoryio", "test_csv", "test_fractions",
    "test_long", "test_thread", "test_threading", "test_queue", "test_fork1", "test_context",
    "test_ctypes", "test_mmap", "test_asyncio.test_queues",
)  # fmt: skip


def python_tests(run: Run) -> None:
    command = (PYTHON, str(SCRIPTS / "python_tests.py"))
    run.step("tests", *command, *PYTHON_TESTS, watch=True, seconds=600)


def awk_lines(folder: Path) -> None:
    inputs.lines(folder / "lines", 150_000)


def gawk(run: Run) -> None:
    lines = run.input / "lines"
    run.step("script", "gawk", "-f", str(SCRIPTS / "work.awk"), stdin=lines, watch=True)
    run.step("utf8", "gawk", '{ print length($0), toupper($3) | "sort | uniq -c" }', stdin=lines)


def java(run: Run) -> None:
    compiler = ("javac", "-J-XX:TieredStopAtLevel=1", "-d", ".")
    run.step("compile", *compiler, str(SCRIPTS / "java" / "Work.java"), watch=True)
    run.step("threads", "java", "-Xmx512m", "-XX:+UseG1GC", "Work", watch=True, seconds=300)
    run.step("serial", "java", "-Xmx256m", "-XX:+UseSerialGC", "-Xint", "-version", compared=False)


def erlang(run: Run) -> None:
    run.step("compile", "erlc", str(SCRIPTS / "work.erl"))
    start = ("erl", "+Mea", "min", "+S", "2", "-noshell", "-pa", ".", "-s", "work", "main")
    run.step("script", *start, seconds=300)


def chicken(run: Run) -> None:
    source = str(SCRIPTS / "work_chicken.scm")
    run.step("compile", "csc", "-O2", "-o", "work", source)
    run.step("compiled", "./work", "40", watch=True)
    run.step("interpreted", "csi", "-s", source, "4", watch=True)


def mono(run: Run) -> None:
    libraries = ("-r:System.Core.dll", "-r:System.Numerics.dll")
    run.step("compile", "mcs", *libraries, "-out:work.exe", str(SCRIPTS / "work_mono.cs"))
    run.step("script", "mono", "work.exe", watch=True)


CASES = (
    Case(
        "python-tests", (PYTHON,), nothing, python_tests, (PYTHON, "-c", "1"), ("python3",),
        env=PYTHON_ENV, packages=("libpython3.11-testsuite", "python3"), group=LANGUAGES,
        what=f"{len(PYTHON_TESTS)} modules of its own tests: collections, pickle, io, gc, threads",
        note="the outcome of each test",
    ),
    Case(
        "numpy", (PYTHON, "/usr/lib/python3/dist-packages/numpy/version.py"), nothing,
        script(PYTHON, file="work_numpy.py"), (PYTHON, "-c", "import numpy"), ("python3",),
        env={**PYTHON_ENV, "OPENBLAS_NUM_THREADS": "2"}, packages=("python3-numpy",),
        group=LANGUAGES, what="sorting, products, solving, records, text, arrays in four threads",
        note="floating point to ten digits",
    ),
    Case(
        "ruby", ("ruby",), nothing, script("ruby", file="work.rb"), ("ruby", "-e", "1"),
        group=LANGUAGES, what="structures, threads, fibers, forks; collection with compaction",
    ),
    Case(
        "php", ("php",), nothing, script("php", "-n", "-d", "memory_limit=-1", file="work.php"),
        ("php", "-n", "-r", "1;"), env={"USE_ZEND_ALLOC": "0"}, packages=("php-cli",),
        group=LANGUAGES, what="arrays, cycles, JSON, a priority queue; its own pools off",
        note="without extensions: php opens them bound to the system's malloc (RTLD_DEEPBIND), "
        "which no preloaded malloc survives",
    ),
    Case(
        "r", ("Rscript",), nothing, script("Rscript", "--vanilla", file="work.R"),
        ("Rscript", "--vanilla", "-e", "1"), ("R",), env={"OPENBLAS_NUM_THREADS": "1"},
        packages=("r-base-core",), group=LANGUAGES,
        what="data frames, models, matrices, environments", note="nine digits of results",
    ),
    Case(
        "octave", ("octave-cli",), nothing,
        script("octave-cli", "--no-init-file", "--no-history", file="work.m"),
        ("octave-cli", "--version"), env={"OPENBLAS_NUM_THREADS": "1"}, group=LANGUAGES,
        what="matrices, cells, strings, sparse matrices, maps", note="rounded results",
    ),
    Case(
        "gawk", ("gawk",), awk_lines, gawk, ("gawk", "BEGIN { x[1] }"), ("gawk",),
        packages=("gawk",), group=LANGUAGES, what="150,000 lines: nested arrays, gensub, sorting",
    ),
    Case(
        "tcl", ("tclsh",), nothing, script("tclsh", file="work.tcl"), ("tclsh", "/dev/null"),
        group=LANGUAGES, what="dictionaries, procedures, 60 interpreters, 400 coroutines, zlib",
    ),
    Case(
        "guile", ("guile",), nothing, script("guile", "--no-auto-compile", file="work.scm"),
        ("guile", "--no-auto-compile", "-c", "1"), ("guile",), packages=("guile-3.0",),
        group=LANGUAGES, what="hash tables, big numbers, threads, trees",
    ),
    Case(
        "sbcl", ("sbcl",), nothing, script("sbcl", "--script", file="work.lisp"),
        ("sbcl", "--version"), ("sbcl",), packages=("sbcl",), group=LANGUAGES,
        what="hash tables, functions compiled at run time, 300,000 foreign blocks",
    ),
    Case(
        "erlang", ("erl", "erlc"), nothing, erlang,
        ("erl", "+Mea", "min", "-noshell", "-eval", "halt(0)."), ("beam.smp",),
        packages=("erlang-base",), group=LANGUAGES,
        what="200 processes in a ring, tables, maps, zlib; allocators of its own off",
    ),
    Case(
        "swi-prolog", ("swipl",), nothing,
        script("swipl", "-q", "-f", "none", "-g", "main", file="work_prolog.pl"),
        ("swipl", "-q", "-f", "none", "-g", "halt"), ("swipl",),
        packages=("swi-prolog-core", "libtcmalloc-minimal4"), group=LANGUAGES,
        what="facts, tabling, grammars, trees, atoms and their collection, threads with queues",
        note="without hakmem on tcmalloc, with which it is linked",
    ),
    Case(
        "chicken", ("csc", "csi", "gcc"), nothing, chicken, ("csi", "-e", "1"), ("csi",),
        packages=("chicken-bin", "gcc", "libc6-dev"), group=LANGUAGES,
        what="compiled there, then interpreted: strings, trees, continuations, foreign blocks",
    ),
    Case(
        "mono", ("mono", "mcs"), nothing, mono, ("mono", "--version"), ("mono",),
        may_differ=("work.exe", ".*"),
        packages=("mono-runtime", "mono-mcs", "libmono-system-numerics4.0-cil"), group=LANGUAGES,
        what="compiled there; unmanaged blocks, methods made at run time, LINQ, threads, tasks",
        note="the compiled program, which holds a random identifier",
    ),
    Case(
        "java", ("java", "javac"), nothing, java, ("java", "-version"), ("libjvm.so",),
        packages=("default-jdk-headless",), group=LANGUAGES,
        what="compiled there; direct buffers and zlib in six threads, 300 threads, streams",
    ),
)  # fmt: skip
