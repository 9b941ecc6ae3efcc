"""`hakmem run --profile`: a profile at every end of a process, a file for each, and what is said
where there is none."""

from __future__ import annotations

import platform
import re
import resource
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hakmem import heap_profile
from tests.leaks.test_run import CALLS, _without_ptrace
from tests.profile.planted import SECONDS, functions, named
from tests.ran import clean_environment
from tests.watch.watched import Command

KEPT = 100  # blocks
CHILDREN = 200
EVERY = ("-o", "profile_rate=1", "-o", "profile_samples=0")


@dataclass(frozen=True)
class Run:
    hakmem: Path
    plant: Path
    folder: Path

    def start(self, *words: str | Path, **more: object) -> subprocess.Popen[str]:
        others = clean_environment()
        return subprocess.Popen(  # type: ignore[no-any-return,call-overload]
            ["/bin/sh", self.hakmem, "run", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=self.folder,
            env=others,
            **more,
        )

    def __call__(self, *words: str | Path, **more: object) -> tuple[int, str, str]:
        process = self.start(*words, **more)
        out, err = process.communicate(timeout=SECONDS)
        return process.returncode, out, err

    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def kept(self, file: str, function: str) -> float:
        """Blocks in use."""
        stacks = named(self.folder / file).stacks
        return sum(one.figures[0] for one in stacks if function in functions(one))


@pytest.fixture
def run(command: Command, programs: Path, tmp_path: Path) -> Run:
    run = Run(command.path, programs / "profile_plant_ends", tmp_path)
    _, _, err = run("--leaks", "true")
    if "ptrace is not permitted" in err:
        pytest.skip(err.strip())
    return run


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ([], 0),
        (["_exit"], 4),
        (["quick_exit"], 5),
        (["abort"], -signal.SIGABRT),
        (["term"], -signal.SIGTERM),
        (["int"], -signal.SIGINT),
        (["handle", "term"], signal.SIGTERM),
        (["exec"], 0),
    ],
)
def test_every_end(end: list[str], status: int, run: Run) -> None:
    """Of a program that executes another, the other's: it has the memory."""
    words = ["keep", *end] if end != ["exec"] else ["exec", "keep"]
    assert run(*EVERY, "--profile=x.heap", run.plant, *words) == (status, "", "")
    assert run.files() == ["x.heap"] and run.kept("x.heap", "keep") == KEPT
    assert heap_profile.read(run.folder / "x.heap").pid is not None


@pytest.mark.parametrize(
    ("end", "status", "kept"), [(["tidy"], 0, KEPT), (["tidy", "exit"], 6, KEPT), (["leave"], 7, 0)]
)
def test_what_is_freed_at_the_end(end: list[str], status: int, kept: int, run: Run) -> None:
    """Was in use, if the process frees it because it ends. A search for leaks comes after that."""
    assert run(*EVERY, "--profile=x.heap", run.plant, "keep", *end) == (status, "", "")
    assert run.kept("x.heap", "keep") == kept
    _, _, err = run("--leaks", "--profile=y.heap", run.plant, "keep", *end)
    (line,) = err.splitlines()
    assert "): nothing is lost; reachable " in line
    assert run.kept("y.heap", "keep") == kept


def test_a_service(run: Run) -> None:
    """That a supervisor ends."""
    process = run.start(*EVERY, "--profile", run.plant, "keep", "wait")
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert (process.returncode, err) == (-signal.SIGTERM, "")
    assert run.files() == [f"profile_plant_ends.{process.pid}.heap"]
    assert run.kept(run.files()[0], "keep") == KEPT


@pytest.mark.parametrize("end", [[], ["_exit"], ["abort"]])
def test_a_child(end: list[str], run: Run) -> None:
    """Its file does not replace the program's."""
    run(*EVERY, "--profile=x.heap", run.plant, "keep", "fork", *end)
    child, own = run.files()
    assert own == "x.heap" and re.fullmatch(r"x\.[0-9]+\.heap", child)
    assert (run.kept(own, "keep"), run.kept(own, "keep_in_child")) == (KEPT, 0)
    assert (run.kept(child, "keep"), run.kept(child, "keep_in_child")) == (KEPT, KEPT)


def test_threads_at_their_own_end(run: Run) -> None:
    """One that is in it when its process ends has no stop there any more, or a late one."""
    assert run("--profile=x.heap", run.plant, "meet") == (0, "", "")
    assert len(run.files()) == 1 + CHILDREN


def test_names(run: Run) -> None:
    """Where the name has no dot, or the folder has one."""
    (run.folder / "a.b").mkdir()
    run("--profile=a.b/x", run.plant, "fork")
    child, own = sorted(path.name for path in (run.folder / "a.b").iterdir())[::-1]
    assert own == "x" and re.fullmatch(r"x\.[0-9]+", child)


def test_killed(run: Run) -> None:
    """Its memory goes at once."""
    status, _, err = run("--profile=x.heap", run.plant, "kill")
    assert status == -signal.SIGKILL and run.files() == []
    assert re.fullmatch(r"hakmem run: \S+ \([0-9]+\): no heap profile: .*SIGKILL.*\n", err)


WORKERS = """
import multiprocessing, os, sys
def work(n):
    kept.append(bytearray((n + 1) * 2**21))
    os.write(1, f"{os.getpid()} {n}\\n".encode())
kept = []
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    all = [context.Process(target=work, args=(n,)) for n in range(5)]
    for one in all: one.start()
    for one in all: one.join()
"""


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_multiprocessing(how: str, run: Run) -> None:
    """Its processes end by os._exit."""
    script = run.folder / "workers.py"
    script.write_text(WORKERS)
    status, out, err = run(*EVERY, "--profile=x.heap", sys.executable, script, how)
    assert (status, err) == (0, "")
    workers = [(int(pid), int(n)) for pid, n in map(str.split, out.splitlines())]
    assert len(workers) == 5 and "x.heap" in run.files()
    for pid, n in workers:
        sites = heap_profile.read(run.folder / f"x.{pid}.heap").sites
        assert (n + 1) * 2**21 + 1 in {site.figures[3] for site in sites}, (pid, n)


# ---- where there is none ----


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


@pytest.mark.parametrize("end", [[], ["_exit"], ["term"]])
def test_a_file_that_can_t_be_written(end: list[str], run: Run) -> None:
    """One line says why; the program ends as it would."""
    status = run(run.plant, "keep", *end)[0]
    ended, _, err = run("--profile=x.heap", run.plant, "keep", *end, preexec_fn=_small_files)
    assert ended == status and run.files() == []
    assert re.fullmatch(r"hakmem run: \S+ \([0-9]+\): no heap profile: \S+/x.heap: .*large\n", err)


def test_a_folder_that_goes(run: Run) -> None:
    (run.folder / "gone").mkdir()
    program = "rmdir gone; exit 3"
    status, _, err = run("--profile=gone/x.heap", "sh", "-c", program)
    assert status == 3 and err.count("\n") == err.count("/gone/x.") == 2, err


@pytest.mark.parametrize("option", ["profile_file", "stats_file"])
def test_files_of_options(option: str, run: Run) -> None:
    """Which the library writes: a signal for too large a file must not end the program."""
    words = ("-o", "profile=on", "-o", f"{option}={run.folder}/x")
    status, _, err = run(*words, run.plant, "keep", preexec_fn=_small_files)
    assert status == 0 and run.files() == []
    assert re.fullmatch(rf"hakmem: {option}: \S+/x: too large .*\n", err)


@pytest.mark.skipif(platform.machine() not in CALLS, reason="the number of the call is not known")
def test_without_ptrace(run: Run) -> None:
    """The program writes it at an orderly end, and this is said."""
    words = (*EVERY, "--profile=x.heap", run.plant, "keep")
    status, _, err = run(*words, preexec_fn=_without_ptrace)
    assert status == 0 and "ptrace is not permitted" in err and err.count("\n") == 1
    assert run.kept("x.heap", "keep") == KEPT


def test_a_run_in_a_run(run: Run) -> None:
    """Only the outer one can trace."""
    inner = ("/bin/sh", run.hakmem, "run", "--profile=inner.heap", run.plant, "keep")
    status, _, err = run(*EVERY, "--profile=x.heap", *inner)
    assert status == 0 and "ptrace is not permitted" in err
    assert run.kept("x.heap", "keep") == KEPT == run.kept("inner.heap", "keep")


def test_leaks_as_well(run: Run) -> None:
    status, _, err = run("--leaks", "--profile=x.heap", run.plant, "keep", "term")
    assert status == -signal.SIGTERM and "nothing is lost" in err and err.count("\n") == 1
    assert run.kept("x.heap", "keep") == KEPT


def test_no_hakmem(run: Run) -> None:
    status, _, err = run("--profile=x.heap", "env", "-u", "LD_PRELOAD", "sh", "-c", "exit 3")
    assert status == 3 and run.files() == []
    assert err == (
        "hakmem run: no process was profiled: none used hakmem at its end; "
        "'hakmem doctor -- PROGRAM' says why\n"
    )
