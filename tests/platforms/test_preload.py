"""The library preloaded together with libraries and tools that come first, start early, or contain
another malloc."""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.ran import ran

PROGRAMS = Path(__file__).parent / "programs"
OURS, OTHERS = "malloc is hakmem's", "malloc is another's"
PEERS = ("libjemalloc.so.2", "libmimalloc.so.2", "libtcmalloc_minimal.so.4")


def _run(
    command: Sequence[str | Path], preload: Sequence[str | Path], **more: str
) -> subprocess.CompletedProcess[str]:
    settings = ("HAKMEM_", "MALLOC_", "GLIBC_TUNABLES", "LD_", "ASAN_OPTIONS")
    env = {name: value for name, value in os.environ.items() if not name.startswith(settings)}
    env |= {"LD_PRELOAD": " ".join(map(str, preload))} | more
    return ran(*command, env=env)


def _good(done: subprocess.CompletedProcess[str], says: str) -> None:
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    assert says in done.stdout, (done.stdout, done.stderr)


@pytest.fixture(scope="session")
def work(programs: Path) -> Path:
    return programs / "platforms_work"


@pytest.mark.parametrize("order", ["first", "last"])
@pytest.mark.parametrize("other", ["constructor", "threads"])
def test_constructors(other: str, order: str, work: Path, library: Path, programs: Path) -> None:
    both = [library, programs / f"libplatforms_{other}.so"]
    _good(_run([work], both if order == "first" else both[::-1]), OURS)


# The loader gives the threads' memory its first values only after all relocations, so that what a
# resolver finds there is null and not the address of the empty cache.
too_early = pytest.mark.xfail(strict=True, reason="resolvers run before the loader has set up TLS")


@too_early
def test_resolver_of_the_program(library: Path, programs: Path) -> None:
    _good(_run([programs / "platforms_resolver_program"], [library]), "")


@too_early
@pytest.mark.parametrize("order", ["first", "last"])
def test_resolver_of_a_library(order: str, work: Path, library: Path, programs: Path) -> None:
    both = [library, programs / "libplatforms_resolver.so"]
    _good(_run([work], both if order == "first" else both[::-1]), OURS)


def test_auditor(work: Path, library: Path, programs: Path) -> None:
    _good(_run([work], [library], LD_AUDIT=str(programs / "libplatforms_audit.so")), OURS)


def _peer(name: str) -> Path:
    found = Path("/usr/lib", f"{os.uname().machine}-linux-gnu", name)
    if not found.exists():
        pytest.skip(f"{name} is not installed")
    return found


@pytest.mark.parametrize("peer", PEERS)
def test_two_allocators(peer: str, work: Path, library: Path) -> None:
    """The first that is named is in force, for all of the program."""
    _good(_run([work], [library, _peer(peer)]), OURS)
    _good(_run([work], [_peer(peer), library]), OTHERS)
    for preload in ([library, _peer(peer)], [_peer(peer), library]):
        _good(_run(["perl", "-e", "print join ',', map { $_ * 2 } 1 .. 1000"], preload), "2000")


def _valgrind(*options: str) -> list[str]:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    return ["valgrind", "-q", "--error-exitcode=9", *options]


def test_valgrind_that_counts(work: Path, library: Path) -> None:
    """Tools that leave malloc alone run hakmem, whose window they may not have: so blocks lie
    elsewhere."""
    done = _run([*_valgrind("--tool=none"), work], [library])
    _good(done, OURS)


def test_valgrind_that_replaces_malloc(work: Path, library: Path) -> None:
    """Memcheck puts its own in the place of every malloc in every library, and finds errors."""
    done = _run([*_valgrind("--leak-check=no"), work], [library])
    _good(done, OURS)  # by its address, at which memcheck's is called
    program = work.with_name("platforms_overrun")
    done = _run([*_valgrind("--leak-check=no"), program], [library])
    assert done.returncode == 9 and "Invalid write of size 1" in done.stderr, done.stderr


def test_valgrind_that_replaces_new(library: Path, tmp_path: Path) -> None:
    """Also every new and delete: with some of its own and some of ours, free would not know what
    new returned."""
    if b"_Znwm" not in library.read_bytes():
        pytest.skip("the library has no operator new")
    source = tmp_path / "overrun.cc"
    source.write_text(
        "#include <cstdlib>\n#include <new>\n"
        "int main() { void *volatile p = malloc(9); operator delete(p);\n"
        "    char *volatile q = new char[9]; q[9] = 1; free(q); }\n"
    )
    program = tmp_path / "overrun"
    ran("g++", "-O0", "-w", source, "-o", program, check=True)
    done = _run([*_valgrind("--leak-check=no"), program], [library])
    assert done.returncode == 9 and "Invalid write of size 1" in done.stderr, done.stderr


def _sanitized(compiler: str, to: Path) -> Path:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    command = [compiler, "-O1", "-g", "-fsanitize=address", "-pthread", str(PROGRAMS / "overrun.c")]
    done = ran(*command, "-o", to)
    if done.returncode:
        pytest.skip(f"{compiler} has no AddressSanitizer: {done.stderr.splitlines()[-1]}")
    return to


def test_address_sanitizer_as_a_library(library: Path, tmp_path: Path) -> None:
    """It must come first, and says so itself; told to go first, it works as if we weren't there."""
    program = _sanitized("gcc", tmp_path / "program")
    done = _run([program], [library])
    assert done.returncode == 1, (done.returncode, done.stderr)
    assert "ASan runtime does not come first" in done.stderr, done.stderr
    runtime = ran("gcc", "-print-file-name=libasan.so", check=True).stdout.strip()
    done = _run([program], [Path(runtime).resolve(), library])
    assert "heap-buffer-overflow" in done.stderr, (done.returncode, done.stderr)


def test_address_sanitizer_in_the_program(library: Path, tmp_path: Path) -> None:
    """The program's own malloc comes before any library's."""
    done = _run([_sanitized("clang", tmp_path / "program")], [library])
    assert "heap-buffer-overflow" in done.stderr, (done.returncode, done.stderr)


def test_static_program_is_left_alone(library: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    command = ["gcc", "-static", "-pthread", str(PROGRAMS / "work.c"), "-o", str(program)]
    subprocess.run(command, check=True)
    _good(_run([program], [library]), OTHERS)


def test_misuse_is_told_once(work: Path, library: Path) -> None:
    """A pointer that another malloc has made: one report, and the end."""
    done = _run([work.with_name("platforms_foreign")], [library])
    assert done.returncode == -signal.SIGABRT, (done.returncode, done.stderr)
    reports = [line for line in done.stderr.splitlines() if line.startswith("hakmem: free(0x")]
    assert len(reports) == 1, done.stderr
    assert reports[0].endswith(": no block begins at this address"), done.stderr
