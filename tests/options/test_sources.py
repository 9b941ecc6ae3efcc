"""Every option from every source, what wins, and in which ways a value may be written."""

from pathlib import Path

import pytest

from tests.options.surroundings import SYSTEM_FILE, ask, other_etc
from tools.options import AUTO, Option, gone, number, renamed, table

OPTIONS = table()
NAMES = [option.name for option in OPTIONS]
DEFAULTS = {option.name: number(option.value) for option in OPTIONS}

needs_no_file = pytest.mark.skipif(
    Path(SYSTEM_FILE).exists(), reason=f"there is a {SYSTEM_FILE} here"
)


def others(option: Option) -> list[int]:
    """Values within the bounds that are not the default."""
    least, most = number(option.least), number(option.most)
    candidates = {least, least + 1, (least + most) // 2, most - 1, most}
    if option.name == "hard_limit_bytes":
        candidates.remove(1)  # no program would start
    return sorted(n for n in candidates - {number(option.value)} if least <= n <= most)


def test_there_are_options() -> None:
    assert len(OPTIONS) >= 13
    assert {"stack_bytes", "keep_bytes"} <= set(NAMES)


@needs_no_file
def test_defaults(show: Path) -> None:
    outcome = ask(show, *NAMES)
    assert outcome.values == DEFAULTS
    assert outcome.complaints == []


@needs_no_file
@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_each_option_from_each_source(option: Option, show: Path, tmp_path: Path) -> None:
    """And no other option changes with it."""
    file = tmp_path / "file"
    for value in others(option):
        file.write_text(f"{option.name} = {value}\n")
        for variables in (
            {f"HAKMEM_{option.name.upper()}": str(value)},
            {"HAKMEM_CONFIG": str(file)},
        ):
            outcome = ask(show, *NAMES, **variables)
            assert outcome.values == DEFAULTS | {option.name: value}, variables
            assert outcome.complaints == []


def test_a_former_name_means_the_option(show: Path, tmp_path: Path) -> None:
    for old, name in renamed().items():
        file = tmp_path / "file"
        file.write_text(f"{old} = 3M\n")
        for variables in ({f"HAKMEM_{old.upper()}": "3M"}, {"HAKMEM_CONFIG": str(file)}):
            outcome = ask(show, name, old, **variables)
            assert outcome.values == {name: 3 << 20, old: 3 << 20}, variables
            assert outcome.complaints == []


@pytest.mark.parametrize(("name", "instead"), gone().items())
def test_a_file_with_an_option_that_is_gone(
    name: str, instead: str, show: Path, tmp_path: Path
) -> None:
    """It says what to do instead, and changes nothing."""
    file = tmp_path / "file"
    file.write_text(f"# nothing\n{name} = 3M\n{name.upper()} = 3M\n")
    outcome = ask(show, name, *NAMES, HAKMEM_CONFIG=str(file))
    assert outcome.values == {name: None} | DEFAULTS
    said = f"there is no such option any more: {instead}"
    assert outcome.complaints == [
        f"hakmem: {file}:2: {name}: {said}", f"hakmem: {file}:3: {name.upper()}: {said}"
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "instead"), gone().items())
def test_a_variable_of_an_option_that_is_gone(name: str, instead: str, show: Path) -> None:
    variable = f"HAKMEM_{name.upper()}"
    outcome = ask(show, name, *NAMES, **{variable: "3M"})
    assert outcome.values == {name: None} | DEFAULTS
    assert outcome.complaints == [
        f"hakmem: environment: {variable}: there is no such option any more: {instead}"
    ]


def test_each_option_from_the_system_file(show: Path, tmp_path: Path) -> None:
    wanted = {option.name: others(option)[0] for option in OPTIONS}
    text = "".join(f"{name}={value}\n" for name, value in wanted.items())
    outcome = ask([*other_etc(tmp_path, text), str(show)], *NAMES)
    assert outcome.values == wanted
    assert outcome.complaints == []


def test_the_later_source_wins(show: Path, tmp_path: Path) -> None:
    names = ["stack_bytes", "thread_bytes", "keep_bytes", "profile_samples"]
    file = tmp_path / "file"
    etc = other_etc(tmp_path, "stack_bytes = 1\nthread_bytes = 1\nkeep_bytes = 1\n")
    file.write_text("thread_bytes = 2\nkeep_bytes = 2\n")
    variables = {"HAKMEM_KEEP_BYTES": "3", "HAKMEM_CONFIG": str(file)}
    outcome = ask([*etc, str(show)], *names, **variables)
    assert outcome.values == {
        "stack_bytes": 1,
        "thread_bytes": 2,
        "keep_bytes": 3,
        "profile_samples": DEFAULTS["profile_samples"],
    }
    assert outcome.complaints == []


def test_the_last_line_of_a_file_wins(show: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("profile_samples=1\nprofile_samples=2\n")
    assert ask(show, "profile_samples", HAKMEM_CONFIG=str(file)).values == {"profile_samples": 2}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_empty_value_sets_nothing(option: Option, show: Path, tmp_path: Path) -> None:
    """Neither in a variable nor in a file: what an earlier source says stays."""
    value = others(option)[0]
    file = tmp_path / "file"
    file.write_text(f"{option.name} = {value}\n{option.name} =\n{option.name}= # none\n")
    outcome = ask(
        show, option.name, **{"HAKMEM_CONFIG": str(file), f"HAKMEM_{option.name.upper()}": ""}
    )
    assert (outcome.values, outcome.complaints) == ({option.name: value}, [])


@needs_no_file
def test_an_empty_name_of_a_file_is_none(show: Path) -> None:
    outcome = ask(show, *NAMES, HAKMEM_CONFIG="")
    assert (outcome.values, outcome.complaints) == (DEFAULTS, [])


KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("thread_bytes", "1000001", 1000001),
        ("thread_bytes", "007", 7),
        ("thread_bytes", "3K", 3 * KIB),
        ("thread_bytes", "3k", 3 * KIB),
        ("thread_bytes", "3KiB", 3 * KIB),
        ("thread_bytes", "3 kib", 3 * KIB),
        ("thread_bytes", "5M", 5 * MIB),
        ("thread_bytes", "5MiB", 5 * MIB),
        ("thread_bytes", "64G", 64 * GIB),
        ("thread_bytes", "1gib", GIB),
        *(("scavenger", text, 1) for text in ("1", "on", "ON", "true", "yes", "Yes")),
        *(("scavenger", text, 0) for text in ("0", "off", "Off", "false", "no", "NO")),
    ],
)
def test_ways_to_write_a_value(
    name: str, text: str, value: int, show: Path, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text(f"{name} = {text}\n")
    # The other value of a switch before, so that its default proves nothing.
    before = other_etc(tmp_path, f"{name} = {1 - value}\n") if name == "scavenger" else []
    for variables in ({f"HAKMEM_{name.upper()}": text}, {"HAKMEM_CONFIG": str(file)}):
        outcome = ask([*before, str(show)], name, **variables)
        assert (outcome.values, outcome.complaints) == ({name: value}, []), variables


@pytest.mark.parametrize("name", ["keep_bytes"])
def test_auto_is_a_value(name: str, show: Path, tmp_path: Path) -> None:
    """Which is the default, and wins over a number from an earlier source."""
    file = tmp_path / "file"
    variable = f"HAKMEM_{name.upper()}"
    for text in ("auto", "Auto"):
        file.write_text(f"{name} = 1\n")
        outcome = ask(show, name, **{"HAKMEM_CONFIG": str(file), variable: text})
        assert (outcome.values, outcome.complaints) == ({name: number(AUTO)}, [])
        file.write_text(f"{name} = 1\n{name} = {text}\n")
        outcome = ask(show, name, HAKMEM_CONFIG=str(file))
        assert (outcome.values, outcome.complaints) == ({name: number(AUTO)}, [])


@pytest.mark.parametrize(
    "line",
    [
        "profile_samples=77",
        "profile_samples = 77",
        "\t profile_samples\t=\t77 \t",
        "Profile_SAMPLES = 77",
        "profile_samples = 77 # why",
        "profile_samples = 77\r\n",
        "\n\n# a comment\n  # another = 1\n\nprofile_samples = 77\n\n",
        "#" + "x" * 5000 + "\nprofile_samples = 77",
        " " * 5000 + "profile_samples = 77",
    ],
)
def test_ways_to_write_a_line(line: str, show: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(line)
    outcome = ask(show, "profile_samples", HAKMEM_CONFIG=str(file))
    assert (outcome.values, outcome.complaints) == ({"profile_samples": 77}, [])


@pytest.mark.parametrize("length", [1023, 1024, 1025, 2048])
def test_a_line_across_what_is_read_at_once(length: int, show: Path, tmp_path: Path) -> None:
    line = "profile_samples = 77"
    for at in range(length - len(line), length + 1):
        file = tmp_path / "file"
        file.write_text("\n" * at + line)
        outcome = ask(show, "profile_samples", HAKMEM_CONFIG=str(file))
        assert (outcome.values, outcome.complaints) == ({"profile_samples": 77}, []), at


def test_a_file_of_a_megabyte(show: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    lines = "".join(f"profile_samples = {n}\n" for n in range(50000))
    file.write_text(lines + "# end without a newline\nstats_signal = 12")
    assert file.stat().st_size > 1 << 20
    outcome = ask(show, "profile_samples", "stats_signal", HAKMEM_CONFIG=str(file))
    assert outcome.values == {"profile_samples": 49999, "stats_signal": 12}
    assert outcome.complaints == []


def test_an_option_by_a_name_that_is_none(show: Path) -> None:
    wrong = ["", "stack_byte", "stack_bytess", "HAKMEM_STACK_BYTES", "stack_bytes=1"]
    assert ask(show, *wrong).values == dict.fromkeys(wrong)
    assert ask(show, "STACK_bytes").values == {"STACK_bytes": DEFAULTS["stack_bytes"]}
