"""`hakmem run` with a program that the loader can't take the library into: one line says so, and
the program runs as it would without hakmem."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command.command import Built, Programs, go_program
from tests.nobody import NOBODY, as_nobody, public_folder, readable_by_nobody
from tests.ran import ran

MODES: tuple[list[str], ...] = ([], ["--hardened"], ["--guards"], ["--profile"], ["--leaks"],
         ["--leaks", "--leaks-status=9"], ["--profile", "--leaks"],
         ["-o", "profile=on"])  # fmt: skip
EXITS = '#include <stdio.h>\nint main(void) { puts("here"); return 3; }\n'


def ids(words: list[str]) -> str:
    return " ".join(words) or "plain"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def compiled(compiler: str, *flags: str, source: str = EXITS) -> Path:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    words = [compiler, *flags, "-x", "c", "-", "-o", "program"]
    done = ran(*words, input=source)
    assert done.returncode == 0, done.stderr
    return Path("program").resolve()


def static() -> Path:
    return compiled("gcc", "-static")


def static_pie() -> Path:
    return compiled("gcc", "-static-pie")


def musl() -> Path:
    return compiled("musl-gcc")


def script() -> Path:
    path = Path("script").resolve()
    path.write_text(f"#! {static()} word\n")
    path.chmod(0o755)
    return path


def bits_32() -> Path:
    """Of calls of the kernel alone: a C library for it need not be here."""
    write = '"int $0x80" : : "a"(4), "b"(1), "c"("here\\n"), "d"(5) : "memory"'
    leave = '"int $0x80" : : "a"(1), "b"(3)'
    source = f"void _start(void) {{ __asm__ volatile({write}); __asm__ volatile({leave}); }}"
    return compiled("gcc", "-m32", "-nostdlib", "-static", "-fno-pie", "-no-pie", source=source)


def go() -> Path:
    main = 'package main\nimport ("fmt"; "os")\nfunc main() { fmt.Println("here"); os.Exit(3) }\n'
    return go_program(main, Path.cwd())


def check(built: Built, words: list[str], program: Path, why: str) -> None:
    done = built("run", *words, program)
    assert (done.status, done.out) == (3, "here\n"), done
    said = f"hakmem run: {program}: hakmem is not active: {why}"
    assert done.err.startswith(said) and done.err.count("\n") == 1, done
    assert f"see 'hakmem doctor -- {program}'" in done.err
    assert not list(Path.cwd().glob("*.heap"))


def test_the_loader_by_its_own_name(built: Built) -> None:
    """It is linked as a static program is, and preloads."""
    program = compiled("gcc")
    headers = ran("readelf", "-l", program).stdout
    loader = headers.partition("interpreter: ")[2].partition("]")[0]
    done = built("run", "--profile=x.heap", loader, program)
    assert (done.status, done.out, done.err) == (3, "here\n", "") and Path("x.heap").exists()
    assert built("doctor", "--", loader, program).status == 0


@pytest.mark.parametrize("words", MODES, ids=ids)
def test_every_mode(words: list[str], built: Built) -> None:
    check(built, words, static(), "it is linked statically")


@pytest.mark.parametrize("words", [[], ["--profile"], ["--leaks"]], ids=ids)
@pytest.mark.parametrize(
    ("made", "why"),
    [
        (static_pie, "it is linked statically"),
        (musl, "it is a program for musl"),
        (script, "it is linked statically"),
        (bits_32, "it is a program for another processor, or of 32 bits"),
        (go, "it is a Go program without cgo"),
    ],
)
def test_every_kind(made: Callable[[], Path], why: str, words: list[str], built: Built) -> None:
    check(built, words, made(), why)


@pytest.mark.parametrize("words", [[], ["--profile"], ["--leaks"]], ids=ids)
@pytest.mark.parametrize("mode", [0o4755, 0o2755])
def test_privileged(mode: int, words: list[str], built: Built) -> None:
    """It keeps its privileges: it is not traced."""
    nobody = as_nobody()
    readable_by_nobody(built.library)
    shows = "#include <stdio.h>\n#include <unistd.h>\nint main(void) { if (getuid() == geteuid() &&"
    shows += ' getgid() == getegid()) return 4; puts("here"); return 3; }'
    with public_folder() as folder:
        program = Path(shutil.copy(compiled("gcc", source=shows), folder))
        os.chown(program, NOBODY - 1, NOBODY - 1)
        program.chmod(mode)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            pytest.skip(f"files in {folder.parent} give no privileges (mounted nosuid)")
        folder.chmod(0o777)
        words = [f"--profile={folder}/x.heap" if word == "--profile" else word for word in words]
        done = built("run", *words, program, by=nobody)
        assert (done.status, done.out) == (3, "here\n"), done
        assert "it runs with raised privileges" in done.err and done.err.count("\n") == 1


def test_what_fits(built: Built, programs: Programs) -> None:
    """By the search in PATH, by a link, as a script, and with hakmem linked in."""
    blocks = programs.blocks
    Path("link").symlink_to(blocks)
    Path("script").write_text("#!/bin/sh\nexit 0\n")
    Path("plain").write_text("exit 0\n")
    linked = programs.make("linked", built.archive, "-static")
    for path in "script", "plain":
        Path(path).chmod(0o755)
    for word in "true", "./link", "./script", "./plain", str(linked):
        done = built("run", word)
        assert (done.status, done.err) == (0, ""), (word, done)


def test_what_it_starts(built: Built) -> None:
    """A static program's children may use hakmem: there is a profile of these."""
    runs = "#include <stdlib.h>\nint main(void) { return system(\"exec sh -c 'exit 3'\") >> 8; }"
    program = compiled("gcc", "-static", source=runs)
    done = built("run", "--profile=x.heap", program)
    assert done.status == 3 and "linked statically" in done.err and done.err.count("\n") == 1
    assert len(list(Path.cwd().glob("x.*.heap"))) == 1
