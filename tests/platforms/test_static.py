"""Programs linked with libhakmem.a in every way: they run, and their malloc is only hakmem's."""

import re
import shutil
from pathlib import Path

import pytest

from tests.nightly import points
from tests.platforms import names
from tests.ran import ran

PROGRAMS = Path(__file__).parent / "programs"
SAYS = {
    "work.c": "policy 3, malloc is hakmem's\n",
    "objects.cc": "bad_alloc after 3 calls of the handler, then null\n",
    "thrower.cc": "",
}
WAYS = {
    "dynamic": [],
    "no-pie": ["-no-pie", "-fno-pie"],
    "static": ["-static"],
    "static-pie": ["-static-pie"],
    "lto": ["-flto", "-O2"],
    "static-lto": ["-static", "-flto", "-O2"],
    "gc-sections": ["-ffunction-sections", "-Wl,--gc-sections"],
    "static-gc-sections": ["-static", "-ffunction-sections", "-Wl,--gc-sections"],
    "now": ["-Wl,-z,now,-z,relro"],
    "gold": ["-fuse-ld=gold"],
    "static-gold": ["-static", "-fuse-ld=gold"],
    "lld": ["-fuse-ld=lld"],
    "static-lld": ["-static", "-fuse-ld=lld"],
}
LINKERS = {"gold": "ld.gold", "lld": "ld.lld"}
# What only the malloc of libc has: its heaps, and the file that it is in.
OF_LIBC = re.compile(r"\b(_int_malloc|_int_free|main_arena|ptmalloc_init|malloc\.o)\b")


def _link(archive: Path, source: str, flags: list[str], to: Path) -> str:
    """The linker's map."""
    compiler = "g++" if source.endswith(".cc") else "gcc"
    command = [compiler, "-O1", "-pthread", "-fno-builtin-malloc", str(PROGRAMS / source)]
    command += [*flags, str(archive), "-o", str(to), f"-Wl,-Map={to}.map"]
    done = ran(*command)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return Path(f"{to}.map").read_text(errors="replace")


def always(source: str, way: str) -> bool:
    """The program in C in all ways. In C++ each kind of program and of linker once."""
    return source == "work.c" or way in ("dynamic", "static", "static-lto", "static-lld")


CASES = [
    (source, way)
    for source in SAYS
    for way in WAYS
    # The least program is for what an archive brings along, by each kind of linker.
    if source != "thrower.cc" or way in ("dynamic", "static", "lld", "static-lld")
]


@pytest.mark.parametrize(("source", "way"), points(CASES, always))
def test_linked(source: str, way: str, archive: Path, tmp_path: Path) -> None:
    linker = LINKERS.get(way.removeprefix("static-"))
    if linker is not None and shutil.which(linker) is None:
        pytest.skip(f"{linker} is not installed")
    program = tmp_path / "program"
    _link(archive, source, WAYS[way], program)
    done = ran(program)
    assert (done.returncode, done.stdout) == (0, SAYS[source]), done.stderr
    symbols = ran("nm", program, check=True).stdout
    defined = {line.split()[-1]: line.split()[-2] for line in symbols.splitlines()}
    for name in "malloc", "free":
        # Local in a static program: libc.a asks for it as a hidden name.
        assert defined.get(name, "missing").upper() == "T", f"{name} is not in the program"
    assert OF_LIBC.search(symbols) is None, "libc's malloc is in the program too"


def test_static_program_has_no_malloc_of_libc(archive: Path, tmp_path: Path) -> None:
    """Every name of the family that a static program refers to comes from our archive."""
    linked = _link(archive, "work.c", ["-static"], tmp_path / "program")
    members = set(re.findall(r"\blibc\.a\((\w+\.o)\)", linked))
    assert "printf.o" in members, "the map was not understood"
    assert {name for name in members if name.startswith("malloc")} == set()
    providers = ran("nm", "-A", "-g", "--defined-only", archive, check=True).stdout
    assert names.required() <= {line.split()[-1] for line in providers.splitlines() if line}
