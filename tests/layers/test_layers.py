"""The layer check accepts what is right and names what is wrong."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ran import ran
from tools.check_layers import FLOOR

ROOT = Path(__file__).parents[2]


def check(root: Path) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "tools/check_layers.py"), str(root)]
    done = ran(*command)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("folder", ["src", "python"])
def test_ours_are_in_order(folder: str) -> None:
    status, output = check(ROOT / folder)
    assert status == 0, output


def test_the_page_lists_the_layers() -> None:
    page = (ROOT / "src/README.md").read_text()
    listed = re.findall(r"^\| (\d+) \| \[(\w+)\]\(\2/README\.md\)", page, re.MULTILINE)
    floors = {folder: floor for folder, floor in FLOOR.items() if folder != "hakmem"}
    assert {folder: int(floor) for floor, folder in listed} == floors


def test_nothing_uses_the_yardstick() -> None:
    command = [sys.executable, "tools/check_layers.py"]
    done = ran(*command, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "layers in order\n")


def test_right_includes_pass(tmp_path: Path) -> None:
    write(tmp_path, "api/malloc.c", '#include "hakmem/hakmem.h"\n#include "front/cache.h"\n')
    write(tmp_path, "os/os_linux.c", '#include "base/bits.h"\n#ifdef __x86_64__\n#endif\n')
    write(tmp_path, "heap/slab.c", '#include "heap/slab.h"\n#include <a.h>\n#if CHECKS\n#endif\n')
    write(tmp_path, "learn/laws.def", 'LAW(A, 1, "", "", "")\n')
    write(tmp_path, "heap/a.h", "#define A (LAW_A + 1) /* 8 */\nint a = b / LAW_A + c / 64 - 3;\n")
    assert check(tmp_path)[0] == 0


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("heap/slab.c", '#include "front/cache.h"\n', "slab.c:1: heap/ (floor 3) includes"),
        ("base/a.h", '\n#  include "os/os.h"\n', "a.h:2: base/ (floor 0) includes"),
        ("report/stat.c", '#include "options/step.h"\n', "stat.c:1: report/ (floor 5) includes"),
        ("options/step.c", '#include "report/stat.h"\n', "step.c:1: options/ (floor 5) includes"),
        ("back/map.c", "#include <hakmem/hakmem.h>\n", 'includes "hakmem/hakmem.h" (floor 4)'),
        ("back/map.c", '#include "map.h"\n', 'map.c:1: includes "map.h"; write the path'),
        (
            "hakmem/elf.py",
            "from hakmem.judge import judge\n",
            "elf.py:1: elf (floor 0) imports judge",
        ),
        (
            "hakmem/elf.py",
            "\nfrom hakmem import cli\n",
            "elf.py:2: elf (floor 0) imports cli",
        ),
        (
            "hakmem/doctor.py",
            "from hakmem_yardstick.model import Row\n",
            "doctor.py:1: from hakmem_yardstick.model import Row: nothing outside yardstick/ may",
        ),
        (
            "hakmem/doctor.py",
            "from hakmem import extras\nstats = extras.loaded('stats')\n",
            "doctor.py:2: stats = extras.loaded('stats'): nothing outside yardstick/ may",
        ),
        ("hakmem/elf.py", "\n" * 601, "elf.py:601: 601 lines; a file has at most 600"),
        ("hakmem/misc.py", "\n", "misc.py:1: 'misc' has no floor"),
        ("misc/x.c", "\n", "x.c:1: 'misc' has no floor"),
        ("life/a.c", "#define RATE 64 /* KiB */\n", "a.c:1: RATE: a number that decides is"),
        ("front/a.c", "size_t m = n / 8;\n", "a.c:1: /8: a number that decides is a line of"),
        ("back/use.c", "\nsize_t m = 4 * MiB;\n", "use.c:2: 4*MiB: a number that decides is"),
        ("front/a.c", "bool b = streak > 3;\n", "a.c:1: >3: a number that decides is a line"),
        ("front/a.h", "enum { NEVER, SOME = 64 };\n", "a.h:1: =64: a number that decides is a"),
        ("learn/laws.def", '\nLAW(A, 1, "", "", "")\n', "laws.def:2: nothing uses LAW_A"),
        ("heap/long.c", "\n" * 601, "long.c:601: 601 lines; a file has at most 600"),
        ("front/cache.h", "#if defined(__aarch64__)\n", "cache.h:1: tests __aarch64__"),
        ("life/start.c", "#ifdef __linux__\n", "start.c:1: tests __linux__"),
    ],
)
def test_wrong_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    write(tmp_path, name, text)
    status, output = check(tmp_path)
    assert status == 1
    assert message in output
    assert output.count("\n") == 1


def test_a_header_of_the_yardstick_is_no_other_s(tmp_path: Path) -> None:
    write(tmp_path, "base/a.c", '#include "yardstick/suite/suite.h"\n')
    status, output = check(tmp_path)
    assert status == 1
    assert 'a.c:1: #include "yardstick/suite/suite.h": nothing outside yardstick/ may' in output


def test_the_two_commands_use_it(tmp_path: Path) -> None:
    write(tmp_path, "hakmem/bench_command.py", "cli = extras.loaded('cli')\n")
    assert check(tmp_path)[0] == 0


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def check_objects(root: Path, sources: dict[str, str]) -> tuple[int, str]:
    """As a build has them."""
    objects = []
    for name, text in sources.items():
        write(root, name, text)
        out = root / "build/hakmem_core.dir" / f"{name}.o"
        out.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-c", root / name, "-o", out], check=True)
        objects.append(str(out))
    command = [sys.executable, str(ROOT / "tools/check_layers.py"), "--objects", *objects]
    done = ran(*command)
    return done.returncode, done.stdout + done.stderr


REPORT = "void report(void) {}\nint reports;\nstatic void hidden(void) { report(); }\n"


@pytest.mark.parametrize(
    ("name", "text", "symbol"),
    [
        ("os/wait.c", "extern void report(void);\nvoid w(void) { report(); }\n", "report"),
        ("front/cache.c", "extern int reports;\nint *p(void) { return &reports; }\n", "reports"),
        ("heap/a.c", "extern int reports;\nint *p = &reports;\n", "reports"),
        ("sheet/a.c", "extern int reports;\nint *p = &reports;\n", "reports"),
        ("os/a.c", "__attribute__((weak)) void report(void);\nvoid *p = report;\n", "report"),
    ],
)
def test_a_symbol_of_a_higher_layer_is_named(
    tmp_path: Path, name: str, text: str, symbol: str
) -> None:
    status, output = check_objects(tmp_path, {name: text, "report/report.c": REPORT})
    assert status == 1
    floor = FLOOR[name.split("/")[0]]
    assert f"(floor {floor}) refers to {symbol} of report/report.c (floor 5); only the" in output
    assert output.startswith(f"{name}: ")
    assert output.count("\n") == 1


def test_right_symbols_pass(tmp_path: Path) -> None:
    uses = "extern void report(void), hidden(void), *malloc(unsigned long);\n"
    sources = {
        "report/report.c": REPORT,
        "report/words.c": uses + "void words(void) { report(); }\n",
        "api/slow.c": uses + "void slow(void) { report(); malloc(1); }\n",
        "os/lock.c": "void lock_is_left(void);\nvoid wait(void) { lock_is_left(); }\n",
        "report/left.c": "void lock_is_left(void) {}\n",
        "os/own.c": "static void hidden(void) {}\nvoid own(void) { hidden(); }\n",
    }
    assert check_objects(tmp_path, sources) == (0, "layers in order\n")


def test_an_exception_that_nothing_needs_is_named(tmp_path: Path) -> None:
    status, output = check_objects(tmp_path, {"report/a.c": "void lock_is_left(void) {}\n"})
    assert status == 1
    assert output == "lock_is_left: no lower folder refers to it: take it out of DEFINED_ABOVE\n"


def test_a_circle_is_named(tmp_path: Path) -> None:
    write(tmp_path, "heap/slab.h", '#include "heap/shard.h"\n')
    write(tmp_path, "heap/shard.c", '#include "heap/shard.h"\n#include "heap/transfer.h"\n')
    write(tmp_path, "heap/transfer.h", '#include "heap/slab.h"\n')
    status, output = check(tmp_path)
    assert status == 1
    assert "includes in a circle: heap/" in output
    for unit in "heap/slab", "heap/shard", "heap/transfer":
        assert unit in output
