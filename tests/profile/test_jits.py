"""Functions of programs that make their code while they run, by what they write for perf."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hakmem import heap_profile, perf_map, symbols
from tests import inside
from tests.profile.planted import SECONDS, Planted, functions, near
from tests.watch.watched import Command

MOVED = 2048 * 16384  # in each of the ways
EXACT = ["-o", "profile_rate=16K", "-o", "profile_samples=0"]
KEPT = 64 * 2**20

NODE = """\
const kept = [];
function keepsBuffer(n) { kept.push(Buffer.allocUnsafeSlow(n).fill(1)); }
class Service {
  serves() { for (let i = 0; i < 64; i++) keepsBuffer(2 ** 20); }
}
new Service().serves();
"""
LINES = """\
const kept = [];
function keepsBuffer(n) {
  const size = 2 ** n;
  kept.push(Buffer.allocUnsafeSlow(size).fill(1));
  return size;
}
function serves() {
  let sum = 0;
  sum += keepsBuffer(20);
  sum -= 1;
  sum += keepsBuffer(21);
  return sum;
}
for (const one of [keepsBuffer, serves]) %PrepareFunctionForOptimization(one);
serves();
for (const one of [keepsBuffer, serves]) %OptimizeFunctionOnNextCall(one);
for (let i = 0; i < 16; i++) serves();
"""
JAVA = """\
import java.nio.ByteBuffer;
import java.util.ArrayList;
public class Keeps {
    static ArrayList<ByteBuffer> kept = new ArrayList<>();
    static void keepsBuffer() { kept.add(ByteBuffer.allocateDirect(1 << 16)); }
    static void serves() { for (int i = 0; i < 1024; i++) keepsBuffer(); }
    public static void main(String[] words) { serves(); }
}
"""
PHP = """\
<?php
$kept = [];
function keeps_string($n) { global $kept; $kept[] = str_repeat("x", $n); }
function serves() { for ($i = 0; $i < 64; $i++) keeps_string(1 << 20); }
serves();
"""

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="needs x86-64")


def needed(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"needs {program}")
    return found


def run(command: Command, *words: str | Path, folder: Path) -> str:
    done = inside.run(command.path, *map(str, words), seconds=SECONDS, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def maps() -> Iterator[list[Path]]:
    """What programs left in /tmp: profiles of theirs are added."""
    profiles: list[Path] = []
    yield profiles
    for path in profiles:
        Path(f"/tmp/perf-{heap_profile.read(path).pid}.map").unlink(missing_ok=True)


def peak(path: Path, *names: str) -> float:
    """Of the stacks that have these functions one after the other, the innermost first."""
    profile, _ = perf_map.with_made_here(heap_profile.read(path), path)
    sum_ = 0.0
    for stack in symbols.named(profile).stacks:
        called = functions(stack)
        if any(tuple(called[at:][: len(names)]) == names for at in range(len(called))):
            sum_ += stack.figures[5]
    return sum_


@pytest.mark.parametrize("option", ["--perf-prof", "--perf-basic-prof"])
def test_node(command: Command, maps: list[Path], option: str, tmp_path: Path) -> None:
    (tmp_path / "keeps.js").write_text(NODE)
    words = [needed("node"), option, "--interpreted-frames-native-stack", "keeps.js"]
    run(command, "run", "--profile=x.heap", *EXACT, *words, folder=tmp_path)
    maps.append(tmp_path / "x.heap")
    assert near(peak(tmp_path / "x.heap", "keepsBuffer", "serves", "(top level)"), KEPT)
    text = run(command, "profile", "--text", "--by", "peak", "x.heap", folder=tmp_path)
    assert re.search(r" keepsBuffer \(keeps\.js:2\)\n +serves \(keeps\.js:4\)\n", text)


def test_lines_of_node(command: Command, tmp_path: Path) -> None:
    """Of functions that are compiled, each call has its line."""
    (tmp_path / "lines.js").write_text(LINES)
    words = ["--perf-prof", "--interpreted-frames-native-stack", "--allow-natives-syntax"]
    node = [needed("node"), *words, "--no-turbo-inlining", "lines.js"]
    run(command, "run", "--profile=x.heap", *EXACT, *node, folder=tmp_path)
    text = run(
        command, "profile", "--text", "--by", "peak", "--top", "50", "x.heap", folder=tmp_path
    )
    for line in (9, 11):
        assert re.search(rf" keepsBuffer \(lines\.js:4\)\n +serves \(lines\.js:{line}\)\n", text), (
            text
        )
    run(command, "record", "-o", "x.recording", "--", *node, folder=tmp_path)
    text = run(command, "trace", "--top", "50", "x.recording", folder=tmp_path)
    # Paths that differ so far out count as one (record/paths.h).
    assert re.search(r" keepsBuffer \(lines\.js:4\) < serves \(lines\.js:(9|11)\) < ", text)


def test_node_in_a_recording(command: Command, tmp_path: Path) -> None:
    (tmp_path / "keeps.js").write_text(NODE)
    words = [needed("node"), "--perf-prof", "--interpreted-frames-native-stack", "keeps.js"]
    run(command, "record", "-o", "x.recording", "--", *words, folder=tmp_path)
    text = run(command, "trace", "x.recording", folder=tmp_path)
    assert re.search(r"64\.0 MiB .* keepsBuffer \(keeps\.js:2\) < serves \(keeps\.js:4\)", text)


def test_java(command: Command, maps: list[Path], tmp_path: Path) -> None:
    (tmp_path / "Keeps.java").write_text(JAVA)
    java, javac = needed("java"), needed("javac")
    subprocess.run([javac, "Keeps.java"], cwd=tmp_path, check=True)
    compiled = ["-Xcomp", "-XX:CompileCommand=dontinline,Keeps.*", "-XX:CompileCommand=quiet"]
    writes = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"]
    words = [java, *compiled, *writes, "-XX:+PreserveFramePointer", "-cp", ".", "Keeps"]
    run(command, "run", "--profile=x.heap", *EXACT, *words, folder=tmp_path)
    maps.append(tmp_path / "x.heap")
    keeps, serves = "void Keeps.keepsBuffer()", "void Keeps.serves()"
    assert near(peak(tmp_path / "x.heap", keeps, serves), KEPT)


def test_php(
    command: Command, maps: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its compiled code has no frame pointers, so the innermost function is all that is known."""
    (tmp_path / "keeps.php").write_text(PHP)
    php = [needed("php"), "-n", "-d", "zend_extension=opcache", "-d", "opcache.enable_cli=1"]
    php += ["-d", "opcache.file_update_protection=0"]  # it would not compile what is new
    jit = [*php, "-d", "opcache.jit_buffer_size=16M", "-d", "opcache.jit=function"]
    asks = 'exit((opcache_get_status()["jit"]["on"] ?? false) ? 0 : 1);'
    if subprocess.run([*jit, "-r", asks], capture_output=True).returncode != 0:
        pytest.skip("needs PHP with a just-in-time compiler")
    monkeypatch.setenv("USE_ZEND_ALLOC", "0")
    words = [*jit, "-d", "opcache.jit_debug=16", "-d", "memory_limit=-1", "keeps.php"]
    run(command, "run", "--profile=x.heap", *EXACT, *words, folder=tmp_path)
    maps.append(tmp_path / "x.heap")
    assert near(peak(tmp_path / "x.heap", "keeps_string"), KEPT)


def test_moved(command: Command, planted: Planted, tmp_path: Path) -> None:
    """Of functions that lay at one address, each is named."""
    program = planted.programs / "profile_plant_moved"
    run(command, "run", "--profile=x.heap", *EXACT, program, "jit-1.dump", folder=tmp_path)
    for way in (("early", "calls_early"), ("late", "calls_late"), ("early", "calls_moved")):
        assert near(peak(tmp_path / "x.heap", "keep", *way, "main"), MOVED)
    dump = ["--perf-map", "jit-1.dump"]
    text = run(command, "profile", "--text", *dump, "x.heap", folder=tmp_path)
    assert re.search(r" early\n +calls_moved ", text) and re.search(r" late\n +calls_late ", text)
    run(command, "record", "-o", "x.recording", "--", program, "jit-2.dump", folder=tmp_path)
    text = run(command, "trace", "x.recording", folder=tmp_path)
    for said in "early < calls_early", "late < calls_late", "early < calls_moved":
        assert f" < {said} (" in text


def test_damaged_dumps(command: Command, planted: Planted, tmp_path: Path) -> None:
    """What is whole counts: another may still be written."""
    program = planted.programs / "profile_plant_moved"
    subprocess.run([program, "jit-1.dump"], cwd=tmp_path, check=True)
    dump = tmp_path / "jit-1.dump"
    whole = dump.read_bytes()
    for size in range(len(whole)):
        dump.write_bytes(whole[:size])
        try:
            perf_map.read(dump)
        except perf_map.NoMap:
            assert size < perf_map.HEAD.size
    for at in range(len(whole)):
        dump.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            perf_map.read(dump)
        except perf_map.NoMap:
            assert at < 4
