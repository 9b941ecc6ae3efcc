"""Where calls were: in modules that were closed, in code without unwind tables, and in files that
are not here, or only their debug files at a server."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hakmem import heap_profile, perf_map, symbols
from tests import inside
from tests.profile.planted import (
    SECONDS,
    Planted,
    by_function,
    functions,
    line_of,
    named,
    near,
    profile_of,
)
from tests.ran import ran
from tests.watch.watched import Command

PLUGGED = 2048 * 16384  # by each plug-in
MADE = 64 * 2**20  # below code that was made where a plug-in had been
KEPT = 4096 * 16384  # by each of the ways of the program without tables
EXACT = ["-o", "profile_rate=16K", "-o", "profile_samples=0"]

x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="needs x86-64")


def run(command: Command, *words: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    done = inside.run(command.path, *map(str, words), seconds=SECONDS, folder=folder)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def plugs(planted: Planted, tmp_path: Path) -> list[str]:
    """The command line of a program that closes two plug-ins, which it names by relative paths."""
    for name in "first", "second":
        shutil.copy(planted.programs / f"libprofile_plug_{name}.so", tmp_path / f"{name}.so")
    shutil.copy(planted.programs / "profile_plant_plugs", tmp_path / "plugs")
    return ["./plugs", "./first.so", "plug_first", "./second.so", "plug_second"]


def test_closed(command: Command, plugs: list[str], tmp_path: Path) -> None:
    """The second lies where the first lay, so far as the kernel and the loader do as they do."""
    done = run(command, "run", "--profile=x.heap", *EXACT, *plugs, folder=tmp_path)
    assert len(set(done.stdout.splitlines())) == 1, "the plug-ins lay at different addresses"
    profile = named(tmp_path / "x.heap")
    for name in "plug_first", "plug_second":
        stack = by_function(profile, name)
        assert near(stack.figures[1], PLUGGED)
        assert functions(stack)[:2] == [name, "main"]
        assert stack.lines()[0].where.endswith(f"plug.c:{line_of('plug.c', 'plug')}")


def test_closed_and_lost(command: Command, plugs: list[str], tmp_path: Path) -> None:
    run(command, "run", "--leaks=x.heap", *plugs, folder=tmp_path)
    assert {"plug_first", "plug_second"} <= {
        name for stack in named(tmp_path / "x.heap").stacks for name in functions(stack)
    }


def test_closed_in_a_recording(command: Command, plugs: list[str], tmp_path: Path) -> None:
    again = [*plugs[1:3], *plugs[1:5], *plugs[3:5]]
    words = ["record", "-o", "x.recording", "--", *plugs, *again]
    done = run(command, *words, folder=tmp_path)
    addresses = re.findall("^0x[0-9a-f]+$", done.stdout, re.M)
    assert len(addresses) == 6 and len(set(addresses)) == 1, "they lay at different addresses"
    done = run(command, "trace", "x.recording", folder=tmp_path)
    for name in "first", "second":
        row = rf"96\.0 MiB +\d+\.\d +6,144  plug_{name} \(plug\.c:\d+\) < main"
        assert re.search(row, done.stdout), done.stdout


def test_elsewhere(command: Command, plugs: list[str], tmp_path: Path) -> None:
    """With names written into the profile, none of the files has to be there."""
    run(command, "run", "--profile=x.heap", *EXACT, *plugs, folder=tmp_path)
    run(command, "profile", "-o", "names.heap", "x.heap", folder=tmp_path)
    run(command, "profile", "-o", "again.heap", "names.heap", folder=tmp_path)
    there = (tmp_path / "names.heap").read_text()
    assert (tmp_path / "again.heap").read_text() == there
    before = named(tmp_path / "x.heap")
    away = heap_profile.parse(re.sub(r" /\S+(?=\n)", r" /nowhere/file", there), "away")
    after = symbols.named(away)
    for name in "plug_first", "plug_second":
        one, other = by_function(before, name), by_function(after, name)
        assert one.lines() == other.lines() and one.figures == other.figures
    assert not symbols.named(heap_profile.read(tmp_path / "names.heap")).notes


def test_other_build(command: Command, plugs: list[str], tmp_path: Path) -> None:
    run(command, "run", "--profile=x.heap", *EXACT, *plugs, folder=tmp_path)
    shutil.copy(tmp_path / "second.so", tmp_path / "first.so")
    done = run(command, "profile", "--text", "x.heap", folder=tmp_path)
    assert f"{tmp_path}/first.so: another build than the process had" in done.stderr
    assert "plug_first" not in done.stdout and "plug_second" in done.stdout


def test_built_anew(command: Command, planted: Planted, tmp_path: Path) -> None:
    """Of the same name and layout, and another build."""
    for name in "first", "other":
        shutil.copy(planted.programs / f"libprofile_plug_{name}.so", tmp_path / f"{name}.so")
    program = planted.programs / "profile_plant_plugs"
    file = "./first.so"
    words: list[str | Path] = [program, file, "plug_first", file, "./other.so", file, "plug_other"]
    done = run(command, "run", "--profile=x.heap", *EXACT, *words, folder=tmp_path)
    assert len(set(done.stdout.splitlines())) == 1, "the plug-ins lay at different addresses"
    profile = named(tmp_path / "x.heap")
    assert near(by_function(profile, "plug_other").figures[1], PLUGGED)
    assert any("another build than the process had" in note for note in profile.notes)


def test_other_folder(command: Command, planted: Planted, tmp_path: Path) -> None:
    """The file is not looked for in the folder to which the program went."""
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(planted.programs / "libprofile_plug_first.so", tmp_path / "first.so")
    words: list[str | Path] = [planted.programs / "profile_plant_plugs", "./first.so"]
    run(
        command,
        *("run", f"--profile={tmp_path}/x.heap", *EXACT, *words, "plug_first/elsewhere"),
        folder=tmp_path,
    )
    profile = heap_profile.read(tmp_path / "x.heap")
    assert not [one.path for one in profile.mappings if "elsewhere" in one.path]
    assert len(profile.sites) >= 1


def test_too_many(command: Command, planted: Planted, tmp_path: Path) -> None:
    """1,024 may lie where another one was. Calls of the others are nobody's."""
    noted, others = 1 + 1024, 40
    names = [f"./{i}.so" for i in range(noted + others)]
    for name in names:
        (tmp_path / name).symlink_to(planted.programs / "libprofile_plug_small.so")
    words = [word for name in names for word in (name, "plug_small")]
    program = planted.programs / "profile_plant_plugs"
    exact = ["-o", "profile_rate=1", "-o", "profile_samples=0"]
    done = run(command, "run", "--profile=x.heap", *exact, program, *words, folder=tmp_path)
    (function,) = {int(line, 16) for line in done.stdout.splitlines()}  # all lay at one address
    profile = heap_profile.read(tmp_path / "x.heap")
    calls = [site.stack[0] for site in profile.sites if site.stack]
    calls = [call for call in calls if 0 < call % 2**48 - function < 256]
    modules = [profile.mapping_of(call) for call in calls]
    assert len(calls) == noted + 1
    paths = {Path(one.path).name for one in modules if one}
    assert paths == {Path(name).name for name in names[:noted]}
    (nobodys,) = (call for call, module in zip(calls, modules, strict=True) if module is None)
    assert 0 < heap_profile.plain(nobodys) - function < 256
    (site,) = (site for site in profile.sites if nobodys in site.stack)
    assert site.figures[0] == others


@x86_64
def test_made_where_one_was(command: Command, planted: Planted, tmp_path: Path) -> None:
    shutil.copy(planted.programs / "libprofile_plug_first.so", tmp_path / "first.so")
    program = planted.programs / "profile_plant_over"
    words: list[str | Path] = [program, "./first.so", "plug_first", "names.map"]
    run(command, "run", "--profile=x.heap", *EXACT, *words, folder=tmp_path)
    without = named(tmp_path / "x.heap")
    assert near(by_function(without, "plug_first").figures[1], PLUGGED)
    profile = named(tmp_path / "x.heap", made=perf_map.read(tmp_path / "names.map"))
    made = by_function(profile, "made")
    assert functions(made)[:3] == ["keep", "made", "main"] and near(made.figures[1], MADE)
    assert near(by_function(profile, "plug_first").figures[1], PLUGGED)
    run(
        command, "profile", "-o", "names.heap", "--perf-map", "names.map", "x.heap", folder=tmp_path
    )
    assert by_function(named(tmp_path / "names.heap"), "made").figures == made.figures


def test_a_program_that_goes(command: Command, planted: Planted, tmp_path: Path) -> None:
    """What was written while it was there keeps its names; of the rest it is said how."""
    shutil.copy(planted.programs / "profile_plant_ends", tmp_path / "goes")
    every = ["-o", "profile_rate=1"]
    run(command, "run", "--profile=x.heap", *every, tmp_path / "goes", "keep", folder=tmp_path)
    run(command, "profile", "-o", "named.heap", "x.heap", folder=tmp_path)
    (tmp_path / "goes").unlink()
    kept = command("profile", "--text", str(tmp_path / "named.heap"))
    assert re.search(r" keep\b.*\n +main\b", kept.stdout) and kept.stderr == ""
    gone = command("profile", "--text", str(tmp_path / "x.heap"))
    assert " goes+0x" in gone.stdout
    assert re.fullmatch(
        r".*/goes: can't be read, so has no names\n.* -o NAME\.heap .*\n", gone.stderr
    )


@x86_64
def test_frame_pointers(planted: Planted, tmp_path: Path) -> None:
    """Also where the register has anything else: the program goes on."""
    program = planted.programs / "profile_plant_untabled"
    profile = named(profile_of(program, planted.library, tmp_path))
    ways = {"thread": KEPT, "main": KEPT}
    for stack in profile.stacks:
        called = functions(stack)
        if called[:4] == ["keep", "third", "second", "first"]:
            assert near(stack.figures[1], ways.pop(called[4]))
    assert not ways
    sorted_ = [stack for stack in profile.stacks if functions(stack)[:2] == ["keep", "compare"]]
    assert near(sum(stack.figures[1] for stack in sorted_), KEPT)
    assert all("sorts" in functions(stack) for stack in sorted_)


@x86_64
def test_frame_pointers_of_every_block(command: Command, planted: Planted, tmp_path: Path) -> None:
    program = planted.programs / "profile_plant_untabled"
    run(command, "run", "--profile=x.heap", "-o", "profile_rate=1", program, folder=tmp_path)
    run(command, "record", "-o", "x.recording", "--", program, folder=tmp_path)


def test_several_mappings_of_a_file() -> None:
    """Of which only the debug file is here: it says where the code begins, and no more."""
    text = """\
10005000-10008000 r-xp 00004000 08:01 7 /lib/some.so
1000a000-1000b000 r-xp 00008000 08:01 7 /lib/some.so
20005000-20008000 r-xp 00004000 08:01 7 /lib/some.so
2000a000-2000b000 r-xp 00008000 08:01 7 /lib/some.so
"""
    mappings = heap_profile.mappings(text.splitlines(), 1, "")
    facts = symbols._Facts(loads=[(0x40, 0, 0x5040)])
    for which in ((0, 1), (0, 1, 2, 3), (0, 2, 3), (1, 2, 3)):
        modules = {(0, at): mappings[at] for at in which}
        found = symbols._Facts(loads=symbols._loads(modules, facts))
        assert [found.address(offset) for offset in (0x4010, 0x8020)] == [0x5010, 0xA020]


@contextmanager
def server(folder: Path, store: Path) -> Iterator[str]:
    """A debuginfod server, when it has found what is in the folder."""
    program = shutil.which("debuginfod")
    if program is None or shutil.which("debuginfod-find") is None:
        pytest.skip("needs debuginfod of elfutils")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store.mkdir()
    words = [program, "-F", "-p", str(port), "-d", str(store / "index"), str(folder)]
    with (store / "log").open("w") as log:
        one = subprocess.Popen(
            words, stdout=log, stderr=log, env={**os.environ, "TMPDIR": str(store)}
        )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        one.terminate()
        one.wait()


def test_debuginfod_at_an_end(
    command: Command, planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No server is asked while something waits, only later."""
    program = tmp_path / "plugs"
    shutil.copy(planted.programs / "profile_plant_plugs", program)
    shutil.copy(planted.programs / "libprofile_plug_first.so", tmp_path / "first.so")
    for file in program, tmp_path / "first.so":
        subprocess.run(["strip", file], check=True)
    words: list[str | Path] = [program, "./first.so", "plug_first"]
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1/")
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    run(command, "run", "--leaks=x.heap", *words, folder=tmp_path)
    for options in (["--leaks"], ["--max-peak", "1K", "--max-leaked", "1K"]):
        done = ran("/bin/sh", command.path, "run", *options, *words, cwd=tmp_path)
        assert "plugs (" in done.stderr
        assert "debuginfod" not in done.stderr.lower() and "127.0.0.1" not in done.stderr
    later = run(command, "profile", "x.heap", folder=tmp_path)
    assert "debuginfod" in later.stderr.lower(), "asked, or the client is missing"


def test_debuginfod(
    command: Command, planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    program = here / "profile_plant_plugs"
    shutil.copy(planted.programs / program.name, program)
    shutil.copy(planted.programs / "libprofile_plug_first.so", here / "first.so")
    for file in program, here / "first.so":
        debug = there / f"{file.name}.debug"
        subprocess.run(["objcopy", "--only-keep-debug", file, debug], check=True)
        subprocess.run(["strip", file], check=True)
    words: list[str | Path] = [program, "./first.so", "plug_first"]
    run(command, "run", "--profile=x.heap", *EXACT, *words, folder=here)
    show = ["profile", "--text", "--top", "1", "x.heap"]
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    without = run(command, *show, folder=here)
    assert "debuginfod" not in without.stderr.lower() and " main (" not in without.stdout
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    monkeypatch.setenv("DEBUGINFOD_MAXTIME", "60")
    with server(there, tmp_path / "store") as url:
        monkeypatch.setenv("DEBUGINFOD_URLS", url)
        until = time.monotonic() + 300
        build_id = symbols._facts(program).build_id
        find = ["debuginfod-find", "debuginfo", build_id]
        while subprocess.run(find, capture_output=True).returncode != 0:
            assert time.monotonic() < until, "the server does not find the file"
            shutil.rmtree(tmp_path / "cache", ignore_errors=True)  # it remembers what was missing
            time.sleep(0.5)
        done = run(command, *show, folder=here)
    assert f"hakmem: asks {url} for debug files, for at most 60 s each" in done.stderr
    line = line_of("plug.c", "plug")
    assert f"plug_first (plug.c:{line})" in done.stdout and " main (plant_plugs.c:" in done.stdout
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "other"))
    refused = run(command, *show, folder=here)
    assert f"{url}: " in refused.stderr and "it is not asked again" in refused.stderr
