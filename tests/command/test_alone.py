"""Commands that need nothing: --help, --version, `bench --list`, `hakmem run` without Python."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hakmem import variants
from hakmem.bench_command import GROUPS
from hakmem.cli import parsers
from tests.command.command import Built, Done, clean_environment
from tests.ran import ran

TOP, COMMANDS = parsers()
NOWHERE = "/nowhere/python3"


@dataclass(frozen=True)
class Alone:
    """The command with another Python, a library beside it and an empty cache."""

    front: Path
    cache: Path

    def __call__(self, *words: str, **variables: str) -> Done:
        given = {"XDG_CACHE_HOME": str(self.cache), "PATH": "/usr/bin:/bin"} | variables
        done = ran(self.front, *words, env=clean_environment() | given)
        assert list(self.cache.iterdir()) == []
        return Done(done.returncode, done.stdout, done.stderr)


def alone(built: Built, folder: Path, **names: str) -> Alone:
    """`names`: what the script knows by this name is another."""
    text = built.front.read_text()
    for name, value in names.items():
        text, count = re.subn(f"^{name}='.*?'", f"{name}={shlex.quote(value)}", text, flags=re.M)
        assert count == 1, name
    (folder / "bin").mkdir()
    (folder / "cache").mkdir()
    front = folder / "bin" / "hakmem"
    front.write_text(text)
    front.chmod(0o755)
    shutil.copy(built.library, folder / "libhakmem.so")
    shutil.copy(built.library.parent / "commit", folder / "commit")
    return Alone(front, folder / "cache")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A Python without anything."""
    made = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    return made / "bin" / "python"


def with_pyelftools(python: Path) -> Path:
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    import elftools

    (site / "elftools").symlink_to(Path(elftools.__file__).parent)
    return python


def test_help_needs_no_python(built: Built, tmp_path: Path) -> None:
    hakmem = alone(built, tmp_path, python=NOWHERE)
    for words in (), ("--help",), ("-h",):
        assert hakmem(*words) == Done(0, TOP.format_help(), "")
    for name, parser in COMMANDS.items():
        for flag in ("--help", "-h"):
            assert hakmem(name, flag) == Done(0, parser.format_help(), "")
    assert hakmem("bench", "--quick", "--help").out == COMMANDS["bench"].format_help()


@pytest.mark.parametrize("name", ["doctor", "options", "bench", "compare"])
def test_every_help_has_what_a_user_looks_for(name: str) -> None:
    text = COMMANDS[name].format_help()
    assert text.startswith(f"usage: hakmem {name} ")
    assert "\nexamples:\n" in text and "\nexit status:\n" in text
    assert max(map(len, text.splitlines())) <= 100


def test_help_after_two_dashes_is_the_program_s(built: Built) -> None:
    command = ["sh", "-c", 'echo "$1"', "sh", "--help"]
    assert built("run", *command).out == "--help\n"
    done = built("doctor", "--", *command)
    assert done.status == 0 and done.err == "--help\n"


def test_without_python(built: Built, bare: Path, tmp_path: Path) -> None:
    version = built("--version").out
    every = ("options",), ("doctor",), ("bench", "--quick"), ("compare", "a", "b")
    cases = [
        ({"python": NOWHERE}, f"there is no {NOWHERE}", every),
        ({"part": "/nowhere/hakmem"}, "there is no /nowhere/hakmem", every),
        (
            {"python": str(bare)},
            f"needs the Python module pyelftools: install with '{bare} -m pip install pyelftools'",
            (("doctor",), ("sheet", "1"), ("leaks", "1")),
        ),
    ]
    for number, (names, told, all_words) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        hakmem = alone(built, folder, **names)
        assert hakmem("--version") == Done(0, version, "")
        ran = hakmem("run", "-o", "learn=off", "sh", "-c", "grep -c libhakmem /proc/$$/maps")
        assert ran.status == 0 and int(ran.out) > 0
        for words in all_words:
            done = hakmem(*words)
            assert (done.status, done.out) == (125, ""), done
            assert told in done.err and done.err.count("\n") == 1
    assert hakmem("options").status == 0, "it needs nothing of what is missing"


def test_a_list_of_rows_builds_and_fetches_nothing(
    built: Built, bare: Path, tmp_path: Path
) -> None:
    """With pyelftools alone and no suite; the rows are those that a build would run."""
    hakmem = alone(built, tmp_path, python=str(with_pyelftools(bare)))
    done = hakmem("bench", "--full", "--list")
    assert (done.status, done.err) == (0, "")
    assert done.out == built("bench", "--full", "--list").out
    titles = re.findall(r"^(\w+) \((\d+)\)$", done.out, flags=re.M)
    assert [title for title, _ in titles] == list(GROUPS)
    assert sum(int(count) for _, count in titles) > 200
    few = hakmem("bench", "--list", "--only", "seed", "--rows", "pair-64")
    assert (few.status, few.out.splitlines()[0]) == (0, "seed (1)")
    assert "the shortest way through malloc and free" in few.out
    wrong = hakmem("bench", "--list", "--rows", "none")
    assert wrong.status == 2 and "no row is called so" in wrong.err


def test_wrong_usage_installs_nothing(built: Built, bare: Path, tmp_path: Path) -> None:
    hakmem = alone(built, tmp_path, python=str(with_pyelftools(bare)))
    for words, told in (
        (("compare", "glibc", "hakmem"), "expected a program after --"),
        (("compare", "glibc", "--", "true"), "expected two allocators or more"),
        (("compare", "--nonsense"), "unrecognized arguments: --nonsense"),
        (("bench", "--rounds", "none"), "--rounds: 'none': expected a whole number, 1 or more"),
        (("nonsense",), "there is no command 'nonsense'"),
    ):
        done = hakmem(*words)
        assert (done.status, done.out) == (2, ""), done
        assert told in done.err and done.err.count("\n") == 1
        assert "--help'\n" in done.err or "as in: hakmem compare" in done.err


@pytest.mark.parametrize(
    "setting",
    ["keep_bytes=banana", "stack_bytes=2G", "HAKMEM_STACK_BLOCKS=1", "learn=never",
     "config=/no/such/file", "stack_byts=1", "nosuch=1"],
)  # fmt: skip
def test_a_wrong_option_of_a_variant_installs_nothing(
    setting: str, built: Built, bare: Path, tmp_path: Path
) -> None:
    """It is refused as `hakmem run` refuses it."""
    hakmem = alone(built, tmp_path, python=str(with_pyelftools(bare)))
    variant = f"hakmem+keep_bytes=16M+{setting}"
    told = hakmem("run", "-o", setting, "true")
    said = told.err.removeprefix("hakmem run: -o ")
    compared = hakmem("compare", "glibc", variant, "--", "true")
    assert compared == Done(told.status, "", f"hakmem compare: hakmem+{said}")
    benched = hakmem("bench", "--quick", "--vs", f"glibc,{variant}")
    assert benched == Done(told.status, "", f"hakmem bench: hakmem+{said}")


def test_variants_that_are_right(built: Built, tmp_path: Path) -> None:
    """What is no setting of hakmem's is not asked about; a file is looked for where the program
    will run."""
    (tmp_path / "my.conf").write_text("stack_bytes = 5\n")
    names = ["hakmem", "hakmem+stack_bytes=5+LEARN=never", "glibc+stack_bytes=no", "hakmem=./no.so"]
    variants.check(names[:1] + names[2:], Path("/nowhere"))
    with pytest.raises(variants.WrongOption, match="LEARN=never: expected"):
        variants.check(names, built.front)
    variants.check(["hakmem+stack_bytes=5+learn=off"], built.front)
    variants.check(["hakmem+config=my.conf"], built.front, tmp_path)
    with pytest.raises(variants.WrongOption, match=r"my\.conf: cannot be read"):
        variants.check(["hakmem+config=my.conf"], built.front)
