"""`hakmem options` shows the table of options, and the values that the library itself uses."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from hakmem.table import AUTO, gone, number, renamed, table
from tests.command.command import Built, clean_environment
from tests.ran import ran


def records(built: Built, *words: str, **variables: str) -> dict[str, dict[str, object]]:
    done = built("options", "--json", *words, **variables)
    assert done.status == 0, done
    return {record["name"]: record for record in json.loads(done.out)}


def test_the_whole_table(built: Built) -> None:
    shown = records(built)
    assert list(shown) == [option.name for option in table()]
    for option in table():
        record = shown[option.name]
        for name, text in ("default", option.value), ("least", option.least), ("most", option.most):
            assert record[name] == ("auto" if text == AUTO else number(text))
        assert record["help"] == option.help
    text = built("options").out
    for option in table():
        assert option.name in text
        assert " ".join(option.help.split()) in " ".join(text.split())


def test_what_is_in_force_and_why(built: Built, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("# nothing\nKeep_Bytes = 16M\nprofile_samples = 2000 # many\nstack_bytes = 1\n")
    variables = {"HAKMEM_CONFIG": str(file), "HAKMEM_STACK_BYTES": "2k", "HAKMEM_SCAVENGER": "off"}
    shown = records(built, **variables)
    for name, value, source in (
        ("keep_bytes", 16 << 20, f"{file}:2"),
        ("profile_samples", 2000, f"{file}:3"),
        ("stack_bytes", 2048, "HAKMEM_STACK_BYTES"),
        ("scavenger", 0, "HAKMEM_SCAVENGER"),
    ):
        assert (shown[name]["here"], shown[name]["source"]) == (value, source)
    assert shown["huge_pages"]["here"] == shown["huge_pages"]["default"]
    text = built("options", **variables).out
    assert f"here 16 MiB, by {file}:2" in text
    assert "here off, by HAKMEM_SCAVENGER" in text
    assert text.count("; here ") == 4


def test_a_wrong_value_is_told_by_the_library(built: Built) -> None:
    done = built("options", "stack_bytes", HAKMEM_STACK_BYTES="much")
    assert done.status == 0
    assert "HAKMEM_STACK_BYTES=much: expected a size" in done.err
    assert "here 1280 KiB, by HAKMEM_STACK_BYTES" in done.out


@pytest.mark.parametrize("name", ["stack_bytes", "STACK_BYTES", "HAKMEM_STACK_BYTES"])
def test_one_by_name(name: str, built: Built) -> None:
    assert list(records(built, name)) == ["stack_bytes"]


@pytest.mark.parametrize(("old", "now"), renamed().items())
def test_one_by_its_former_name(old: str, now: str, built: Built, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(f"{old} = 2M\n")
    variable = f"HAKMEM_{old.upper()}"
    for variables, source in (
        ({variable: "2M"}, variable),
        ({"HAKMEM_CONFIG": str(file)}, f"{file}:1"),
    ):
        for name in old, variable:
            shown = records(built, name, **variables)
            assert list(shown) == [now]
            assert (shown[now]["here"], shown[now]["source"]) == (2 << 20, source)


@pytest.mark.parametrize(("name", "instead"), gone().items())
def test_one_that_is_gone(name: str, instead: str, built: Built) -> None:
    for given in name, f"HAKMEM_{name.upper()}":
        done = built("options", given)
        assert (done.status, done.out) == (2, "")
        assert done.err == f"hakmem options: {name}: no such option any more: {instead}\n"


def test_each_description_can_be_read_alone() -> None:
    for option in table():
        assert not re.match(r"(The same|That|This|It|As before)\b", option.help), option.name


def test_no_such_option(built: Built) -> None:
    done = built("options", "stack_bytse")
    assert (done.status, done.out) == (2, "")
    assert done.err == ("hakmem options: stack_bytse: no such option; the nearest is stack_bytes\n")
    done = built("options", "keep")
    assert done.err == "hakmem options: keep: no such option; the nearest is keep_bytes\n"
    done = built("options", "999999999")
    assert (done.status, done.out) == (2, "")
    assert done.err == "hakmem options: 999999999: no such option; 'hakmem options' lists all\n"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["run", "--help"], 0),
        (["doctor", "--help"], 0),
        (["bench", "--list"], 0),
        (["options"], 0),
        (["options", "--json"], 0),
        (["doctor", "--", "env", "-i", "true"], 1),
    ],
)
def test_a_reader_who_has_enough(words: list[str], status: int, built: Built) -> None:
    """The status is the same, and nobody complains."""
    source, sink = os.pipe()
    os.close(source)
    with os.fdopen(sink, "wb") as closed:
        done = subprocess.run(
            [built.front, *words], env=clean_environment(), stdout=closed, stderr=subprocess.PIPE
        )
    assert (done.returncode, done.stderr) == (status, b"")


def test_a_file_of_options_that_is_a_pipe(built: Built, tmp_path: Path) -> None:
    """Nobody writes there."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = built("options", "keep_bytes", HAKMEM_CONFIG=str(pipe))
    assert done.status == 0 and "keep_bytes" in done.out


BENCH = ["bench", "--rows", "pair-64", "--rounds", "1", "--scale", "0.001", "--vs", "glibc"]
THAT_PRINT = [
    [],
    ["--help"],
    ["--version"],
    ["run", "--help"],
    ["doctor"],
    ["doctor", "--json", "--", "true"],
    ["doctor", "--help"],
    ["options"],
    ["options", "--json"],
    ["bench", "--list"],
    ["bench", "--help"],
    [*BENCH, "--out", "results"],
    ["compare", "--help"],
    ["compare", "--rounds", "1", "glibc", "hakmem", "--", "true"],
]


@pytest.mark.parametrize("words", THAT_PRINT, ids=" ".join)
def test_output_that_cannot_be_written(words: list[str], built: Built, tmp_path: Path) -> None:
    """To a full disk, and to a standard output that is closed."""
    for redirection, reason in (">/dev/full", "No space left on device"), (">&-", "is closed"):
        done = ran(
            "sh",
            "-c",
            f'"$0" "$@" {redirection}',
            str(built.front),
            *words,
            env=clean_environment(),
            cwd=tmp_path,
        )
        assert done.returncode == 3, done
        assert reason in done.stderr, done
        assert "Traceback" not in done.stderr and "mistake in hakmem" not in done.stderr


@pytest.mark.parametrize("words", [["compare", "glibc", "hakmem"], ["record"]], ids=" ".join)
def test_no_folder_for_what_is_temporary(words: list[str], built: Built, tmp_path: Path) -> None:
    """Where no file can be written. That is no mistake in hakmem."""
    limited = f"ulimit -f 0; {shlex.join([str(built.front), *words])} -- true"
    done = ran("sh", "-c", limited, env=clean_environment(), cwd=tmp_path)
    assert done.returncode not in (0, 1) and done.stderr.count("\n") == 1, done
    assert done.stderr.startswith(f"hakmem {words[0]}: ") and "mistake" not in done.stderr


def test_two_dashes_are_for_programs(built: Built) -> None:
    done = built("options", "--", "keep_bytes")
    assert (done.status, done.out) == (2, ""), done
    assert "-- comes before a program" in done.err


def test_every_part_has_the_same_version(built: Built) -> None:
    places = {
        "CMakeLists.txt": r"project\(hakmem\s+VERSION (\S+)",
        "pyproject.toml": r'\[project\]\nname = "hakmem"\nversion = "(\S+)"',
        "python/hakmem/__init__.py": r'__version__ = "(\S+)"',
        "debian/changelog": r"\Ahakmem \((\S+)\)",
        "bindings/rust/Cargo.toml": r'\[package\]\nname = "hakmem-malloc"\nversion = "(\S+)"',
        "bindings/rust/Cargo.lock": r'name = "hakmem-malloc"\nversion = "(\S+)"',
    }
    found = {}
    for file, pattern in places.items():
        match = re.search(pattern, (Path(__file__).parents[2] / file).read_text())
        found[file] = match and match[1]
    assert set(found.values()) == {built("--version").out.split()[1]}, found


def test_version_and_help(built: Built) -> None:
    header = (Path(__file__).parents[2] / "include/hakmem/hakmem.h").read_text()
    parts = (
        header.split(f"HAKMEM_VERSION_{part} ")[1].split()[0]
        for part in ("MAJOR", "MINOR", "PATCH")
    )
    commit = r"commit ([0-9a-f]{12,}(\+changes)?|not known: .+)"
    assert re.fullmatch(rf"hakmem {'.'.join(parts)} \({commit}\)\n", built("--version").out)
    assert built().out == built("--help").out
    assert built().status == 0
    assert built("nonsense").status == 2


OTHER_LIBRARY = """
#include <errno.h>
#include <stdint.h>
#include <string.h>
unsigned hakmem_version(void) { return 9; }
int hakmem_option(const char *name, uint64_t *value)
{
    *value = 4096;
    return strcmp(name, "keep_bytes") == 0 ? 0 : ENOENT;
}
"""


def beside(built: Built, source: str, folder: Path) -> Built:
    """The command beside another library than its own."""
    library, front = folder / "libhakmem.so", folder / "bin" / "hakmem"
    compile = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(compile, input=source, text=True, check=True)
    front.parent.mkdir()
    shutil.copy(built.front, front)
    return Built(front, library, built.archive)


def test_a_library_of_another_version(built: Built, tmp_path: Path) -> None:
    other = beside(built, OTHER_LIBRARY, tmp_path)
    said = other("--version")
    assert said.status == 0
    assert (
        f"the library, {other.library}, is version 0.0.9: install the same version of both"
        in said.out
    )
    assert "(commit not known: " in said.out
    listed = other("options", "keep_bytes", "scavenger")
    assert listed.status == 0
    assert "here 4 KiB" in listed.out and "scavenger " in listed.out
    assert "the library is version 0.0.9, this command " in listed.err
    assert listed.err.endswith("; the library has no option scavenger\n")
    assert records(other, "scavenger")["scavenger"]["here"] is None


def test_a_library_that_is_not_ours(built: Built, tmp_path: Path) -> None:
    other = beside(built, "int nothing;\n", tmp_path)
    said = other("--version")
    assert said.status == 1
    assert said.out.endswith("/libhakmem.so: this is not hakmem's library\n")
