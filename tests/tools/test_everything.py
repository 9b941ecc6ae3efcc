"""tools/everything.py on a small project made for this test: some tests fail, hang, are skipped or
can't be started, and all others run nevertheless."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ran import ran
from tools import everything
from tools.everything import Part, Report, Step, left_out, run, summary

ROOT = Path(__file__).parents[2]
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(made_up LANGUAGES NONE)
enable_testing()
foreach(number RANGE 1 4)
    add_test(NAME good_${number} COMMAND true)
endforeach()
add_test(NAME bad COMMAND sh -c "echo it was 7; exit 3")
add_test(NAME "bad+odd/name" COMMAND false)
add_test(NAME hangs COMMAND sh -c "echo before; sleep 600")
add_test(NAME nowhere COMMAND hakmem-there-is-none)
add_test(NAME skips COMMAND sh -c "echo no tracing here; exit 77")
add_test(NAME skips_too COMMAND sh -c "echo no tracing here; exit 77")
add_test(NAME in_part COMMAND sh -c "echo 'SKIPPED [2] test_a.py:12: gdb is not installed'")
add_test(NAME leaves COMMAND sh -c "sleep 600 >sleeps 2>&1 & echo $! >left")
set_tests_properties(hangs PROPERTIES TIMEOUT 1)
set_tests_properties(skips skips_too PROPERTIES SKIP_RETURN_CODE 77)
"""
PRESETS = {
    "version": 6,
    "configurePresets": [{"name": "made", "generator": "Ninja", "binaryDir": "${sourceDir}/built"}],
    "buildPresets": [{"name": "made", "configurePreset": "made"}],
    "testPresets": [
        {"name": "made", "configurePreset": "made", "output": {"outputOnFailure": True}}
    ],
}
CONFIGURE = Step("configuring", ("cmake", "--preset", "made"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    (tmp_path / "CMakePresets.json").write_text(json.dumps(PRESETS))
    return tmp_path


def shell(name: str, script: str) -> Step:
    return Step(name, ("sh", "-c", script))


def test_everything_runs_and_the_end_says_what_failed(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    parts = [
        Part("broken", build=(shell("the build", "echo no such header; exit 2"),), preset="made"),
        Part("tests", build=(CONFIGURE,), preset="made"),
        Part("lint", steps=(shell("c", "exit 1"), shell("python", "echo fine"))),
        Part("gone", steps=(Step("what is not there", ("hakmem-there-is-none",)),)),
    ]
    out = project / "out"
    assert run(parts, project, out, 2) == 1
    assert _ends((project / "built" / "left").read_text().strip())
    said = capfd.readouterr().out
    screen = said[said.rindex("-" * 72) :]
    lines = screen.splitlines()
    assert len(lines) < 40
    for failed in ("broken: the build", "tests: bad", "tests: hangs", "tests: nowhere", "lint: c"):
        assert f"  {failed}" in lines
    assert "    ctest --preset made -R '^bad$'" in lines
    assert "    sh -c 'exit 1'" in lines
    assert f"    {out}/tests/bad.txt" in lines
    assert "it was 7" in (out / "tests" / "bad.txt").read_text()
    assert "no such header" in (out / "broken" / "the-build.txt").read_text()
    assert "  no tracing here: tests: skips; tests: skips_too" in lines
    assert "  gdb is not installed: tests: in_part, in part" in lines
    assert "  the build failed: all that broken would have run" in lines
    # 4 good ones, the one skipped in part, the one that leaves a process, a step.
    assert re.match(r"make test: FAILED \(7 passed, 7 failed, \d+ minutes\)", lines[-1])
    assert "lint: python" not in screen
    assert (out / "summary.txt").read_text().splitlines()[-1] == lines[-1]


def test_later_parts_are_built_beside_tests(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The first's tests wait for the second's build, which yields to them."""
    project_file = PROJECT.partition("foreach")[0] + (
        'add_test(NAME waits COMMAND sh -c "until [ -e ../nice ]; do sleep 0.05; done")\n'
        "set_tests_properties(waits PROPERTIES TIMEOUT 100)\n"
    )
    (project / "CMakeLists.txt").write_text(project_file)
    parts = [
        Part("first", build=(CONFIGURE,), preset="made"),
        Part("second", steps=(shell("a", "nice >new && mv new nice"),)),
    ]
    assert run(parts, project, project / "out", 1) == 0
    assert int((project / "nice").read_text()) == min(os.nice(0) + everything.NICE, 19)
    assert "first: tested in " in capfd.readouterr().out


def test_the_command_told_runs_that_test_alone(project: Path) -> None:
    out = project / "out"
    run([Part("tests", build=(CONFIGURE,), preset="made")], project, out, 2)
    text = (out / "summary.txt").read_text()
    (alone,) = re.findall(r"tests: bad\+odd/name\n    (.*)\n", text)
    done = ran("sh", "-c", alone, cwd=project)
    assert "1 tests failed out of 1" in done.stdout
    (file,) = re.findall(r"tests: bad\+odd/name\n.*\n    (.*)\n", text)
    assert Path(file).exists()


def test_all_passed(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    parts = [Part("one", steps=(shell("a", "true"), shell("b", "true")))]
    assert run(parts, project, project / "out", 1) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[-2] == "Nothing was skipped."
    assert lines[-1].startswith("make test: all passed (2 passed, 0 failed, ")


def test_tests_without_results_have_failed(project: Path) -> None:
    """ctest itself can be killed, or find no tests."""
    parts = [Part("none", build=(CONFIGURE,), preset="made", only="^no such test$")]
    presets = json.loads(json.dumps(PRESETS))
    presets["testPresets"][0]["execution"] = {"noTestsAction": "error"}
    (project / "CMakePresets.json").write_text(json.dumps(presets))
    assert run(parts, project, project / "out", 1) == 1
    assert "none: the tests (status " in (project / "out" / "summary.txt").read_text()


def test_a_step_that_hangs_is_ended(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what it started."""
    monkeypatch.setattr(everything, "MOST_SECONDS", 1)
    monkeypatch.setattr(everything, "SECONDS_TO_END", 1)
    script = f"sleep 600 & echo $! >{project}/pid; trap '' TERM; wait; exec sleep 600"
    parts = [Part("one", steps=(shell("hangs", script), shell("next", "echo next >next")))]
    assert run(parts, project, project / "out", 1) == 1
    assert (project / "next").exists()
    assert _ends((project / "pid").read_text().strip())


def _ends(pid: str) -> bool:
    """A process that was killed, soon."""
    end = time.monotonic() + 60
    while _runs(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not _runs(pid)


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_tells_what_was_found_so_far(project: Path, number: signal.Signals) -> None:
    script = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from tools import everything
everything.parts = lambda: [everything.Part("one", steps=(
    everything.Step("a", ("false",)),
    everything.Step("b", ("sh", "-c", "echo $$ >pid; exec sleep 600"))))]
everything.ROOT = Path({str(project)!r})
sys.argv[1:] = []
sys.exit(everything.main())
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=project, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:  # both steps run at once
        if "one: a failed" in line:
            break
    end = time.monotonic() + 60
    pid = project / "pid"
    while time.monotonic() < end and not (pid.exists() and pid.read_text().strip()):
        time.sleep(0.05)
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    last = said.splitlines()[-1]
    assert last.startswith(f"make test: FAILED (interrupted by {number.name}, 0 passed, 1 failed")
    assert _ends(pid.read_text().strip())


def test_many_failures_are_cut_to_a_screen(tmp_path: Path) -> None:
    report = Report(passed=1)
    for number in range(50):
        one = everything.Failure("a", f"test {number}", f"ctest {number}", tmp_path / "x")
        report.failures.append(one)
        report.skip(f"reason {number}", "x" * 500)
    screen = summary(report, 1, tmp_path, "")
    assert len(screen.splitlines()) < 48 and max(map(len, screen.splitlines())) <= 150
    assert "lines more" in screen
    assert summary(report, 1, tmp_path, "", most=None).count("ctest ") == 50


def test_reasons_are_read_from_what_a_test_said() -> None:
    said = """
SKIPPED [1] tests/command/test_run.py:197: strace is not installed
scavenger: mlockall: EPERM: not tested
kernel: no page may be locked here: blocks of 4096 bytes not tested
3 passed, 1 skipped in 2.01s
"""
    assert list(left_out(said)) == [
        "strace is not installed",
        "mlockall: EPERM",
        "no page may be locked here: blocks of 4096 bytes",
    ]


def test_every_preset_ends_tests_that_hang() -> None:
    presets = {
        p["name"]: p for p in json.loads((ROOT / "CMakePresets.json").read_text())["testPresets"]
    }
    assert presets["base"]["execution"]["timeout"] > 0
    for preset in presets.values():
        assert preset["name"] == "base" or preset["inherits"] == "base"


def test_the_yardstick_builds_only_what_its_tests_need(given: Callable[[str], Path]) -> None:
    folder = given("--lib").parent
    if shutil.which("ninja") is None or not (folder / "build.ninja").exists():
        pytest.skip("needs a build by ninja")

    def said(*words: str) -> str:
        return ran(*words, cwd=folder, check=True).stdout

    commands = said("ninja", "-t", "commands", *everything.YARDSTICK_TARGETS)
    made = set(re.findall(r" -o (\S+)", commands))
    listed = json.loads(said("ctest", "-R", everything.YARDSTICK, "--show-only=json-v1"))
    words = {Path(word) for test in listed["tests"] for word in test.get("command", ())}
    needed = {str(word.relative_to(folder)) for word in words if folder in word.parents}
    assert needed and needed <= made
    assert not [file for file in made if file.startswith(("tests/", "libhakmem-debug"))]
