"""Files in a program that contain another allocator: `hakmem doctor` names them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hakmem import elf, judge, process
from tests.command.command import Answer, Built, Programs, is_in_force, library_of


def objects(answer: Answer) -> list[tuple[str, str, str]]:
    """Of what is in force: which kind, which file, whose allocator."""
    is_in_force(answer)
    found = [each for program in answer.programs for each in program["objects"]]
    return [(each["id"], Path(each["file"]).name, each["allocator"]) for each in found]


def loads(programs: Programs) -> Path:
    return programs.make("deep", "-ldl", source="deep")


def brings(programs: Programs, name: str, *flags: str) -> Path:
    return programs.make(name, *flags, "-shared", "-fPIC", source="brings")


def test_a_library_that_brings_an_allocator(built: Built, programs: Programs) -> None:
    library = brings(programs, "libbrings.so")
    answer = built.doctor("--", loads(programs), library)
    assert objects(answer) == [("inner", "libbrings.so", "mimalloc")]
    assert "allocates with mimalloc is not in hakmem's statistics" in answer.text
    done = built("doctor", "--", loads(programs), library)
    assert done.status == 0
    assert done.out.splitlines()[0].endswith(", but these files contain another allocator")
    assert f"file {library} contains mimalloc why" in " ".join(done.out.split())
    assert "\n  why     " in done.out and "\n  do      " in done.out


def test_a_stripped_one_is_known_by_its_words(built: Built, programs: Programs) -> None:
    library = brings(programs, "libstripped.so", "-DTRACES", "-s")
    answer = built.doctor("--", loads(programs), library)
    assert objects(answer) == [("inner", "libstripped.so", "jemalloc")]


@pytest.mark.parametrize(
    ("file", "id", "advice"),
    [
        ("_polars_runtime.abi3.so", "polars", "default_alloc"),
        ("libarrow.so.2300", "pyarrow", "ARROW_DEFAULT_MEMORY_POOL=system"),
        ("_duckdb.cpython-311-x86_64-linux-gnu.so", "duckdb", "BUILD_JEMALLOC=0"),
    ],
)
def test_known_ones_by_their_names(
    file: str, id: str, advice: str, built: Built, programs: Programs
) -> None:
    library = brings(programs, file)
    answer = built.doctor("--", loads(programs), library)
    assert objects(answer) == [(id, file, "mimalloc")]
    assert advice in answer.text
    answer = built.doctor("--", loads(programs), library, ARROW_DEFAULT_MEMORY_POOL="system")
    assert bool(objects(answer)) == (id != "pyarrow")


def test_one_with_a_prefix(built: Built, programs: Programs) -> None:
    """As in programs in Rust that bring jemalloc."""
    program = programs.make("prefixed", "-D_GNU_SOURCE", "-Wl,--defsym=_rjem_mallctl=main")
    ((id, file, allocator),) = objects(built.doctor("--", program))
    assert (id, file, allocator) == ("inner", "prefixed", "jemalloc")


def test_jemalloc_s_functions_are_hakmem_s(built: Built, programs: Programs) -> None:
    other = library_of("libjemalloc.so.2")
    asking = programs.make("asks-jemalloc", other, "-Wl,-u,mallocx,-u,mallctl")
    assert objects(built.doctor("--", asking)) == []
    inside = programs.make("inside", "-Wl,-u,mallctl", built.archive)
    assert objects(built.doctor("--", inside)) == []


def test_a_malloc_that_gave_way_keeps_nothing(built: Built, programs: Programs) -> None:
    other = library_of("libmimalloc.so.2")
    assert objects(built.doctor("--", programs.make("with-mimalloc", other))) == []
    assert objects(built.doctor("--", programs.blocks, LD_PRELOAD=str(other))) == []
    asking = programs.make("asks", other, source="asks")
    ((id, file, allocator),) = objects(built.doctor("--", asking))
    assert (id, file[:11], allocator) == ("inner", "libmimalloc", "mimalloc")


@pytest.mark.parametrize(
    ("library", "allocator"),
    [
        ("libjemalloc.so.2", "jemalloc"),
        ("libmimalloc.so.2", "mimalloc"),
        ("libtcmalloc_minimal.so.4", "tcmalloc"),
    ],
)
def test_words_of_real_allocators(
    library: str, allocator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By them alone, as in a file that was stripped of it."""
    path = library_of(library)
    assert elf.read(path).carries == (allocator,)
    monkeypatch.setattr(elf, "ALLOCATORS", {})
    elf._read.cache_clear()
    assert elf.read(path).carries == (allocator,)
    elf._read.cache_clear()


def test_polars(built: Built) -> None:
    """The wheel, whose runtime is stripped."""
    pytest.importorskip("polars")
    answer = built.doctor("--", sys.executable, "-c", "import polars")
    ((id, _, allocator),) = objects(answer)
    assert (id, allocator) == ("polars", "jemalloc")
    assert "PYTHONMALLOC" in answer.text  # and Python's own heap is told as ever


def test_python_with_an_unused_mimalloc_inside() -> None:
    """As 3.13 has it: its own heap is told, and nothing else."""
    file = replace(elf.read(Path("/usr/bin/python3")), carries=("mimalloc",))
    loaded = process.Loaded("/usr/bin/python3", file, 0, ())
    assert not judge._keeps_its_own(loaded, set(), is_program=True)
