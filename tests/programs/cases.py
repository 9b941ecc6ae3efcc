"""The programs under test: what each does, and where its malloc is proved to be the library's."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.programs import inputs
from tests.programs.case_redis import REDIS
from tests.programs.harness import Case, Run, nothing, script

PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable


def ls(run: Run) -> None:
    run.step("tree", "ls", "-lAR", "--time-style=full-iso", str(run.input / "tree"))
    run.step("columns", "ls", "-CRF", "--sort=size", str(run.input / "tree"))
    if Path("/usr/share/doc").is_dir():
        run.step("documents", "ls", "-lR", "--time-style=full-iso", "/usr/share/doc")


def sqlite(run: Run) -> None:
    run.step("script", "sqlite3", "-batch", "rows.db", stdin=run.input / "rows.sql", watch=True)
    run.step("dump", "sqlite3", "-batch", "-readonly", "rows.db", ".dump item")


def xz(run: Run) -> None:
    source = str(run.input / "data")
    run.step("compress", "xz", "-T2", "-3", "--block-size=1MiB", "-kc", source, watch=True)
    packed = run.outputs / "01-compress.stdout"
    run.step("expand", "xz", "-T2", "-dc", stdin=packed)
    run.step("alone", "xz", "-T1", "-1", "-kc", source, watch=True)


def gcc(run: Run) -> None:
    sources = sorted((run.input).glob("*.c"))
    for source in sources:
        run.step(source.stem, "gcc", "-O2", "-g", "-c", str(source), "-o", f"{source.stem}.o")
    run.step("link", "gcc", *(f"{source.stem}.o" for source in sources), "-o", "program")
    run.step("result", "./program")
    # Names of link-time objects hold a random number unless it is given.
    whole = ("-O2", "-flto", "-frandom-seed=1", *map(str, sources))
    run.step("whole", "gcc", *whole, "-o", "whole-program")
    run.step("whole-result", "./whole-program")


def gxx(run: Run) -> None:
    run.step("compile", "g++", "-O1", str(run.input / "main.cc"), "-o", "program")
    run.step("result", "./program")


def git(run: Run) -> None:
    run.step("init", "git", "init", "-q", "one")
    run.step("import", "git", "-C", "one", "fast-import", "--quiet", stdin=run.input / "history")
    run.step("checkout", "git", "-C", "one", "checkout", "-q", "-f", "main")
    for number in range(12):
        for name in ("new", "other"):
            with (run.work / "one" / f"{name}.txt").open("a") as file:
                file.write(f"line {number} of {name}\n" * 50)
        run.step(f"add-{number}", "git", "-C", "one", "add", ".")
        run.step(f"commit-{number}", "git", "-C", "one", "commit", "-q", "-m", f"step {number}")
    run.step("branch", "git", "-C", "one", "checkout", "-q", "-b", "side", "HEAD~40")
    (run.work / "one" / "side.txt").write_text("on the side\n")
    run.step("side-add", "git", "-C", "one", "add", ".")
    run.step("side-commit", "git", "-C", "one", "commit", "-q", "-m", "on the side")
    run.step("merge", "git", "-C", "one", "merge", "-q", "-m", "join", "main")
    run.step("clone", "git", "clone", "-q", f"file://{run.work}/one", "two")
    run.step("gc", "git", "-C", "two", "gc", "-q", "--aggressive")
    run.step("fsck", "git", "-C", "two", "fsck", "--full", "--strict", "--no-progress")
    run.step("log", "git", "-C", "two", "log", "-p", "--stat", "--topo-order", watch=True)
    objects = ("cat-file", "--batch", "--batch-all-objects")
    run.step("objects", "git", "-C", "two", *objects)
    run.step("blame", "git", "-C", "two", "blame", "-s", "slab/shard.txt")
    run.step("grep", "git", "-C", "two", "grep", "-n", "-E", "changed [0-9]+9 ")


GIT_ENV = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "5",
    "GIT_CONFIG_KEY_0": "pack.threads",
    "GIT_CONFIG_VALUE_0": "2",
    "GIT_CONFIG_KEY_1": "gc.auto",
    "GIT_CONFIG_VALUE_1": "0",
    "GIT_CONFIG_KEY_2": "init.defaultBranch",
    "GIT_CONFIG_VALUE_2": "main",
    "GIT_CONFIG_KEY_3": "gc.autoDetach",
    "GIT_CONFIG_VALUE_3": "false",
    "GIT_CONFIG_KEY_4": "safe.directory",
    "GIT_CONFIG_VALUE_4": "*",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": "1700100000 +0000",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_COMMITTER_DATE": "1700100000 +0000",
}
# What two threads pack lies in an order of theirs, and an index holds inodes and times; the
# objects themselves are compared through `cat-file`.
GIT_MAY_DIFFER = ("*/.git/objects/pack/*", "*/.git/index", "*/.git/gc.log*")

LANGUAGES, TOOLS = "languages", "tools"
COMPILERS, VERSIONS = "compilers and builds", "versions and archives"

CASES = (
    Case(
        "ls", ("ls",), inputs.tree, ls, ("ls", "-laR", "."), ("ls",),
        packages=("coreutils",), group=TOOLS, what="long and sorted lists of 9,000 files",
    ),
    Case(
        "bash", ("bash",), nothing, script("bash", file="work.sh"),
        ("bash", "-c", "x=$(echo a | cat)"), ("bash", "cat"), group=LANGUAGES,
        what="arrays, strings, 100s of subshells, a coprocess",
    ),
    Case(
        "git", ("git",), lambda folder: inputs.history(folder / "history", 800), git,
        ("git", "init", "-q", "proof"), ("git",), GIT_MAY_DIFFER, GIT_ENV, group=VERSIONS,
        what="import of 800 commits, commits, merge, clone, gc, fsck, log, blame, grep",
        note="objects are compared, not the packs that two threads made of them",
    ),
    Case(
        "gcc", ("gcc",), lambda folder: inputs.c_project(folder, 7), gcc,
        ("gcc", "@INPUT@/main.c", "-c"), ("gcc", "cc1", "as"),
        packages=("gcc",), group=COMPILERS, what="a small C project, at link time too; run",
    ),
    Case(
        "gxx", ("g++",), inputs.cxx_project, gxx,
        ("g++", "-fsyntax-only", "@INPUT@/main.cc"), ("g++", "cc1plus"),
        packages=("g++",), group=COMPILERS, what="templates of the standard library; run",
    ),
    Case(
        "perl", ("perl",), nothing, script("perl", file="work.pl"), ("perl", "-e", "1"),
        env={"PERL_HASH_SEED": "0"}, group=LANGUAGES,
        what="hashes, strings, sorting, regular expressions",
    ),
    Case(
        "python", (PYTHON,), nothing, script(PYTHON, file="work.py"), (PYTHON, "-c", "1"),
        (Path(PYTHON).name,),
        env={"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
        packages=("python3",), group=LANGUAGES, what="structures, JSON, threads, a pool by fork",
    ),
    Case(
        "lua", ("lua5.4",), nothing, script("lua5.4", file="work.lua"), ("lua5.4", "-e", "x = {}"),
        packages=("lua5.4",), group=LANGUAGES, what="tables, strings, closures, coroutines",
    ),
    Case(
        "sqlite", ("sqlite3",), lambda folder: inputs.sql(folder / "rows.sql", 100_000), sqlite,
        ("sqlite3", ":memory:", "select 1"), packages=("sqlite3",), group="servers and databases",
        what="100,000 rows: indexes, joins, windows, triggers, VACUUM, dump",
    ),
    Case(
        "node", ("node",), nothing, script("node", file="work.js"), ("node", "-e", "1"), ("node",),
        packages=("nodejs",), group=LANGUAGES, what="zlib on the pool, four workers, JSON",
    ),
    Case(
        "xz", ("xz",), lambda folder: inputs.compressible(folder / "data", 12), xz,
        ("xz", "-T2", "-kc", "@INPUT@/data"), ("xz",),
        packages=("xz-utils",), group=VERSIONS, what="12 MiB packed by two threads, and unpacked",
    ),
    REDIS,
)  # fmt: skip
