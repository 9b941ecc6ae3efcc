"""`hakmem run`: what the program gets, what its user sees, and what it costs."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from hakmem.table import gone, table
from tests.command.command import Built, clean_environment, library_of
from tests.ran import ran

SHOW = 'printf "%s\\n" "$LD_PRELOAD"; grep -c libhakmem /proc/$$/maps; printf "<%s>" "$@"'


def preloaded(built: Built) -> str:
    return f"{built.front.parent}/../libhakmem.so"


def test_it_is_in_force_and_passes_everything_on(built: Built) -> None:
    for words in ("run",), ("run", "--"):
        done = built(*words, "sh", "-c", SHOW, "sh", "a b", "", "--help", "-o", "*")
        preload, mappings, arguments = done.out.split("\n")
        assert (done.status, done.err, preload) == (0, "", preloaded(built))
        assert int(mappings) > 0
        assert arguments == "<a b><><--help><-o><*>"


def test_the_program_s_own_end(built: Built) -> None:
    assert built("run", "sh", "-c", "exit 42").status == 42
    assert built("run", "sh", "-c", "kill -TERM $$").status == -signal.SIGTERM


def test_what_is_already_preloaded(built: Built) -> None:
    ours = preloaded(built)
    other = str(library_of("libjemalloc.so.2"))
    for before, after in (
        (other, f"{ours}:{other}"),
        (f"{other}:{ours}", f"{ours}:{other}:{ours}"),
        (f"{ours}:{other}", f"{ours}:{other}"),
        (f"{ours} {other}", f"{ours} {other}"),
        (ours, ours),
        ("", ours),
    ):
        done = built("run", "sh", "-c", SHOW, LD_PRELOAD=before)
        assert done.out.splitlines()[0] == after, done


def test_a_run_in_a_run(built: Built) -> None:
    done = built("run", str(built.front), "run", "sh", "-c", SHOW)
    assert done.out.splitlines()[0] == preloaded(built)


@pytest.mark.parametrize(
    "words",
    [["-o", "stack_bytes=5"], ["-ostack_bytes=5"], ["--option=stack_bytes=5"],
     ["--option", "STACK_BYTES=4", "-o", "HAKMEM_stack_bytes=5", "--"]],
)  # fmt: skip
def test_options(words: list[str], built: Built) -> None:
    done = built("run", *words, "env")
    assert (done.status, done.err) == (0, ""), done
    assert "HAKMEM_STACK_BYTES=5" in done.out.splitlines()


def test_an_option_by_its_former_name(built: Built) -> None:
    """It is set by the name that it has, so that the caller's variable does not win."""
    print_it = ["sh", "-c", "echo $HAKMEM_KEEP_BYTES $HAKMEM_BIG_CACHE_BYTES"]
    done = built("run", "-o", "big_cache_bytes=3M", *print_it, HAKMEM_KEEP_BYTES="1M")
    assert (done.status, done.out, done.err) == (0, "3M\n", "")
    done = built("run", "-o", "big_cache_bytes=x", *print_it)
    assert done.status == 125 and "-o big_cache_bytes=x" in done.err


@pytest.mark.parametrize(("name", "instead"), [*gone().items()][:1])
def test_an_option_that_is_gone(name: str, instead: str, built: Built) -> None:
    for given in name, name.upper():
        done = built("run", "-o", f"{given}=1M", "echo", "ran")
        assert (done.status, done.out) == (125, "")
        assert done.err == (
            f"hakmem run: -o {given}=1M: there is no option '{given}' any more: {instead}; "
            "'hakmem options' lists the options\n"
        )


def test_every_option_is_known(built: Built, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.touch()
    values = {o.name: o.shown(o.value) for o in table()} | {"config": str(config)}
    for name, value in values.items():
        done = built("run", "-o", f"{name}={value}", "echo", "ran")
        assert (done.status, done.out, done.err) == (0, "ran\n", ""), done


@pytest.mark.parametrize(
    "setting",
    ["keep_bytes=auto", "keep_bytes=0", "keep_bytes=16MiB", "scavenger=YES", "huge_pages=0",
     "learn=off", "stack_bytes=1g",
     "STACK_BYTES=10", "learn_log=on"],
)  # fmt: skip
def test_what_the_library_takes_the_command_takes(setting: str, built: Built) -> None:
    done = built("run", "-o", setting, "echo", "ran")
    assert (done.status, done.out) == (0, "ran\n"), done
    name, _, value = setting.partition("=")
    shown = built("options", name.lower(), **{f"HAKMEM_{name.upper()}": value})
    assert "hakmem: environment" not in shown.err


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (
            "keep_bytes=banana",
            "expected auto or a size from 0 to 1024G (in bytes, or with K, M or G)",
        ),
        ("keep_bytes=", "expected a value"),
        ("stats_file=", "expected a value"),
        (
            "keep_bytes=1025G",
            "expected auto or a size from 0 to 1024G (in bytes, or with K, M or G)",
        ),
        ("stack_bytes=auto", "expected a size from 0 to 1G (in bytes, or with K, M or G)"),
        ("stack_bytes=2G", "expected a size from 0 to 1G (in bytes, or with K, M or G)"),
        ("stack_bytes=1 ; 2", "expected a size from 0 to 1G (in bytes, or with K, M or G)"),
        ("scavenger=maybe", "expected on or off"),
        ("stats=never", "expected exit or off"),
        ("config=/no/such/file", "cannot be read: there is no such file"),
    ],
)
def test_a_value_that_is_not_allowed(setting: str, expected: str, built: Built) -> None:
    """Whatever is set around: only what -o says is judged."""
    done = built("run", "-o", setting, "echo", "ran", HAKMEM_LERN="1", HAKMEM_SCAVENGER="perhaps")
    line = f"hakmem run: -o {setting}: {expected}; 'hakmem options' lists what is allowed\n"
    assert (done.status, done.out, done.err) == (125, "", line)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("nosuch", None), ("stack_byts", "stack_bytes"), ("Stack_Bytse", "stack_bytes"),
     ("HAKMEM_keep_bites", "keep_bytes"), ("keep_by", "keep_bytes")],
)  # fmt: skip
def test_a_name_that_is_no_option_s(name: str, nearest: str | None, built: Built) -> None:
    for words in ("--",), ():
        done = built("run", "-o", f"{name}=1", *words, "true")
        assert (done.status, done.out) == (125, ""), done
        meant = "" if nearest is None else f"; the nearest is {nearest}"
        assert done.err == (
            f"hakmem run: -o {name}=1: there is no option '{name}'{meant}; 'hakmem options' lists"
            " the options\n"
        )


SHELL = "ls -d /; ls -d /; sh -c 'ls -d /; ls -d /'"  # true would not allocate at all


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_what_is_wrong_is_told_once(shell: str, built: Built) -> None:
    """By the first of many programs, and in the next run again."""
    wrong = {"HAKMEM_LERN": "off", "HAKMEM_SCAVENGER": "maybe", "HAKMEM_OF_A_SCRIPT": "1"}
    for more in {}, {"HAKMEM_STACK_BYTES": "many"}:
        done = built("run", shell, "-c", SHELL, **wrong, **more)
        assert (done.status, done.out) == (0, "/\n" * 4)
        assert done.err.count("HAKMEM_LERN: there is no such option") == 1
        assert done.err.count("HAKMEM_SCAVENGER=maybe: expected on or off") == 1
        assert done.err.count("\n") == 2 + len(more)


def test_a_variable_of_a_script_is_told_nowhere(built: Built) -> None:
    done = built("run", "sh", "-c", SHELL, HAKMEM_BUILD_DIR="/x", HAKMEM_X="1")
    assert (done.status, done.err) == (0, "")


@pytest.mark.parametrize(
    ("words", "status", "line"),
    [
        ([], 125, "expected a program"),
        (["--"], 125, "expected a program"),
        (["-x", "true"], 125, "-x: unknown option"),
        (["--nonsense"], 125, "--nonsense: unknown option"),
        (["-o"], 125, "expected NAME=VALUE"),
        (["-o", "stack_bytes", "true"], 125, "expected NAME=VALUE"),
        (["-o", "a b=1", "true"], 125, "'a b' is not the name of an option"),
        (["-o", "stack_byts=5", "true"], 125, "there is no option 'stack_byts'"),
        (["-ohakmem_x=5", "true"], 125, "there is no option 'hakmem_x'"),
        (["-o", "stack_bytes thread_bytes=5", "true"], 125, "is not the name of an option"),
        (["no-such-program"], 127, "no-such-program: no such program in PATH"),
        (["--", "-r"], 127, "-r: no such program in PATH"),
        (["./no-such-file"], 127, "./no-such-file: there is no such file"),
        (["/etc/passwd"], 126, "/etc/passwd: cannot be executed"),
        (["/"], 126, "/: cannot be executed"),
    ],
)
def test_wrong_usage(words: list[str], status: int, line: str, built: Built) -> None:
    done = built("run", *words)
    assert (done.status, done.out) == (status, ""), done
    assert done.err.startswith("hakmem run: ") and done.err.count("\n") == 1
    assert line in done.err


def test_with_assertions(built: Built) -> None:
    """Before whatever else is preloaded, and with options as always."""
    debug = f"{built.front.parent}/../libhakmem-debug.so"
    done = built("run", "--debug", "-o", "keep_bytes=1M", "sh", "-c", SHOW, "sh", "--debug")
    preload, mappings, arguments = done.out.split("\n")
    assert (done.status, done.err, preload) == (0, "", debug)
    assert int(mappings) > 0 and arguments == "<--debug>"
    done = built("run", "--debug", "sh", "-c", SHOW, LD_PRELOAD=preloaded(built))
    assert done.out.splitlines()[0] == f"{debug}:{preloaded(built)}"


def test_the_doctor_knows_the_library_with_assertions(built: Built) -> None:
    done = built("run", "--debug", str(built.front), "doctor", "--", "ls", "-d", "/")
    assert done.status == 0, done


def test_help(built: Built) -> None:
    done = built("run", "--help")
    assert done.status == 0 and "examples:" in done.out and "125" in done.out


# ---- where the command lies ----


def copy(built: Built, folder: Path, library: bool = True) -> Path:
    """The command and its library elsewhere."""
    (folder / "bin").mkdir(parents=True)
    if library:
        shutil.copy(built.library, folder / "libhakmem.so")
    return Path(shutil.copy(built.front, folder / "bin"))


def test_without_the_library_with_assertions(built: Built, tmp_path: Path) -> None:
    front = copy(built, tmp_path / "here")
    done = ran(front, "run", "--debug", "true")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (125, "", 1)
    missing = tmp_path / "here/bin/../libhakmem-debug.so"
    assert f"{missing} is not installed: install the Debian package hakmem-debug" in done.stderr
    assert subprocess.run([front, "run", "true"]).returncode == 0


@pytest.mark.parametrize("way", ["link", "links", "PATH", "relative", "sh"])
def test_however_it_is_called(way: str, built: Built, tmp_path: Path) -> None:
    front = copy(built, tmp_path / "here")
    (tmp_path / "link").symlink_to(front)
    (tmp_path / "links").symlink_to("link")
    (tmp_path / "folder").symlink_to(front.parent)
    command = {
        "link": [str(tmp_path / "link")],
        "links": ["./links"],
        "PATH": ["hakmem"],
        "relative": ["folder/../../here/bin/hakmem"],
        "sh": ["sh", "here/bin/hakmem"],
    }[way]
    # A relative path would be lost on the way to another folder.
    script = ("cd / && exec sh -c 'grep -c $0 /proc/$$/maps' $0", tmp_path / "here/libhakmem.so")
    environment = clean_environment() | {"PATH": f"{front.parent}:{os.environ['PATH']}"}
    done = ran(*command, "run", "sh", "-c", *script, env=environment, cwd=tmp_path)
    assert done.returncode == 0 and int(done.stdout) > 0, done


def test_its_library_is_missing(built: Built, tmp_path: Path) -> None:
    done = ran(copy(built, tmp_path / "here", library=False), "run", "true")
    assert (done.returncode, done.stdout) == (125, "")
    assert "libhakmem.so: cannot be read; install hakmem again" in done.stderr


@pytest.mark.parametrize("name", ["a b", "a:b", "a\tb", "a$LIB"])
def test_paths_that_the_loader_can_t_preload(name: str, built: Built, tmp_path: Path) -> None:
    front = copy(built, tmp_path / name)
    done = ran(front, "run", "true")
    assert (done.returncode, done.stdout) == (125, "")
    assert "the loader preloads no file with" in done.stderr


def test_a_current_folder_that_is_gone(built: Built, tmp_path: Path) -> None:
    """A profile would be written into the root folder."""
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'cd "$0" && rmdir "$0" && exec "$@"'
    words = ["sh", "-c", script, str(gone), str(built.front), "run"]
    for more, status, said in (
        (["--profile"], 125, "hakmem run: --profile: "),
        (["--profile=x.heap"], 125, "hakmem run: --profile: "),
        ([f"--profile={tmp_path}/x.heap"], 0, ""),
        ([], 0, ""),
    ):
        gone.mkdir(exist_ok=True)
        done = subprocess.run([*words, *more, "true"], capture_output=True, text=True)
        lines = [line for line in done.stderr.splitlines() if "getcwd() failed" not in line]
        assert done.returncode == status and len(lines) == (status != 0), done
        assert "".join(lines).startswith(said), done
    assert [path.name for path in tmp_path.iterdir()] == ["x.heap"]


# ---- what it costs ----


def calls_of(command: list[str], folder: Path) -> list[str]:
    """The names of the system calls of a command, up to the exec of /bin/true and without it."""
    trace = folder / "trace"
    done = subprocess.run(
        ["strace", "-f", "-o", str(trace), *command], env=clean_environment(), capture_output=True
    )
    assert done.returncode == 0, done.stderr
    lines = trace.read_text().splitlines()
    (last,) = (at for at, line in enumerate(lines) if 'execve("/bin/true"' in line)
    return [line.split(maxsplit=1)[1].split("(")[0] for line in lines[:last]]


def test_it_costs_what_a_shell_script_costs(built: Built, tmp_path: Path) -> None:
    """No process, and beside those of env and a shell that reads its script a handful of system
    calls: is the command a link, can the library be read, can the program be executed, and can
    the library be loaded into it."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    if subprocess.run(["strace", "-f", "true"], capture_output=True).returncode:
        pytest.skip("strace cannot trace here")
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\nexec env LD_PRELOAD={shlex.quote(str(built.library))} "$@"\n')
    script.chmod(0o755)
    plain = calls_of([str(script), "/bin/true"], tmp_path)
    ours = calls_of([str(built.front), "run", "/bin/true"], tmp_path)
    print(f"\n{len(ours)} system calls, {len(plain)} of a script of two lines")
    assert not {"clone", "clone3", "fork", "vfork"} & set(ours)
    assert len(ours) <= len(plain) + 10
