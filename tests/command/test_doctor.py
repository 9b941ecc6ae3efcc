"""Each cause is made real, and `hakmem doctor` must name it: for a program that it runs, or for a
process."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hakmem import elf, judge, process
from tests.command.command import (
    Built,
    Programs,
    go_program,
    is_in_force,
    is_not,
    library_of,
    link_target,
    waiting,
)
from tests.nobody import NOBODY, as_nobody, public_folder, readable_by_nobody
from tests.ran import ran

OWN = Path(__file__).parent / "programs/own.c"


# ---- in force ----


def test_the_installation(built: Built) -> None:
    done = built("doctor")
    assert done.status == 0, done
    assert done.out.startswith("hakmem is active in ")
    assert f"realloc and free to hakmem ({built.library})" in " ".join(done.out.split())


def test_a_program(built: Built, programs: Programs) -> None:
    answer = built.doctor("--", programs.blocks)
    is_in_force(answer)
    assert str(built.library.resolve()) in answer.programs[0]["proof"]
    assert answer.err == "ready\n"  # its standard output


def test_a_process(built: Built, programs: Programs) -> None:
    with waiting([built.front, "run", programs.blocks, "wait"]) as pid:
        answer = built.doctor(str(pid))
    is_in_force(answer)
    assert answer.programs[0]["pid"] == pid


@pytest.mark.parametrize("name", ["fourteen_bytesé", "a\x1b[31mred\nname", "b\udcff\udcfe"])
def test_names_of_any_bytes(built: Built, programs: Programs, tmp_path: Path, name: str) -> None:
    """The kernel cuts the first at 15 bytes, within a letter. What is printed is text."""
    program = tmp_path / name
    shutil.copy(programs.make("threads", source="threads"), program)
    answer = built.doctor("--", program)
    is_in_force(answer)
    assert answer.programs[0]["path"] == str(program)
    done = built("doctor", "--", program)
    assert done.status == 0, done
    first, _, rest = done.out.partition("\n")
    assert first.startswith(f"hakmem is active in {tmp_path}/{name[0]}")
    assert done.out.replace("\n", "").isprintable() and rest.startswith("\n  proof")


def test_its_children_too(built: Built, programs: Programs) -> None:
    blocks = programs.blocks
    answer = built.doctor("--", "sh", "-c", f"{blocks}; {blocks} & wait")
    is_in_force(answer)
    assert [program["path"] for program in answer.programs].count(str(blocks)) == 2


def test_the_first_thread_ends_first(built: Built, programs: Programs) -> None:
    is_in_force(built.doctor("--", programs.make("threads", source="threads")))


@pytest.mark.parametrize("flags", [[], ["-static"]], ids=["dynamic", "static"])
def test_linked_in(flags: list[str], built: Built, programs: Programs) -> None:
    program = programs.make("linked-in" + "".join(flags), built.archive, *flags)
    is_in_force(built.doctor("--", program))
    with waiting([program, "wait"]) as pid:
        is_in_force(built.doctor(str(pid)))


@pytest.mark.parametrize("library", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"])
def test_before_what_is_linked_or_preloaded(library: str, built: Built, programs: Programs) -> None:
    other = library_of(library)
    is_in_force(built.doctor("--", programs.blocks, LD_PRELOAD=str(other)))
    is_in_force(built.doctor("--", programs.make(f"with-{library}", other)))


def test_started_by_the_loader(built: Built, programs: Programs) -> None:
    loader = elf.read(programs.blocks).interpreter
    assert loader is not None
    is_in_force(built.doctor("--", loader, programs.blocks))
    with waiting([loader, programs.blocks, "wait"]) as pid:
        is_not(built.doctor(str(pid)), "not-asked")


def test_what_python_ignores_it_does_not(built: Built) -> None:
    command = ["--", "grep", "^SigIgn:", "/proc/self/status"]
    answer = built.doctor(*command)
    is_in_force(answer)
    assert answer.err == built("run", *command).out


def test_names_that_are_no_text(
    built: Built, programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = os.fsdecode(b"caf\xe9")
    shutil.copy(programs.blocks, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    for words in ("--", f"./{name}"), ("--", "sh", "-c", "exit 0", name):
        # Not a locale with which Python is lenient by itself.
        done = built("doctor", *words, LC_ALL="C.utf-8")
        assert done.status == 0 and re.search(r"caf(\\udce9|\?)", done.out), done


# ---- not in force: the program ----


def test_static(built: Built, programs: Programs) -> None:
    program = programs.make("static", "-static")
    is_not(built.doctor("--", program), "static")
    with waiting([built.front, "run", program, "wait"]) as pid:
        is_not(built.doctor(str(pid)), "static")
    is_not(built.doctor("--", programs.make("static-pie", "-static-pie")), "static")


def test_static_and_stripped(built: Built, programs: Programs) -> None:
    """It holds hakmem, but nobody can say whether its malloc is hakmem's."""
    answer = built.doctor("--", programs.make("stripped", built.archive, "-static", "-s"))
    assert (answer.status, answer.causes) == (3, ["stripped"]), answer


def test_go(built: Built, tmp_path: Path) -> None:
    program = go_program('package main\n\nfunc main() { println("ready") }\n', tmp_path)
    is_not(built.doctor("--", program), "go")


def test_a_malloc_of_its_own(built: Built, programs: Programs) -> None:
    answer = built.doctor("--", programs.make("own", OWN))
    is_not(answer, "own")
    assert "a malloc of its own" in answer.text


def test_a_malloc_of_its_own_that_it_hides(built: Built, programs: Programs) -> None:
    answer = built.doctor("--", programs.make("hidden", OWN, "-DHIDDEN"))
    assert (answer.status, answer.verdict, answer.causes) == (1, "in part", ["own"]), answer


def test_a_library_that_calls_its_own(built: Built, programs: Programs) -> None:
    library = programs.make("deep.so", OWN, "-DLIBRARY", "-shared", "-fPIC", source="deep")
    program = programs.make("deep", "-ldl", source="deep")
    answer = built.doctor("--", program, library)
    assert (answer.status, answer.verdict, answer.causes) == (1, "in part", ["bound"]), answer
    assert f"{library} use the malloc of {library}" in answer.text


def test_musl(built: Built, programs: Programs) -> None:
    program = programs.make("musl", by="musl-gcc")
    is_not(built.doctor("--", program), "musl")


def test_another_processor(built: Built, programs: Programs) -> None:
    for flags in [], ["-static"]:
        name = "aarch64" + "".join(flags)
        program = programs.make(name, *flags, by="aarch64-linux-gnu-gcc")
        answer = built.doctor("--", program)
        is_not(answer, "architecture")
        assert "AArch64, 64 bits" in answer.text


def test_32_bits(built: Built, tmp_path: Path) -> None:
    program = tmp_path / "program"
    source = 'void _start(void) { __asm__ volatile("int $0x80" : : "a"(1), "b"(0)); }'
    command = ["gcc", "-m32", "-nostdlib", "-static", "-x", "c", "-", "-o", str(program)]
    ran(*command, input=source, check=True)
    answer = built.doctor("--", program)
    is_not(answer, "architecture")
    assert "x86, 32 bits" in answer.text


# ---- not in force: raised privileges ----


@pytest.mark.parametrize("mode", [0o4755, 0o2755])
def test_setuid(mode: int, built: Built, programs: Programs) -> None:
    nobody = as_nobody()
    with public_folder() as folder:
        program = Path(shutil.copy(programs.blocks, folder))
        os.chown(program, NOBODY - 1, NOBODY - 1)
        program.chmod(mode)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            pytest.skip(f"files in {folder.parent} give no privileges (mounted nosuid)")
        command = [*nobody, str(program)]
        is_not(built.doctor("--", *command), "privileged")
        with waiting([built.front, "run", *command, "wait"]) as pid:
            is_not(built.doctor(str(pid)), "privileged")
        readable_by_nobody(built.library)
        readable_by_nobody(Path(__file__).parents[2] / "python/hakmem/cli.py")
        answer = built.doctor("--", program, by=nobody)
        is_not(answer, "privileged")
        assert answer.err == ""  # not run: being traced would have taken its privileges


def test_capabilities(built: Built, programs: Programs) -> None:
    nobody = as_nobody()
    if shutil.which("setcap") is None:
        pytest.skip("setcap is not installed")
    with public_folder() as folder:
        program = Path(shutil.copy(programs.blocks, folder))
        subprocess.run(["setcap", "cap_net_raw+ep", str(program)], check=True)
        is_not(built.doctor("--", *nobody, str(program)), "privileged")


# ---- not in force: how it was started ----


def test_nobody_asked(built: Built, programs: Programs) -> None:
    with waiting([programs.blocks, "wait"]) as pid:
        answer = built.doctor(str(pid))
        is_not(answer, "not-asked")
        assert f"hakmem run {programs.blocks} wait" in answer.text


@pytest.mark.parametrize("wrapper", ["env -i {}", "env -u LD_PRELOAD {}", "{script} {}"])
def test_a_wrapper(wrapper: str, built: Built, programs: Programs, tmp_path: Path) -> None:
    script = tmp_path / "wrapper"
    script.write_text('#!/bin/sh\nunset LD_PRELOAD\n"$@"\n')
    script.chmod(0o755)
    command = wrapper.format(programs.blocks, script=script).split()
    answer = built.doctor("--", *command)
    assert answer.status == 1
    assert answer.causes == ["dropped"], answer
    assert Path(command[0]).name in answer.text


def test_a_wrapper_of_a_process(built: Built, programs: Programs) -> None:
    # A job in the background has no standard input of its own accord.
    script = f"exec 3<&0; env -i {programs.blocks} wait <&3 & wait"
    with waiting([built.front, "run", "sh", "-c", script]) as pid:
        (child,) = (
            int(path.name)
            for path in Path("/proc").glob("[0-9]*")
            if link_target(path / "exe") == str(programs.blocks) and _descends(int(path.name), pid)
        )
        answer = built.doctor(str(child))
        is_not(answer, "dropped")
        assert "/dash" in answer.text or "/sh" in answer.text or "/bash" in answer.text


def _descends(pid: int, ancestor: int) -> bool:
    while pid > 1 and pid != ancestor:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            return False  # it has ended
        pid = int(stat.rpartition(")")[2].split()[1])
    return pid == ancestor


@pytest.mark.parametrize("library", ["libjemalloc.so.2", "libmimalloc.so.2"])
def test_another_preloaded_first(library: str, built: Built, programs: Programs) -> None:
    other = library_of(library)
    for preload in f"{other}:{built.library}", f"{other} {built.library}", str(other):
        with waiting([programs.blocks, "wait"], {"LD_PRELOAD": preload}) as pid:
            answer = built.doctor(str(pid))
            is_not(answer, "preloaded")
            assert library[3:11] in answer.text


def test_the_machine_s_list(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ld.so.preload").write_text("# /x/libhakmem.so\n/a.so:/b.so # c.so\n\t/d.so\n")
    program = process.Program(0, "p", ["p"], {"LD_PRELOAD": "/e.so"}, False, 0, [], tmp_path, None)
    assert program.preloads == ["/e.so", "/a.so", "/b.so", "/d.so"]
    assert program.asks_for is None


def test_another_linked(built: Built, programs: Programs) -> None:
    program = programs.make("with-jemalloc", library_of("libjemalloc.so.2"))
    with waiting([program, "wait"]) as pid:
        answer = built.doctor(str(pid))
        is_not(answer, "linked")
        assert "jemalloc" in answer.text


# ---- not in force: the library ----


def test_no_such_library(built: Built, programs: Programs, tmp_path: Path) -> None:
    missing = tmp_path / "libhakmem.so"
    with waiting([programs.blocks, "wait"], {"LD_PRELOAD": str(missing)}) as pid:
        answer = built.doctor(str(pid))
        is_not(answer, "missing")
        assert str(missing) in answer.text


def test_a_library_by_its_name_alone(built: Built, programs: Programs) -> None:
    name = "libhakmem.so"
    with waiting([programs.blocks, "wait"], {"LD_PRELOAD": name}) as pid:
        is_not(built.doctor(str(pid)), "missing")
    folder = str(built.library.parent)
    variables = {"LD_PRELOAD": name, "LD_LIBRARY_PATH": folder}
    with waiting([programs.blocks, "wait"], variables) as pid:
        is_in_force(built.doctor(str(pid)))


def test_a_library_that_is_none_or_cut_off(
    built: Built, programs: Programs, tmp_path: Path
) -> None:
    part = tmp_path / "libhakmem.so"
    whole = built.library.read_bytes()
    # A program that is given more of it ends in the loader.
    for data in b"nothing\n", whole[:5], whole[:100]:
        part.write_bytes(data)
        with waiting([programs.blocks, "wait"], {"LD_PRELOAD": str(part)}) as pid:
            is_not(built.doctor(str(pid)), "damaged")


def test_a_library_for_another_processor(built: Built, programs: Programs) -> None:
    flags = ["-DLIBRARY", "-shared", "-fPIC"]
    library = programs.make("libhakmem.so", *flags, by="aarch64-linux-gnu-gcc", source="deep")
    with waiting([programs.blocks, "wait"], {"LD_PRELOAD": str(library)}) as pid:
        is_not(built.doctor(str(pid)), "library-architecture")


def test_a_library_that_may_not_be_read(built: Built, programs: Programs) -> None:
    nobody = as_nobody()
    with public_folder() as folder:
        program = Path(shutil.copy(programs.blocks, folder))
        library = Path(shutil.copy(built.library, folder / "libhakmem.so"))
        command = [*nobody, "env", f"LD_PRELOAD={library}", str(program), "wait"]
        library.chmod(0o600)
        with waiting(command) as pid:
            is_not(built.doctor(str(pid)), "unreadable")
        library.chmod(0o644)
        with waiting(command) as pid:
            is_in_force(built.doctor(str(pid)))


def test_a_library_that_only_the_program_sees(built: Built, programs: Programs) -> None:
    """In a container's file system the same name is another file, or none."""
    nobody = as_nobody()
    mount = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"']
    with public_folder() as folder:
        tried = ran(*mount, str(folder), "true")
        if tried.returncode:
            pytest.skip(f"nothing can be mounted here: {tried.stderr.strip()}")
        script = f"cp {built.library} {folder}/libhakmem.so && cp {programs.blocks} {folder}"
        script += (
            f' && chmod $0 {folder}/libhakmem.so && LD_PRELOAD={folder}/libhakmem.so exec "$@"'
        )
        for mode, causes in ("600", ["unreadable"]), ("644", []):
            command = [*nobody, str(folder / "blocks"), "wait"]
            with waiting([*mount, str(folder), "sh", "-c", script, mode, *command]) as pid:
                assert built.doctor(str(pid)).causes == causes


def test_a_library_on_noexec(built: Built, programs: Programs, tmp_path: Path) -> None:
    apart = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c"]
    mount = 'mount -t tmpfs -o noexec none "$0" && exec "$@"'
    tried = ran(*apart, mount, str(tmp_path), "true")
    if tried.returncode:
        pytest.skip(f"nothing can be mounted here: {tried.stderr.strip()}")
    script = f'cp {built.library} "$0/libhakmem.so" && LD_PRELOAD=$0/libhakmem.so exec "$@"'
    command = [
        *apart,
        mount,
        str(tmp_path),
        "sh",
        "-c",
        script,
        str(tmp_path),
        str(programs.blocks),
    ]
    with waiting([*command, "wait"]) as pid:
        is_not(built.doctor(str(pid)), "noexec")


def test_an_installation_without_its_library(built: Built, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    alone = Built(Path(shutil.copy(built.front, tmp_path / "bin")), built.library, built.archive)
    for words in (), ("--", "true"):
        is_not(alone.doctor(*words), "no-library")
    whole = built.library.read_bytes()
    for part in b"nothing\n", whole[:100], whole[:1000], whole[:50_000], whole[:-1000]:
        (tmp_path / "libhakmem.so").write_bytes(part)
        is_not(alone.doctor(), "damaged")


def test_an_installation_that_is_made_for_another_system(
    built: Built, programs: Programs, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    front = Path(shutil.copy(built.front, tmp_path / "bin"))
    flags = ["-DLIBRARY", "-shared", "-fPIC"]
    needed = programs.make("libneeded.so", *flags, source="deep")
    library = programs.make("needs.so", *flags, "-Wl,--no-as-needed", needed, source="deep").rename(
        tmp_path / "libhakmem.so"
    )
    needed.unlink()
    broken = Built(front, library, built.archive)
    is_not(broken.doctor(), "not-loaded")
    answer = broken.doctor("--", programs.blocks)  # it ends in the loader
    is_not(answer, "refused")
    assert str(needed) in answer.err


# ---- what can't be told, and wrong usage ----


def test_no_such_process_or_program(built: Built, programs: Programs) -> None:
    text = programs.folder / "text"
    text.write_text("no program\n")
    for words, line in (
        (["--", "no-such-program"], "there is no such program"),
        (["--", str(text)], "cannot be executed"),
        (["ls"], "expected a PID"),
        (["1", "--", "ls"], "not both"),
        (["--seconds", "-1", "--", "ls"], "above 0"),
        (["--seconds", "inf", "--", "ls"], "above 0"),
        (["9" * 5000], "expected a PID"),
        (["--nonsense"], "unrecognized"),
    ):
        done = built("doctor", *words)
        assert (done.status, done.out) == (2, ""), done
        assert line in done.err


def test_a_process_of_another_user(built: Built, programs: Programs) -> None:
    nobody = as_nobody()
    readable_by_nobody(Path(__file__).parents[2] / "python/hakmem/cli.py")
    with waiting([programs.blocks, "wait"]) as pid:
        done = built("doctor", str(pid), by=nobody)
    assert (done.status, done.out) == (3, ""), done
    assert f"sudo hakmem doctor {pid}" in done.err


def test_a_library_that_is_no_longer_there(built: Built, programs: Programs) -> None:
    """Removed or replaced by a newer one while the program runs: it is in force all the same."""
    nobody = as_nobody()
    readable_by_nobody(Path(__file__).parents[2] / "python/hakmem/cli.py")
    with public_folder() as folder:
        program = Path(shutil.copy(programs.blocks, folder))
        library = Path(shutil.copy(built.library, folder / "libhakmem.so"))
        command = [*nobody, "env", f"LD_PRELOAD={library}", str(program), "wait"]
        with waiting(command) as pid:
            library.unlink()
            for again in False, True:
                if again:
                    shutil.copy(built.library, library)
                is_in_force(built.doctor(str(pid)))
                answer = built.doctor(str(pid), by=nobody)
                assert (answer.status, answer.causes) == (3, ["deleted"]), answer
                assert str(library) in answer.text


def test_where_nobody_may_trace(built: Built, tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    if subprocess.run(["strace", "-f", "true"], capture_output=True).returncode:
        pytest.skip("strace cannot trace here")
    done = built("doctor", "--", "true", by=["strace", "-f", "-o", str(tmp_path / "trace")])
    assert (done.status, done.out) == (3, ""), done
    assert "may not be traced here" in done.err


def test_where_memory_may_not_be_read(built: Built, programs: Programs) -> None:
    """As under Yama, which lets a user see what is mapped and not what is in it: then the loader's
    order decides, and where it doesn't, nothing is claimed."""
    jemalloc = library_of("libjemalloc.so.2")

    def judged(preload: str) -> tuple[str, list[str]]:
        with waiting([programs.blocks, "wait"], {"LD_PRELOAD": preload}) as pid:
            program = process.program(pid)
            program.picture = replace(process.look(pid), calls=None)
            judgement = judge.judge(program, built.library)
        return judgement.verdict, [cause.id for cause in judgement.causes]

    assert judged(str(built.library)) == ("in force", [])
    assert judged(f"{built.library}:{jemalloc}") == ("unknown", ["memory"])
    assert judged(str(jemalloc)) == ("not in force", ["preloaded"])
    assert judged("") == ("not in force", ["not-asked"])
