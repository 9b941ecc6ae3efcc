"""`hakmem replay` as a user meets it."""

from __future__ import annotations

import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.counts.work import clean_environment
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
    done = subprocess.run(
        [str(replayed.hakmem), "replay", str(replayed.file)],
        capture_output=True,
        text=True,
        env=clean_environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20)),
    )
    assert done.returncode == 1
    assert "File too large; TMPDIR can name a folder with more room" in done.stderr


def test_nothing_to_replay(replayed: Replayed) -> None:
    replayed.file.write_bytes(b"something else\n")
    said = replayed.replay(str(replayed.file), status=1).stderr
    assert "not a recording of hakmem" in said
    said = replayed.replay(str(replayed.folder / "none"), status=1).stderr
    assert "No such file" in said


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("--with", "hackmem"), 2, "nothing is called hackmem"),
        (("--with", "hakmem+nonsense=1"), 125, "there is no option 'nonsense'"),
        (("--process", "1"), 1, "has no process 1"),
        (("-o", "a.txt"), 2, "expected a name that ends in"),
        (("-o", "/none/a.html"), 5, "no such folder"),
        (("--cluster", "tcp://127.0.0.1:1"), 2, "--cluster"),
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


def test_on_a_cluster(replayed: Replayed) -> None:
    distributed = pytest.importorskip("distributed")
    replayed.record("live")
    with distributed.LocalCluster(
        n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        found = replayed.figures(
            "--with", "hakmem,glibc", "--rounds", "4", "--speed", "0",
            "--cluster", cluster.scheduler_address,
        )  # fmt: skip
    here = replayed.figures("--with", "hakmem,glibc", "--speed", "0")
    for name, rounds in found.items():
        assert len(rounds) == 4
        assert abs(rounds[0]["peak"] / here[name][0]["peak"] - 1) < 0.1
