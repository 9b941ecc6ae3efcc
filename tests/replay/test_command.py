"""`hakmem replay` as a user meets it."""

from __future__ import annotations

import re
import resource
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.ran import clean_environment, ran
from tests.replay.replayed import Replayed


def test_table_and_files(replayed: Replayed, tmp_path: Path) -> None:
    replayed.record("live")
    page, facts = tmp_path / "a.html", tmp_path / "a.json"
    done = replayed.replay(
        "--with", "hakmem,glibc", "-o", str(page), "-o", str(facts), str(replayed.file)
    )
    assert "replay_plant live" in done.stdout
    assert "hakmem" in done.stdout and "glibc" in done.stdout and "MiB" in done.stdout
    assert "<svg" in page.read_text() and "glibc" in page.read_text()
    assert '"peak_in_use"' in facts.read_text()


def test_several_files_are_ranked(replayed: Replayed) -> None:
    replayed.record("moves")
    other = replayed.folder / "b.recording"
    shutil.copy(replayed.file, other)
    done = replayed.replay("--speed", "0", str(replayed.file), str(other))
    assert "over all recordings" in done.stdout


def test_a_recording_that_was_cut_off(replayed: Replayed) -> None:
    replayed.record("live")
    data = replayed.file.read_bytes()
    replayed.file.write_bytes(data[: len(data) * 2 // 3])
    done = replayed.replay("--with", "hakmem", "--speed", "0", str(replayed.file))
    assert "cut off" in done.stdout


def test_no_room_for_what_the_player_reads(replayed: Replayed) -> None:
    replayed.record("live")
    done = ran(
        str(replayed.hakmem),
        "replay",
        str(replayed.file),
        env=clean_environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20)),
    )
    assert done.returncode == 1
    assert "File too large; TMPDIR can name a folder with more room" in done.stderr


def test_nothing_to_replay(replayed: Replayed) -> None:
    replayed.file.write_bytes(b"something else\n")
    said = replayed.replay(str(replayed.file), status=1).stderr
    assert "not a recording of hakmem" in said
    said = replayed.replay(str(replayed.folder / "none"), status=2).stderr
    assert "No such file" in said


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("--with", "hackmem"), 2, "nothing is called hackmem"),
        (("--with", "hakmem+nonsense=1"), 125, "there is no option 'nonsense'"),
        (("--process", "1"), 1, "has no process 1"),
        (("-o", "a.txt"), 2, "expected a name that ends in"),
        (("-o", "/none/a.html"), 5, "no such folder"),
    ],
)
def test_wrong_use(replayed: Replayed, words: tuple[str, ...], status: int, says: str) -> None:
    replayed.record("moves")
    assert says in replayed.replay(*words, str(replayed.file), status=status).stderr


BAD = """\
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
extern void *__libc_malloc(size_t), __libc_free(void *), *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
static unsigned long calls;
void *malloc(size_t n) { if (++calls > 50000) abort(); return __libc_malloc(n); }
void free(void *p) { __libc_free(p); }
void *calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return __libc_realloc(p, n); }
void *memalign(size_t a, size_t n) { return __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { return __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) { return (*p = memalign(a, n)) ? 0 : ENOMEM; }
size_t malloc_usable_size(void *p) { return p ? (((size_t *)p)[-1] & ~7ul) - 8 : 0; }
"""


def test_an_allocator_that_fails(replayed: Replayed) -> None:
    """The others are shown, and the status tells."""
    source = replayed.folder / "bad.c"
    source.write_text(BAD)
    library = replayed.folder / "bad.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    replayed.record("live")
    done = replayed.replay("--with", f"hakmem,bad={library}", str(replayed.file), status=1)
    assert "SIGABRT" in done.stdout
    assert "MiB" in next(line for line in done.stdout.splitlines() if line.startswith("hakmem"))


# ---- on a cluster ----


@contextmanager
def _started(*words: str, python: str | Path = sys.executable, cwd: Path) -> Iterator[str]:
    """A scheduler or a worker, in a folder that no module is found from. Its address."""
    with subprocess.Popen(
        [python, "-m", "distributed.cli.dask_" + words[0], *words[1:]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=clean_environment(),
    ) as process:
        try:
            assert process.stderr is not None
            said = ""
            while not (at := re.search(r"(?:Scheduler|worker) at:\s+(tcp://\S+)", said)):
                line = process.stderr.readline()
                assert line, said
                said += line
            # What it says is read, so that it never waits for a reader.
            reader = threading.Thread(target=process.stderr.read, daemon=True)
            reader.start()
            yield at[1]
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    pytest.importorskip("distributed")
    with _scheduler(sys.executable, tmp_path) as address:
        yield address


def _scheduler(python: str | Path, folder: Path) -> AbstractContextManager[str]:
    words = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    return _started("scheduler", *words, python=python, cwd=folder)


def _worker(scheduler: str, folder: Path, python: str | Path = sys.executable) -> Any:
    words = (scheduler, "--no-nanny", "--nthreads", "1", "--no-dashboard")
    return _started("worker", *words, python=python, cwd=folder)


def _refused(replayed: Replayed, address: str) -> str:
    """What it says: one line."""
    done = replayed.replay("--cluster", address, str(replayed.file), status=2)
    assert done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(f"hakmem replay: --cluster {address}: ")
    return done.stderr


def _other_python(folder: Path, *packages: str) -> Path:
    """One that has distributed, and beside it only these."""
    made = folder / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    (site,) = made.glob("lib/python*/site-packages")
    for one in Path(pytest.__file__).parents[1].iterdir():
        if not one.name.startswith(("numpy", "zstandard")) or one.name.startswith(packages):
            (site / one.name).symlink_to(one)
    return made / "bin" / "python"


def test_on_a_cluster(replayed: Replayed, scheduler: str, tmp_path: Path) -> None:
    """Where each part needs nothing but modules: hakmem's own is at the same path."""
    replayed.record("live")
    with _worker(scheduler, tmp_path), _worker(scheduler, tmp_path):
        found = replayed.figures(
            "--with", "hakmem,glibc", "--rounds", "4", "--speed", "0", "--cluster", scheduler
        )
    here = replayed.figures("--with", "hakmem,glibc", "--speed", "0")
    for name, rounds in found.items():
        assert len(rounds) == 4
        assert abs(rounds[0]["peak"] / here[name][0]["peak"] - 1) < 0.1


@pytest.mark.parametrize(
    "address",
    ["", "x", "tcp://127.0.0.1:x", "y://127.0.0.1:1", "tls://127.0.0.1:1", "tcp://127.0.0.1:1"],
)
def test_no_such_cluster(replayed: Replayed, address: str) -> None:
    pytest.importorskip("distributed")
    replayed.record("moves")
    _refused(replayed, address)


def test_a_cluster_that_does_not_answer(replayed: Replayed) -> None:
    """Something listens there, and says nothing."""
    pytest.importorskip("distributed")
    replayed.record("moves")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        _refused(replayed, f"tcp://127.0.0.1:{port}")


def test_a_cluster_without_workers(replayed: Replayed, scheduler: str) -> None:
    replayed.record("moves")
    assert "it has no workers" in _refused(replayed, scheduler)


def test_the_address_of_a_worker(replayed: Replayed, scheduler: str, tmp_path: Path) -> None:
    replayed.record("moves")
    with _worker(scheduler, tmp_path) as worker:
        assert "expected a scheduler's address" in _refused(replayed, worker)


def test_a_worker_that_lacks_modules(replayed: Replayed, scheduler: str, tmp_path: Path) -> None:
    replayed.record("moves")
    other = _other_python(tmp_path, "numpy")
    with _worker(scheduler, tmp_path), _worker(scheduler, tmp_path, other) as worker:
        said = _refused(replayed, scheduler)
    assert f"the worker {worker}: No module named 'zstandard'. The scheduler and each" in said


def test_a_scheduler_that_lacks_modules(replayed: Replayed, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    replayed.record("moves")
    with (
        _scheduler(_other_python(tmp_path), tmp_path) as scheduler,
        _worker(scheduler, tmp_path),
    ):
        said = _refused(replayed, scheduler)
    assert "the scheduler: No module named 'numpy'. The scheduler and each" in said


def test_without_dask(replayed: Replayed, tmp_path: Path) -> None:
    """In a Python that has all the rest."""
    replayed.record("moves")
    made = _other_python(tmp_path, "numpy", "zstandard")
    (site,) = made.parents[1].glob("lib/python*/site-packages")
    (site / "distributed").unlink()
    package = Path(__file__).parents[2] / "python" / "hakmem"
    done = ran(made, "-E", package, replayed.hakmem, replayed.library, "replay",
         "--cluster", "tcp://127.0.0.1:1", replayed.file, env=clean_environment())  # fmt: skip
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "needs the Python module distributed: " in done.stderr
    assert done.stderr.count("\n") == 1
