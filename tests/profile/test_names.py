"""A planted leak is on top, with the amount that was planted, and with the right functions, files
and lines: of a program at any address and at a fixed one, in a shared library, in C++, stripped
with a separate debug file, and with each of the tools that find names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hakmem import naming, symbols
from hakmem.heap_profile import Mapping, Profile, Site
from hakmem.symbols import Frame, Line, Named
from hakmem.wrappers import Wrappers
from tests.profile.planted import (
    BLOCK,
    KEPT,
    PASSED,
    RATE,
    Planted,
    by_function,
    functions,
    line_of,
    named,
    near,
    profile_of,
)

NO_TOOL = not any(map(shutil.which, ("llvm-symbolizer", "addr2line")))
needs_tool = pytest.mark.skipif(NO_TOOL, reason="needs llvm-symbolizer or addr2line")
FIGURES = (0.0,) * 6


@pytest.mark.parametrize("program", ["profile_plant", "profile_plant_fixed"])
def test_planted(planted: Planted, program: str) -> None:
    profile = named(planted.profile(program))
    assert profile.rate == RATE and not profile.notes
    tops = sorted(profile.stacks, key=lambda one: -one.figures[1])[:2]
    assert {functions(stack)[1] for stack in tops} == {"leak", "leak_in_library"}
    for stack in tops:
        blocks, bytes_, *_ = stack.figures
        assert near(bytes_, KEPT) and near(blocks, KEPT / BLOCK)
        # The stated error is that of so many samples.
        assert stack.errors[1] == pytest.approx((KEPT * RATE) ** 0.5, rel=0.1)
        assert "main" in functions(stack)
    passed = by_function(profile, "pass")
    assert passed.figures[:2] == (0, 0) and near(passed.figures[3], PASSED)
    sums = profile.sums
    assert near(sums[1], 2 * KEPT) and near(sums[3], 2 * KEPT + PASSED) and near(sums[5], 2 * KEPT)


@needs_tool
@pytest.mark.parametrize("program", ["profile_plant", "profile_plant_fixed"])
def test_lines(planted: Planted, program: str) -> None:
    profile = named(planted.profile(program))
    lines = [
        (line.function, Path(line.file).name, line.line)
        for name in ("leak", "leak_in_library")
        for line in by_function(profile, name).lines()[:2]
    ]
    assert lines == [
        ("inlined", "plant.c", line_of("plant.c", "inlined")),
        ("leak", "plant.c", line_of("plant.c", "leak")),
        ("library_keeps", "plant_library.c", line_of("plant_library.c", "library_keeps")),
        ("leak_in_library", "plant.c", line_of("plant.c", "leak_in_library")),
    ]


@needs_tool
def test_cxx(planted: Planted) -> None:
    if not (planted.programs / "profile_plant_cxx").exists():
        pytest.skip("built without a C++ compiler")
    profile = named(planted.profile("profile_plant_cxx"))
    top = max(profile.stacks, key=lambda one: one.figures[1])
    kept, main = top.lines()[:2]
    assert kept.function == "plant::Keeper<plant::Record>::keep()"
    assert Path(kept.file).name == "plant.cc" and kept.line == line_of("plant.cc", "keep")
    assert main.function == "main" and main.line == line_of("plant.cc", "main")
    assert near(top.figures[1], KEPT)


@pytest.mark.parametrize("where", ["build id", "beside", ".debug", "tree", "wrong"])
@needs_tool
@pytest.mark.skipif(not shutil.which("objcopy"), reason="needs objcopy")
def test_separate_debug_file(planted: Planted, tmp_path: Path, where: str) -> None:
    """As distributions strip programs."""
    program = tmp_path / "stripped"
    debug_dir = tmp_path / "debug"
    debug = {
        "build id": debug_dir / "not there",
        "beside": tmp_path / "stripped.debug",
        ".debug": tmp_path / ".debug/stripped.debug",
        "tree": debug_dir / str(tmp_path).lstrip("/") / "stripped.debug",
        "wrong": tmp_path / "stripped.debug",
    }[where]
    whole = planted.programs / "profile_plant"
    build_id = symbols._facts(whole).build_id
    if where == "build id":
        if not build_id:
            pytest.skip("the linker writes no build id")
        debug = debug_dir / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    debug.parent.mkdir(parents=True, exist_ok=True)

    def objcopy(*words: str | Path) -> None:
        subprocess.run(["objcopy", *words], check=True, cwd=debug.parent)

    objcopy("--only-keep-debug", whole, debug)
    link = [] if where == "build id" else [f"--add-gnu-debuglink={debug}"]
    objcopy("--strip-all", *link, whole, program)
    if where == "wrong":
        debug.write_bytes(debug.read_bytes() + b"another")
    shutil.copy(planted.programs / "libprofile_plant_library.so", tmp_path)
    profile = named(
        profile_of(program, planted.library, tmp_path, LD_LIBRARY_PATH=str(tmp_path)),
        debug_dirs=(debug_dir,),
    )
    top = max(profile.stacks, key=lambda one: one.figures[5])
    if where == "wrong":
        assert not any("leak" in functions(stack) for stack in profile.stacks)
        assert any(line.function.startswith("stripped+0x") for line in top.lines())
        return
    leak = by_function(profile, "leak")
    assert near(leak.figures[1], KEPT)
    inlined, outer = leak.lines()[:2]
    assert (inlined.function, inlined.line) == ("inlined", line_of("plant.c", "inlined"))
    assert (outer.function, outer.line) == ("leak", line_of("plant.c", "leak"))


@pytest.mark.parametrize("tool", ["llvm-symbolizer", "addr2line", "none", "broken"])
def test_each_tool(
    planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    """Without one, and where one fails, there are the functions of the symbol table."""
    there = shutil.which(tool)
    if tool == "broken":
        for name in ("llvm-symbolizer", "addr2line"):
            (tmp_path / name).write_text("#!/bin/sh\nkill -ABRT $$\n")
            (tmp_path / name).chmod(0o755)
    elif there is not None:
        (tmp_path / tool).symlink_to(there)
    elif tool != "none":
        pytest.skip(f"there is no {tool}")
    path = planted.profile("profile_plant")
    monkeypatch.setenv("PATH", str(tmp_path) + ("" if tool != "broken" else ":/usr/bin:/bin"))
    leak = by_function(named(path), "leak")
    innermost = leak.lines()[0]
    if there is None:
        assert innermost == Line("leak")
    else:
        assert innermost.function == "inlined" and innermost.line == line_of("plant.c", "inlined")


def test_replaced_and_newer(planted: Planted, tmp_path: Path) -> None:
    path = planted.profile("profile_plant")
    assert not named(path, written=1.0).notes  # the build ids say that it is the same
    unknown = tmp_path / "unknown.heap"
    unknown.write_text(re.sub("# build-id .*\n", "", path.read_text()))
    assert any("newer than the profile" in note for note in named(unknown, written=1.0).notes)
    text = path.read_text().replace("/profile_plant\n", "/profile_plant (deleted)\n")
    replaced = tmp_path / "replaced.heap"
    replaced.write_text(text)
    profile = named(replaced)
    (note,) = profile.notes
    assert "profile_plant: was replaced or removed" in note
    assert any("profile_plant+0x" in name for s in profile.stacks for name in functions(s))
    gone = tmp_path / "gone.heap"
    gone.write_text(text.replace("profile_plant (deleted)", "gone"))
    (note,) = named(gone).notes
    assert "gone: can't be read" in note


def test_files_that_are_none(planted: Planted, tmp_path: Path) -> None:
    """A path in a profile may lead to anything."""
    text = planted.profile("profile_plant").read_text()
    for name, content in (("empty", b""), ("text", b"text"), ("cut", b"\x7fELF\x02\x01\x01")):
        (tmp_path / name).write_bytes(content)
    whole = (planted.programs / "profile_plant").read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("empty", "text", "cut", "half", "folder", "pipe"):
        changed = tmp_path / "changed.heap"
        changed.write_text(
            text.replace(str(planted.programs / "profile_plant") + "\n", f"{tmp_path / name}\n")
        )
        profile = named(changed)
        assert near(max(stack.figures[1] for stack in profile.stacks), KEPT)


def made(*names: str, module: str = "/bin/app") -> list[Frame]:
    where = Mapping(0, 2**40, 0, module, True, False)
    return [Frame(at, where, at, (Line(name),)) for at, name in enumerate(names)]


def test_the_allocator_is_dropped() -> None:
    """At the innermost end only, whole frames and inlined functions."""

    def left(frames: list[Frame]) -> list[str]:
        return [line.function for frame in symbols._callers(frames) for line in frame.shown]

    assert left(made("malloc", "calloc", "wrapper", "malloc", "main")) == [
        "wrapper",
        "malloc",
        "main",
    ]
    assert left(made("operator new(unsigned long)", "f", "main")) == ["f", "main"]
    assert left([*made("anything", module="/lib/libhakmem.so.0"), *made("f")]) == ["f"]
    assert left(made("hakmem_malloc")) == ["hakmem_malloc"], "something stays"
    where = made("")[0].module
    inlined = Frame(1, where, 1, (Line("hakmem_malloc"), Line("mine")))
    assert left([inlined, *made("main")]) == ["mine", "main"]
    assert left([]) == []


WRAPPERS = """
xmalloc xrealloc xstrdup x2nrealloc do_xmalloc sh_xrealloc strdup __strndup _obstack_newchunk
zmalloc zcalloc ztrymalloc_usable_internal valkey_malloc g_malloc g_malloc0_n g_strdup
g_slice_alloc0 PyMem_RawMalloc _PyMem_DebugMalloc PyObject_Malloc _PyObject_Realloc _PyObject_GC_New
ruby_xmalloc2 objspace_xmalloc0 _emalloc _safe_emalloc palloc0 MemoryContextAllocZero luaM_realloc_
sqlite3DbMallocRawNN sqlite3_malloc64 CRYPTO_zalloc my_alloc
"""
OF_CXX = [
    "operator new[](unsigned long, std::align_val_t)",
    "std::allocator<int>::allocate(unsigned long)",
    "std::allocator_traits<std::allocator<int> >::allocate(std::allocator<int>&, unsigned long)",
    "__gnu_cxx::new_allocator<std::map<int, f(int)> >::allocate(unsigned long, void const*)",
    "std::__1::allocator<char>::allocate[abi:ne180100](unsigned long)",
    "std::allocate",
    "os::malloc(unsigned long, MEMFLAGS)",
    "my::pool<int>::take(int)",
]
OTHERS = """
main malloc_trim xml_parse xdr_array palette zcard g_string_new PyObject_Call _PyObject_MakeTpCall
std::vector<int>::push_back(int&&) my::pool<int>::put(int) my_allocator
"""


def test_wrappers() -> None:
    """Those of libraries, and what the user names."""
    known = Wrappers(["my_alloc", "my::pool<*>::take"])
    assert [name for name in [*WRAPPERS.split(), *OF_CXX] if not known.has(name)] == []
    assert [name for name in OTHERS.split() if known.has(name)] == []


def test_no_stack() -> None:
    """Where the stack could not be walked, and where an address lies in no mapping."""
    profile = Profile("", 1, 0, (Site((), FIGURES, FIGURES), Site((0, 4711), FIGURES, FIGURES)), ())
    found: Named = symbols.named(profile)
    assert [functions(stack) for stack in found.stacks] == [[], ["?+0x1266"]]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("malloc@@GLIBC_2.2.5", "malloc"),
        ("main", "main"),
        ("leak::leaks::h8d19ac769d5f34dd", "leak::leaks"),
        (
            "_$LT$alloc..vec..Vec$LT$T$C$A$GT$$u20$as$u20$core..Clone$GT$::clone::h0123456789abcdef",
            "<alloc::vec::Vec<T,A> as core::Clone>::clone",
        ),
        ("a$uffffff$::h0123456789abcdef", "a\U0010ffff"),
        ("odd$LT$::hash", "odd$LT$::hash"),
    ],
)
def test_readable(name: str, shown: str) -> None:
    assert naming._readable(name, "main.c") == shown


def test_short_names_of_the_library_of_cxx() -> None:
    """What it inlines for a type that is local to a file has no name but its own."""
    inside = "/usr/include/c++/12/bits/new_allocator.h"
    assert naming._readable("allocate", inside) == "std::allocate"
    made = "make_shared<f()::S>"
    assert naming._readable(made, "/usr/lib/llvm/include/c++/v1/memory") == f"std::{made}"
    for name, file in (("allocate", "mine.h"), ("my::made<int>(int)", inside), ("main", "")):
        assert naming._readable(name, file) == name


def test_entrances_of_rust() -> None:
    for name in (
        "__rustc::__rust_alloc",
        "alloc::alloc::alloc",
        "<hakmem::alloc::Hakmem as core::alloc::global::GlobalAlloc>::alloc",
        "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
    ):
        assert re.fullmatch(symbols.ENTRANCES, name)
    for name in ("alloc::vec::Vec<T>::push", "leak::alloc", "<A as core::Clone>::alloc"):
        assert not re.fullmatch(symbols.ENTRANCES, name)
