"""Programs that build others: compilers, linkers, build systems and makers of code."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.programs import inputs, inputs_build
from tests.programs.harness import Case, Run


def clang(run: Run) -> None:
    sources = sorted(run.input.glob("*.c"))
    for source in sources:
        run.step(source.stem, "clang", "-O2", "-g", "-c", str(source), "-o", f"{source.stem}.o")
    run.step("link", "clang", *(f"{source.stem}.o" for source in sources), "-o", "program")
    run.step("result", "./program")
    run.step("analyze", "clang", "--analyze", "--analyzer-output", "text", str(sources[0]))


def precompiled(run: Run, compiler: str, *options: str) -> None:
    """A precompiled header (gcc maps it where it lay), and the units that use it."""
    shutil.copy(run.input / "common.h", run.work)
    header = "common.h.gch" if compiler == "g++" else "common.h.pch"
    run.step("header", compiler, *options, "-x", "c++-header", "common.h", "-o", header, watch=True)
    include = ("-include", "common.h") if compiler == "g++" else ("-include-pch", header)
    for source in sorted(run.input.glob("*.cc")):
        words = (compiler, *options, *include, "-c", str(source), "-o", f"{source.stem}.o")
        run.step(source.stem, *words)
    units = sorted(path.name for path in run.work.glob("*.o"))
    run.step("link", compiler, *units, "-pthread", "-o", "program")
    run.step("result", "./program")


def gxx_pch(run: Run) -> None:
    precompiled(run, "g++", "-std=c++17", "-O1", "-Winvalid-pch")


def clangxx(run: Run) -> None:
    precompiled(run, "clang++", "-std=c++17", "-O1", "-Xclang", "-fno-pch-timestamp")


def ld(run: Run) -> None:
    linked(run, "bfd", "-Wl,--sort-section=name", "-Wl,--compress-debug-sections=zlib")


def gold(run: Run) -> None:
    linked(run, "gold", "-Wl,--threads", "-Wl,--thread-count=2", "-Wl,--icf=all")


def lld(run: Run) -> None:
    linked(run, "lld", "-Wl,--threads=2", "-Wl,--icf=all", "-Wl,-O2")


def mold(run: Run) -> None:
    linked(run, "mold", "-Wl,--thread-count=2", "-Wl,--icf=all")


def linked(run: Run, linker: str, *options: str) -> None:
    """The same objects as a program, one without what is not reached, a library and an object."""
    parts = [str(path) for path in sorted(run.input.glob("*.o"))]
    gcc = ("gcc", f"-fuse-ld={linker}", *parts)
    run.step("whole", *gcc, "-pie", "-Wl,-Map=whole.map", "-o", "whole", watch=True)
    run.step("small", *gcc, "-pie", *options, "-Wl,--gc-sections,-s", "-o", "small")
    run.step("library", *gcc, "-shared", "-Wl,--build-id=sha1", "-o", "library.so")
    run.step("object", *gcc, "-r", "-nostdlib", "-o", "one.o")
    run.step("whole-result", "./whole")
    run.step("small-result", "./small")


def thinlto(run: Run) -> None:
    """Optimisation at link time in lld, two files at a time."""
    sources = [str(path) for path in sorted(run.input.glob("*.c"))]
    thin = ("clang", "-O2", "-flto=thin")
    for number, source in enumerate(sources):
        run.step(f"compile-{number}", *thin, "-c", source, "-o", f"{number}.o")
    units = [f"{number}.o" for number in range(len(sources))]
    run.step("link", *thin, "-fuse-ld=lld", "-Wl,--thinlto-jobs=2", *units, "-o", "program")
    run.step("result", "./program")


def binutils(run: Run) -> None:
    sources = [str(path) for path in sorted(run.input.glob("*.c"))]
    run.step("program", "gcc", "-O1", "-g", *sources, "-o", "program")
    run.step("disassemble", "objdump", "-d", "-S", "-l", "-r", "program", watch=True)
    run.step("read", "readelf", "-a", "-W", "--debug-dump=info,line,frames", "program")
    run.step("names", "nm", "-C", "-S", "-l", "program")
    run.step("compress", "objcopy", "--compress-debug-sections", "program", "small")
    run.step("expand", "objcopy", "--decompress-debug-sections", "small", "large")
    run.step("strip", "strip", "-g", "large", "-o", "stripped")
    run.step("archive", "ar", "rcsD", "all.a", "program", "small", "stripped")
    places = map(hex, range(0x1100, 0x9000, 9))
    run.step("where", "addr2line", "-f", "-i", "-e", "program", *places)


def gdb(run: Run) -> None:
    sources = [str(path) for path in sorted(run.input.glob("*.c"))]
    run.step("program", "gcc", "-O0", "-g3", *sources, "-o", "program")
    # Nothing it prints holds an address of the program's own data, only of its text.
    run.step("batch", "gdb", "-nx", "-q", "-batch", "-x", str(run.input / "commands"), "program")


GDB_COMMANDS = """set pagination off
set confirm off
set debuginfod enabled off
set print address off
set print inferior-events off
info functions
info types
info scope main
list main
break main
run
bt
next 4
info locals
break part_3 if n > 2
ignore 2 12
continue
bt
info args
finish
python
import gdb
rows = {}
for n in range(20000):
    value = gdb.parse_and_eval(f"(table[{n % 200}] ^ {n}) % 1009")
    rows.setdefault(int(value), []).append(str(value.type))
print(len(rows), sum(len(r) for r in rows.values()))
end
kill
"""


def gdb_input(folder: Path) -> None:
    inputs.c_project(folder, 8)
    (folder / "commands").write_text(GDB_COMMANDS)


def rustc(run: Run) -> None:
    options = ("-C", "opt-level=2", "-C", "codegen-units=4", "-g", "--edition=2021")
    run.step("compile", "rustc", *options, str(run.input / "main.rs"), "-o", "program", watch=True)
    run.step("result", "./program")


def go(run: Run) -> None:
    shutil.copytree(run.input, run.work, dirs_exist_ok=True)
    run.step("build", "go", "build", "-trimpath", "-o", "program", ".")
    run.step("result", "./program", watch=True)


def cmake_ninja(run: Run) -> None:
    built_by_cmake(run, "Ninja", "ninja", "-C", "build", "--quiet", "-j2")


def cmake_make(run: Run) -> None:
    # Rules' messages come in the order in which two jobs finish.
    built_by_cmake(run, "Unix Makefiles", "make", "-C", "build", "-sj2", "--no-print-directory")


def built_by_cmake(run: Run, generator: str, *build: str) -> None:
    settings = (
        "-DCMAKE_RULE_MESSAGES=OFF",
        "-DCMAKE_TARGET_MESSAGES=OFF",
        "-DCMAKE_BUILD_TYPE=Debug",
    )
    run.step("configure", "cmake", "-S", str(run.input), "-B", "build", "-G", generator, *settings)
    run.step("build", *build)
    # ctest prints times.
    run.step("test", "ctest", "--test-dir", "build", "-j2", "-Q")
    run.step("install", "cmake", "--install", "build", "--prefix", "installed")
    run.step("result", "installed/bin/main")


def make(run: Run) -> None:
    run.step("all", "make", "-s", "-j2", "-f", str(run.input / "Makefile"), watch=True)
    run.step("again", "make", "-q", "-f", str(run.input / "Makefile"))
    # Of the database, the rules alone: it also holds the environment and the time.
    rules = "make -pn -f $0 | grep -E '^(target|sums|%|all)'"
    run.step("rules", "sh", "-c", rules, str(run.input / "Makefile"))


def protoc(run: Run) -> None:
    schemas = [path.name for path in sorted(run.input.glob("*.proto"))]
    for kind in ("cpp", "java", "python", "csharp", "ruby", "php", "objc"):
        (run.work / kind).mkdir()
        run.step(kind, "protoc", f"-I{run.input}", f"--{kind}_out={kind}", *schemas)
    flags = ("--include_imports", "--include_source_info", "--descriptor_set_out=all")
    run.step("descriptors", "protoc", f"-I{run.input}", *flags, *schemas, watch=True)
    run.step("decode", "protoc", "--decode_raw", stdin=run.work / "all")


def bison(run: Run) -> None:
    source = str(run.input / "grammar.y")
    run.step("lalr", "bison", "-o", "lalr.c", "-d", "--report=states", source, watch=True)
    run.step("lr1", "bison", "-Dlr.type=ielr", "-o", "ielr.c", "--graph", source)


CMAKE_MAY_DIFFER = (
    "build/CMakeFiles/*",  # logs name the random folders of the compiler checks
    "build/.ninja_*",  # times
    "build/Testing/*",
    "build/Makefile*",
)

BUILDS = "compilers and builds"
LINKED = "72,000 sections: a program, one without what is unused, a library, an object"

CASES = (
    Case(
        "clang", ("clang",), lambda folder: inputs.c_project(folder, 6), clang,
        proof=("clang", "-c", "@INPUT@/main.c"), group=BUILDS,
        what="six C files optimised, linked, run, one analysed",
    ),
    Case(
        "gxx-pch", ("g++",), lambda folder: inputs_build.cxx_units(folder, 2), gxx_pch,
        proof=("g++", "-fsyntax-only", "-std=c++17", "@INPUT@/common.h"), proof_of=("cc1plus",),
        may_differ=("common.h.gch",),  # an image of the compiler's memory, addresses and all
        packages=("g++",), group=BUILDS, what="templates with a precompiled header; run",
        note="the precompiled header holds addresses",
    ),
    Case(
        "clangxx", ("clang++",), lambda folder: inputs_build.cxx_units(folder, 2), clangxx,
        proof=("clang++", "-c", "-std=c++17", "@INPUT@/main.cc"), packages=("clang",), group=BUILDS,
        what="templates with a precompiled header; run",
    ),
    *(
        Case(
            name, ("gcc", "as", f"ld.{suffix}"),
            lambda folder: inputs_build.objects(folder, 24, 3000), steps,
            proof=("gcc", f"-fuse-ld={suffix}", "-r", "-nostdlib", "@INPUT@/main.o"),
            proof_of=(f"ld.{suffix}",),
            packages=(package, "gcc"), group=BUILDS, what=LINKED, own=own,
        )
        for name, suffix, steps, package, own in (
            ("ld", "bfd", ld, "binutils", ""), ("gold", "gold", gold, "binutils", ""),
            ("lld", "lld", lld, "lld", ""), ("mold", "mold", mold, "mold", "mimalloc"),
        )
    ),
    Case(
        "thinlto", ("clang", "ld.lld"), lambda folder: inputs.c_project(folder, 6), thinlto,
        proof=("clang", "-flto=thin", "-fuse-ld=lld", "-nostdlib", "-shared", "@INPUT@/main.c"),
        proof_of=("ld.lld",), packages=("lld", "clang"), group=BUILDS,
        what="optimises six files while it links them, two at a time",
    ),
    Case(
        "binutils", ("objdump", "readelf", "gcc"), lambda folder: inputs.c_project(folder, 10),
        binutils, proof=("sh", "-c", "objdump -f $0; nm $0; readelf -h $0", "/bin/ls"),
        proof_of=("objdump", "readelf"), packages=("binutils", "gcc"), group=BUILDS,
        what="objdump, readelf, nm, objcopy, strip, ar, addr2line",
    ),
    Case(
        "gdb", ("gdb", "gcc"), gdb_input, gdb, proof=("gdb", "-nx", "-batch", "-ex", "print 1"),
        packages=("gdb", "gcc"), group=BUILDS,
        what="symbols, breakpoints, backtraces, Python, of a C program",
    ),
    Case(
        "rustc", ("/usr/bin/rustc", "gcc"), lambda folder: inputs_build.rust(folder, 150), rustc,
        proof=("rustc", "--version"), proof_of=("rustc",), group=BUILDS,
        what="150 derived types, a program of five threads; run",
    ),
    Case(
        "go-cgo", ("go", "gcc"), inputs_build.go, go,
        proof=("sh", "-c", "cp @INPUT@/* . && go build -o program . && ./program"),
        proof_of=("program",),
        may_differ=(".cache/*", ".config/*", "go/*"),  # hashes and times
        env={
            "CGO_ENABLED": "1", "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local",
            "GOMAXPROCS": "2", "GOTELEMETRY": "off",
        },
        packages=("golang-go", "gcc"), group=BUILDS,
        what="a Go program whose goroutines malloc and free in C",
    ),
    Case(
        "cmake-ninja", ("cmake", "ninja", "gcc", "g++"),
        lambda folder: inputs_build.cmake(folder, 40), cmake_ninja,
        proof=("sh", "-c", "cmake --version; ninja --version"), proof_of=("cmake", "ninja"),
        may_differ=CMAKE_MAY_DIFFER, packages=("ninja-build", "cmake", "gcc", "g++"), group=BUILDS,
        what="configure, build, test and install 40 libraries", note="logs and files of times",
    ),
    Case(
        "cmake-make", ("cmake", "make", "gcc", "g++"),
        lambda folder: inputs_build.cmake(folder, 40), cmake_make,
        proof=("sh", "-c", "cmake --version; make --version"), proof_of=("cmake", "make"),
        may_differ=CMAKE_MAY_DIFFER, packages=("cmake", "make", "gcc", "g++"), group=BUILDS,
        what="configure, build, test and install 40 libraries", note="logs and files of times",
    ),
    Case(
        "make", ("make", "seq", "cksum"),
        lambda folder: inputs_build.makefile(folder / "Makefile", 1500), make,
        proof=("make", "--version"), group=BUILDS,
        what="rules by eval, long lists of words, two jobs",
    ),
    Case(
        "protoc", ("protoc",), lambda folder: inputs_build.protobuf(folder, 16), protoc,
        proof=("protoc", "--descriptor_set_out=all", "-I@INPUT@", "part0.proto"),
        packages=("protobuf-compiler",), group=BUILDS, what="640 messages to seven languages",
    ),
    Case(
        "bison", ("bison", "m4"), lambda folder: inputs_build.grammar(folder / "grammar.y", 250),
        bison, proof=("bison", "@INPUT@/grammar.y"), proof_of=("bison", "m4"),
        packages=("bison", "m4"), group=BUILDS, what="a grammar of 250 statements, LALR and IELR",
    ),
)  # fmt: skip
