"""Functions, files and lines of Python in a heap profile, of each Python that is here."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hakmem import heap_profile, symbols
from hakmem.heap_profile import Profile, Script
from hakmem.symbols import Stack
from tests.profile.planted import HERE
from tests.ran import ran
from tests.watch.watched import Command

PLANT = HERE / "plant_python.py"
MADE = 22551  # by a function that the program compiles
ASKS = """\
import sys, sysconfig as s
free = s.get_config_var("Py_GIL_DISABLED")
print(*sys.version_info[:2], "t" if free else "-", s.get_path("include"))
"""
EVERY = [*(f"python3.{minor}" for minor in range(9, 15)), "python3.13t", "python3.14t"]


def pythons() -> Iterator[tuple[Path, Path]]:
    """One of each version, with the GIL and without it, and the folder of its headers."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    named = map(shutil.which, EVERY)
    found = [Path(one) for one in ("/usr/bin/python3", *named) if one and Path(one).exists()]
    found += home.glob("versions/*/bin/python3")
    seen = set()
    for one in found:
        done = ran(one, "-c", ASKS)
        said = done.stdout.split() if done.returncode == 0 else ("", "0", "", "")
        major, minor, free, headers = said
        if major == "3" and 9 <= int(minor) <= 14 and (minor, free) not in seen:
            seen.add((minor, free))
            yield one, Path(headers)


PYTHONS = list(pythons())
each = pytest.mark.parametrize(
    ("python", "headers"), PYTHONS, ids=[headers.name for _, headers in PYTHONS]
)


def is_free(headers: Path) -> bool:
    """Whether a Python has no GIL. Then its objects are in a heap of its own, so programs here have
    another thing by the name of bytearray, which is a block of malloc."""
    return headers.name.endswith("t")


BLOCKS = """\
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
class bytearray:
    def __init__(self, size):
        self.block = ctypes.c_void_p(libc.malloc(size))
    def __del__(self, free=libc.free):
        free(self.block)
"""


def written(path: Path, headers: Path, program: str) -> Path:
    if is_free(headers):
        (path.parent / "blocks.py").write_text(BLOCKS)
        program = "from blocks import bytearray; " + program
    path.write_text(program)
    return path


def profiled(
    command: Command, python: Path, heap: Path, *words: str | Path, rate: int = 1
) -> Profile:
    options = ["-o", f"profile_rate={rate}", "-o", "profile_samples=0"]
    done = command("run", f"--profile={heap}", *options, str(python), *map(str, words))
    assert done.returncode == 0, done.stderr
    return heap_profile.read(heap)


def planted_sites() -> dict[int, Script]:
    """By the bytes of a block: what allocates it."""
    found = {MADE: Script("made", r"a b:c\x0a\x80é.py", 3)}

    def look(node: ast.AST, function: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        elif isinstance(node, ast.Lambda | ast.GeneratorExp):
            function = "<lambda>" if isinstance(node, ast.Lambda) else "<genexpr>"
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "bytearray":
            found[node.args[0].value] = Script(function, str(PLANT), node.lineno)  # type: ignore[attr-defined]
        for inner in ast.iter_child_nodes(node):
            look(inner, function)

    look(ast.parse(PLANT.read_text()), "")
    return found


def scripts_of(profile: Profile, site: heap_profile.Site) -> list[Script]:
    return [profile.scripts[at - 1] for at in site.stack if at - 1 in profile.scripts]


def is_named(script: Script, expected: Script) -> bool:
    name = script.function.rpartition(".")[2]
    return (name, script.file, script.line) == (expected.function, expected.file, expected.line)


@each
def test_layout(python: Path, headers: Path, tmp_path: Path) -> None:
    if not (headers / "internal").is_dir() or shutil.which("cc") is None:
        pytest.skip("needs a compiler and Python's headers")
    source = HERE.parents[1] / "src"
    words = ["-w", *(f"-I{folder}" for folder in (headers, headers / "internal", source))]
    files = [HERE / "python_layouts.c", source / "profile/python_layouts.c"]
    subprocess.run(["cc", *words, "-o", tmp_path / "a", *files], check=True)
    done = ran(tmp_path / "a")
    assert (done.returncode, done.stdout) == (0, "")


@each
def test_every_site(command: Command, python: Path, headers: Path, tmp_path: Path) -> None:
    """In every thread, each block that is planted has its function, file and line."""
    profile = profiled(command, python, tmp_path / "a.heap", PLANT, "3", "2")
    expected = planted_sites()
    zero = 0 if is_free(headers) else 1  # at the end of a bytearray
    found = set()
    for site in profile.sites:
        size = site.figures[3] / site.figures[2] - zero
        if size in expected:
            scripts = scripts_of(profile, site)
            assert scripts and is_named(scripts[0], expected[int(size)]), (scripts, size)
            assert scripts[-1].function in {"<module>", "Thread._bootstrap", "_bootstrap"} or (
                len(site.stack) == 64
            )
            found.add(int(size))
    assert found == set(expected)


@pytest.mark.parametrize("build", ["13 0", "14 0", "13 1", "14 1"])
def test_builds_that_are_not_here(
    command: Command, programs: Path, tmp_path: Path, build: str
) -> None:
    """With the GIL and without it, where 3.14 has a copy of the code for each thread."""
    options = ["-o", "profile_rate=1", "-o", "profile_samples=0"]
    plant = str(programs / "profile_plant_interpreter")
    heap = tmp_path / "x.heap"
    done = command("run", f"--profile={heap}", *options, plant, *build.split())
    assert done.returncode == 0, done.stderr
    profile = heap_profile.read(heap)
    (site,) = (one for one in profile.sites if one.figures[3] == 20001)
    assert scripts_of(profile, site) == [
        Script(name, "plant.py", 12) for name in ("inner", "outer")
    ]


def shown(stack: Stack) -> list[str]:
    """Functions of a stack, those of scripts in brackets."""
    return [
        f"[{line.function.rpartition('.')[2]}]" if line.is_script else line.function
        for frame in stack.frames
        for line in frame.lines[:1]
    ]


@each
def test_among_native_frames(command: Command, python: Path, headers: Path, tmp_path: Path) -> None:
    """Python's frames are where the evaluator's were, and none of those is left."""
    program = written(
        tmp_path / "a.py",
        headers,
        "kept = []\n"
        "def key(one):\n    kept.append(bytearray(4000000))\n    return one\n"
        "def sorts():\n    return sorted([1], key=key)\n"
        "def calls():\n    return sorts()\n"
        "calls()\n",
    )
    profile = symbols.named(profiled(command, python, tmp_path / "a.heap", program, rate=2**19))
    (stack,) = (one for one in profile.stacks if "[key]" in shown(one))
    functions = shown(stack)
    inner, outer = functions.index("[key]"), functions.index("[sorts]")
    assert ("ffi_call" if is_free(headers) else "PyByteArray_Resize") in functions[:inner]
    assert outer > inner + 1, "list.sort is in between"
    scripts = [name for name in functions[inner:] if name.startswith("[")]
    assert scripts == ["[key]", "[sorts]", "[calls]", "[<module>]"]
    assert "_PyEval_EvalFrameDefault" not in functions
    done = command("profile", "--text", "--by", "peak", "--top", "1", str(tmp_path / "a.heap"))
    assert "key (a.py:3)\n" in done.stdout and "<module> (a.py:9)\n" in done.stdout
    for name in "a.collapsed", "a.speedscope.json", "a.html":
        done = command(
            "profile", "--by", "peak", "-o", str(tmp_path / name), str(tmp_path / "a.heap")
        )
        assert done.returncode == 0, done.stderr
        assert all(word in (tmp_path / name).read_text() for word in ("calls", "sorts"))


@each
def test_whole_run(command: Command, python: Path, headers: Path, tmp_path: Path) -> None:
    """What Python frees only because it ends is in use; what the program freed is not."""
    program = written(
        tmp_path / "a.py",
        headers,
        "cache = {}\n"
        "def remembers(key):\n    cache[key] = bytearray(2**20)\n"
        "for key in range(32):\n    remembers(key)\n    bytearray(2**22)\n",
    )
    profile = symbols.named(profiled(command, python, tmp_path / "a.heap", program, rate=2**14))
    # The dictionary grows there, too, and may be sampled.
    stack = max(
        (one for one in profile.stacks if "[remembers]" in shown(one)),
        key=lambda one: one.figures[1],
    )
    assert stack.figures[0] == 32 and stack.figures[1] >= 32 * 2**20
    assert sum(one.figures[1] for one in profile.stacks) < 48 * 2**20
