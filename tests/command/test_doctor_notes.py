"""What `hakmem doctor` notes of programs beside its verdict."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from hakmem import malloc_conf
from tests.command.command import (
    Built,
    Programs,
    is_in_force,
    is_not,
    waiting,
)


def test_note_about_functions_looked_up_in_the_c_library(built: Built) -> None:
    """The recipe that many Python services have, which calls glibc's function beside hakmem's."""
    ids = []
    for line in ("import ctypes; ctypes.CDLL('libc.so.6').malloc_trim(0)", "import json"):
        answer = built.doctor("--", "/usr/bin/python3", "-c", line)
        is_in_force(answer)
        ids.append([note["id"] for note in answer.programs[0]["notes"]])
    assert ids == [["Python", "libc-handle"], ["Python"]]


def test_note_about_a_signal(built: Built) -> None:
    for number, name in ((11, "SIGSEGV"), (9, "SIGKILL")):
        answer = built.doctor("--", "bash", "-c", f"kill -{number} $$")
        is_in_force(answer)
        (note,) = answer.programs[0]["notes"]
        assert note["id"] == "killed" and name in note["brief"]
    # A process that the program starts may be ended by it.
    answer = built.doctor("--", "bash", "-c", "bash -c 'kill -9 $$; :'; exit 3")
    is_in_force(answer)
    assert not any(program["notes"] for program in answer.programs)


def test_notes(built: Built) -> None:
    python = ["/usr/bin/python3", "-E", "-c", "pass"]
    answer = built.doctor("--", *python)
    is_in_force(answer)
    assert "PYTHONMALLOC" in answer.text
    for passes_all_on in "malloc", "malloc_debug":
        answer = built.doctor("--", *python, PYTHONMALLOC=passes_all_on)
        assert "Python's own heap" not in answer.text


@pytest.mark.parametrize(
    ("exports", "id"),
    [("_Py_DecRefShared", "Python-free-threaded"), ("pypy_main_startup", "PyPy")],
)
def test_note_about_other_pythons(exports: str, id: str, built: Built, programs: Programs) -> None:
    """A Python without the GIL refuses what helps with others."""
    names = [f"-Wl,--defsym={name}=main" for name in (exports, "PyObject_Malloc")]
    answer = built.doctor("--", programs.make(id, "-rdynamic", *names))
    is_in_force(answer)
    assert [note["id"] for note in answer.programs[0]["notes"]] == [id]


def test_note_about_luajit(built: Built) -> None:
    """Its objects are none of malloc's."""
    if shutil.which("luajit") is None:
        pytest.skip("luajit is not installed")
    script = "local t = {} for i = 1, 100000 do t[i] = {i} end"
    answer = built.doctor("--", "luajit", "-e", script)
    is_in_force(answer)
    assert [note["id"] for note in answer.programs[0]["notes"]] == ["LuaJIT"]
    done = built("run", "luajit", "-e", script, HAKMEM_STATS="exit")
    (used,) = re.findall(r"resident .*, ([\d.]+) MiB in blocks in use", done.err)
    assert float(used) < 1, done.err


GROWN_BY_SMALL_OBJECTS = """
import ctypes
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]
of_malloc = ctypes.CDLL(None).mallinfo2
of_malloc.restype = Info
objects = [None] * 400_000
before = of_malloc().uordblks
for at in range(len(objects)):
    objects[at] = float(at)
print(of_malloc().uordblks - before)
"""


def test_python_maps_its_own_heap(built: Built) -> None:
    """As the note says: neither 400,000 floats of 24 bytes nor their arenas come from malloc."""

    def grown(**variables: str) -> int:
        done = built("run", "/usr/bin/python3", "-c", GROWN_BY_SMALL_OBJECTS, **variables)
        assert (done.status, done.err) == (0, ""), done
        return int(done.out)

    assert grown() < 100_000
    assert grown(PYTHONMALLOC="malloc") >= 400_000 * 24


def test_hakmem_beside_the_program_s_malloc(built: Built, programs: Programs) -> None:
    archive = built.archive.parent / "libhakmem-names.a"
    program = programs.make("beside", "-Wl,-u,hakmem_malloc", archive)
    with waiting([program, "wait"]) as pid:
        answer = built.doctor(str(pid))
    is_not(answer, "not-asked")
    assert [note["id"] for note in answer.programs[0]["notes"]] == ["beside"]


def test_jemalloc_s_options(built: Built, programs: Programs) -> None:
    set_ = "narenas:2,dirty_decay_ms:0,thp:never,lg_dirty_mult:8"
    with waiting([built.front, "run", programs.blocks, "wait"], {"MALLOC_CONF": set_}) as pid:
        answer = built.doctor(str(pid))
        done = built("doctor", str(pid))
    is_in_force(answer)
    (note,) = answer.programs[0]["notes"]
    assert note["id"] == "malloc-conf"
    assert note["do"] == (
        f"Of {set_}: narenas:2: nothing to set; dirty_decay_ms:0: "
        "HAKMEM_KEEP_BYTES=0; thp:never: HAKMEM_HUGE_PAGES=off; "
        "lg_dirty_mult:8: hakmem has nothing of this name."
    )
    assert "note MALLOC_CONF is set. hakmem does not read" in " ".join(done.out.split())


def test_every_option_of_jemalloc_s_is_explained_twice() -> None:
    """By the doctor and in the guide."""
    text = (Path(__file__).parents[2] / "docs/guide/migration.md").read_text()
    table = text[text.index("| `MALLOC_CONF` |") : text.index("### jemalloc's functions")]
    first = " ".join(line.split("|")[1] for line in table.splitlines()[1:] if line.startswith("|"))
    guide = {pair.partition(":")[0] for pair in re.findall(r"`([a-z_]+[^`]*)`", first)}
    assert guide == {option.partition(":")[0] for option in malloc_conf.ADVICE}
