"""A wrong option gets one clear line, and changes nothing."""

import os
import random
import shutil
from pathlib import Path

import pytest

from tests.nobody import as_nobody, public_folder
from tests.options.surroundings import ask, other_etc
from tools.options import number, table

DEFAULTS = {option.name: number(option.value) for option in table()}

SIZE = "expected a size from 0 to 1G (in bytes, or with K, M or G); the default stays, 1280K"
COUNT = "expected a number from 0 to 1000000; the default stays, 500"
SIGNAL = "expected a number from 0 to 30; the default stays, 0"
SWITCH = "expected on or off; the default stays, on"
SIZE_OR_AUTO = (
    "expected auto or a size from 0 to 1024G (in bytes, or with K, M or G); the default stays, auto"
)

WRONG = [
    *(
        ("stack_bytes", text, SIZE)
        for text in (
            *("x", "-1", "+1", "0x10", "1.5M", "1e3", "1KB", "1 K x", "K", "1,000", "1T"),
            *("1073741825", "1025M", "2G", "18446744073709551615", "18446744073709551616"),
            *("17179869184G", "18446744073709551617", "9" * 40),
        )
    ),
    *(("profile_samples", text, COUNT) for text in ("-1", "1000001", "1K", "15.0")),
    *(("profile_samples", text, COUNT) for text in ("auto", "AUTO")),
    *(("keep_bytes", text, SIZE_OR_AUTO) for text in ("aut", "autos", "1025G", "-1")),
    # The number by which auto is told.
    ("keep_bytes", str(2**64 - 1), SIZE_OR_AUTO),
    *(("stats", text, "expected exit or off; the default stays, off") for text in ("on", "2")),
    *(("stats_signal", text, SIGNAL) for text in ("31", "SIGUSR1")),
    *(("scavenger", text, SWITCH) for text in ("2", "-1", "o", "onn", "enable", "01")),
]


@pytest.mark.parametrize(("name", "text", "words"), WRONG)
def test_wrong_values(name: str, text: str, words: str, show: Path, tmp_path: Path) -> None:
    variable = f"HAKMEM_{name.upper()}"
    outcome = ask(show, name, **{variable: text})
    assert outcome.complaints == [f"hakmem: environment: {variable}={text}: {words}"]
    assert outcome.values == {name: DEFAULTS[name]}

    file = tmp_path / "file"
    file.write_text(f"\n{name} = {text}\n")
    outcome = ask(show, name, HAKMEM_CONFIG=str(file))
    assert outcome.complaints == [f"hakmem: {file}:2: {name}={text}: {words}"]
    assert outcome.values == {name: DEFAULTS[name]}


def test_a_value_from_an_earlier_source_stays(show: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("stack_bytes = 3M\n")
    outcome = ask(show, "stack_bytes", HAKMEM_CONFIG=str(file), HAKMEM_STACK_BYTES="much")
    assert outcome.values == {"stack_bytes": 3 << 20}
    assert outcome.complaints == [
        "hakmem: environment: HAKMEM_STACK_BYTES=much: expected a size from 0 to 1G "
        "(in bytes, or with K, M or G); what was set before stays, 3M"
    ]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("stack_byte", "stack_bytes"),
        ("stackbytes", "stack_bytes"),
        ("keep", "keep_bytes"),
        ("KEEP_BY", "keep_bytes"),
        ("stack", "stack_bytes"),
        ("steak_bytes", "stack_bytes"),
        ("huge_page", "huge_pages"),
        ("scavanger", "scavenger"),
        ("scavngr", "scavenger"),
        ("check_freeze", "check_frees"),
        ("profile_sample", "profile_samples"),
        ("lern", "learn"),
    ],
)
def test_names_that_resemble_an_option(name: str, nearest: str, show: Path, tmp_path: Path) -> None:
    outcome = ask(show, **{f"HAKMEM_{name.upper()}": "1"})
    assert outcome.complaints == [
        f"hakmem: environment: HAKMEM_{name.upper()}: there is no such option; "
        f"the nearest is HAKMEM_{nearest.upper()}"
    ]
    file = tmp_path / "file"
    file.write_text(f"{name} = 1\n")
    outcome = ask(show, HAKMEM_CONFIG=str(file))
    assert outcome.complaints == [
        f"hakmem: {file}:1: {name}: there is no such option; the nearest is {nearest}"
    ]


@pytest.mark.parametrize(
    "name",
    ["x", "dir", "log", "leak", "home", "build_type", "version", "abort_on_error"],
)
def test_names_that_resemble_none(name: str, show: Path, tmp_path: Path) -> None:
    """Scripts have variables of their own that begin so. In a file nothing but options is meant."""
    assert ask(show, **{f"HAKMEM_{name.upper()}": "1"}).complaints == []
    file = tmp_path / "file"
    file.write_text(f"{name} = 1\n")
    (line,) = ask(show, HAKMEM_CONFIG=str(file)).complaints
    assert line == f"hakmem: {file}:1: {name}: there is no such option"


@pytest.mark.parametrize("name", ["CONFI", "COMFIG", "CONF"])
def test_the_file_s_variable_mistyped(name: str, show: Path) -> None:
    assert ask(show, **{f"HAKMEM_{name}": "/nowhere"}).complaints == [
        f"hakmem: environment: HAKMEM_{name}: there is no such option; the nearest is HAKMEM_CONFIG"
    ]


def test_small_letters_in_the_environment(show: Path) -> None:
    outcome = ask(show, "stack_bytes", HAKMEM_stack_bytes="1")
    assert outcome.values == {"stack_bytes": DEFAULTS["stack_bytes"]}
    assert outcome.complaints == [
        "hakmem: environment: HAKMEM_stack_bytes: there is no such option; "
        "the nearest is HAKMEM_STACK_BYTES"
    ]


def test_variables_of_others_are_not_ours(show: Path) -> None:
    assert ask(show, HAKMEM="1", HAKMEMORY_X="1", MY_HAKMEM_X="1", hakmem_x="1").complaints == []


def test_once_for_all_programs_of_a_command(show: Path, tmp_path: Path) -> None:
    """What the command asks for: who has complained writes so where those that it starts look."""
    file = tmp_path / "file"
    file.write_text("nonsense = 1\n")
    wrong = {"HAKMEM_CONFIG": str(file), "HAKMEM_SCAVENGER": "maybe", "HAKMEM_LERN": "1"}
    three = ["--again", "--again"]
    each = ask(show, **wrong).complaints
    assert len(each) == 3
    assert ask([str(show), *three], **wrong).complaints == 3 * each
    assert ask([str(show), *three], HAKMEM_COMPLAIN="once", **wrong).complaints == each
    assert ask(show, HAKMEM_COMPLAIN="done", **wrong).complaints == []
    # Nobody has complained yet: what is set wrong on the way is told.
    later = ["env", "HAKMEM_LERN=1", str(show)]
    assert len(ask([str(show), "--exec", *later], HAKMEM_COMPLAIN="once").complaints) == 1


def test_lines_that_set_nothing(show: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(f"stack_bytes 1M\n=1\n{'y' * 300}\nstack_bytes = 1M\n")
    outcome = ask(show, "stack_bytes", HAKMEM_CONFIG=str(file))
    assert outcome.values == {"stack_bytes": 1 << 20}
    assert outcome.complaints[0] == (
        f"hakmem: {file}:1: stack_bytes 1M: expected NAME = VALUE; the line is ignored"
    )
    assert outcome.complaints[1] == f"hakmem: {file}:2: : there is no such option"
    assert outcome.complaints[2:] == [
        f"hakmem: {file}:3: {'y' * 40}...: too long; the line is ignored"
    ]


def test_long_and_unprintable_words_are_cut(show: Path, tmp_path: Path) -> None:
    outcome = ask(show, HAKMEM_SCAVENGER="\x1b[31m\n\u00e9" + "x" * 100)
    # Two bytes of UTF-8 for the letter.
    assert outcome.complaints == [
        f"hakmem: environment: HAKMEM_SCAVENGER=?[31m???{'x' * 32}...: {SWITCH}"
    ]
    file = tmp_path / "file"
    file.write_text("Q" * 200 + " = 1\n")
    outcome = ask(show, HAKMEM_CONFIG=str(file))
    assert outcome.complaints == [f"hakmem: {file}:1: {'Q' * 40}...: there is no such option"]
    assert ask(show, **{f"HAKMEM_{'Q' * 5000}": "1"}).complaints == []


def test_at_most_8_lines(show: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("nonsense\n" * 20 + "profile_samples = 5\n")
    outcome = ask(show, "profile_samples", HAKMEM_CONFIG=str(file), HAKMEM_SCAVANGER="1")
    assert outcome.values == {"profile_samples": 5}
    assert outcome.complaints == [
        f"hakmem: {file}:{line}: nonsense: expected NAME = VALUE; the line is ignored"
        for line in range(1, 9)
    ]


def test_a_path_that_is_too_long(show: Path) -> None:
    outcome = ask(show, "stats_file", HAKMEM_STATS_FILE="/" + "x" * 1023)
    assert outcome.complaints == [
        f"hakmem: environment: HAKMEM_STATS_FILE=/{'x' * 39}...: expected a path of less than 1024"
        " bytes; the default stays, none"
    ]
    assert outcome.values == {"stats_file": 0}


def test_a_path_may_be_taken_back(show: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(f"stats_file = {tmp_path}/told\n")
    outcome = ask(show, "stats_file", HAKMEM_CONFIG=str(file), HAKMEM_STATS_FILE="none")
    assert outcome.values == {"stats_file": 0} and outcome.complaints == []
    assert not (tmp_path / "told").exists()


def unread(path: object, why: str) -> str:
    return (
        f"hakmem: environment: HAKMEM_CONFIG={path}: cannot be read: {why}; "
        "nothing more is taken from it"
    )


def test_files_that_cannot_be_read(show: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, why in (
        (tmp_path / "missing", "there is no such file"),
        (tmp_path, "it is a directory"),
        (show / "x", "not a directory"),
        (tmp_path / ("n" * 300), "error 36"),  # ENAMETOOLONG
    ):
        outcome = ask(show, "profile_samples", HAKMEM_CONFIG=str(path), HAKMEM_PROFILE_SAMPLES="9")
        shown = str(path) if len(str(path)) <= 256 else str(path)[:256] + "..."
        assert outcome.complaints == [unread(shown, why)]
        assert outcome.values == {"profile_samples": 9}
    # Nothing waits for somebody who writes into it.
    assert ask(show, HAKMEM_CONFIG=str(fifo)).complaints == []


def test_a_file_that_others_may_not_read(show: Path) -> None:
    with public_folder() as folder:
        before = as_nobody() if os.geteuid() == 0 else []
        program = Path(shutil.copy(show, folder))
        file = folder / "file"
        file.write_text("profile_samples = 5\n")
        file.chmod(0)
        outcome = ask([*before, str(program)], "profile_samples", HAKMEM_CONFIG=str(file))
        assert outcome.complaints == [unread(file, "permission denied")]
        assert outcome.values == {"profile_samples": DEFAULTS["profile_samples"]}


def test_the_system_file_that_is_a_directory(show: Path, tmp_path: Path) -> None:
    outcome = ask([*other_etc(tmp_path, None), str(show)])
    assert outcome.complaints == [
        "hakmem: /etc/hakmem.conf: cannot be read: it is a directory; nothing more is taken from it"
    ]


def test_a_wrong_line_of_the_system_file(show: Path, tmp_path: Path) -> None:
    outcome = ask([*other_etc(tmp_path, "#\n\nscavenger = maybe"), str(show)])
    assert outcome.complaints == [f"hakmem: /etc/hakmem.conf:3: scavenger=maybe: {SWITCH}"]


def test_a_file_without_end(show: Path) -> None:
    outcome = ask(show, "profile_samples", HAKMEM_CONFIG="/dev/zero", HAKMEM_PROFILE_SAMPLES="9")
    assert outcome.complaints == [
        "hakmem: /dev/zero:1: the file is longer than 4 MiB; the rest of it is ignored"
    ]
    assert outcome.values == {"profile_samples": 9}


def test_garbage(show: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    for seed in range(20):
        file.write_bytes(random.Random(seed).randbytes(1 << 16) + b"\nprofile_samples = 5")
        outcome = ask(show, *DEFAULTS, HAKMEM_CONFIG=str(file))
        assert outcome.values == DEFAULTS | {"profile_samples": 5}
        assert len(outcome.complaints) == 8
        for line in outcome.complaints:
            assert line.startswith(f"hakmem: {file}:")
            assert line.isascii() and line.isprintable() and len(line) < 768
