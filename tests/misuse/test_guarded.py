"""Wrong accesses to guarded blocks: the report, the stacks that allocated and freed the block, and
how the program ends."""

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.misuse.runs import FRAME, run_with
from tests.misuse.test_misuse import FREE, HEX, INSIDE

USED = "use after free: this memory was freed earlier"
BEYOND = "past the end of a block (buffer overflow)"
BEFORE = "before the start of a block (buffer underflow)"
OVERRUN = "something wrote beyond the end of this block, or before the next one"
UNDERRUN = "something wrote before this block, or beyond the end of the one before"
SIZE = "the size that was said does not fit the block"
FAULT_END = "the program ends here, unless it handles SIGSEGV"
GOES_ON = "the program goes on, and may touch this page from now on"
BLOCK = f"a guarded block of 77 bytes at {HEX}"

Start = Callable[..., tuple[int, str, list[str]]]


@pytest.fixture
def start(programs: Path, library: Path) -> Start:
    program = programs / "misuse_guarded"

    def run(*arguments: str, **options: str) -> tuple[int, str, list[str]]:
        return run_with(library, program, *arguments, **{"guards_a_second": "1000"} | options)

    return run


def functions_after(lines: list[str], title: str) -> list[str]:
    """Of the stack under a line that begins so; functions with names."""
    at = next(i for i, line in enumerate(lines) if re.match(title, line)) + 1
    names = []
    while at < len(lines) and (frame := FRAME.fullmatch(lines[at])):
        names.append(frame[2] or "")
        at += 1
    return names


FAULTS = [
    ("read_after_free", "read", USED, "3 bytes into", True),
    ("write_after_free", "write", USED, "3 bytes into", True),
    ("read_beyond", "read", BEYOND, "20 bytes past the end of", False),
    ("write_beyond", "write", BEYOND, "20 bytes past the end of", False),
    ("write_before", "write", BEFORE, "1 bytes before", False),
    ("freed_by_another_thread", "read", USED, "the start of", True),
    ("in_another_thread", "read", USED, "the start of", True),
]


@pytest.mark.parametrize(
    "options",
    [{}, {"preset": "hardened"}, {"profile": "on", "profile_rate": "1K", "profile_samples": "0"}],
    ids=str,
)
@pytest.mark.parametrize(("case", "access", "what", "where", "freed"), FAULTS)
def test_an_access_is_reported_with_both_stacks(
    start: Start,
    case: str,
    access: str,
    what: str,
    where: str,
    freed: bool,
    options: dict[str, str],
) -> None:
    status, output, lines = start(case, **options)
    assert status == -signal.SIGSEGV and "end" not in output, lines
    assert re.fullmatch(f"(?:{access}|access) of {HEX}: {re.escape(what)}", lines[0]), lines
    assert re.fullmatch(f"address: {where} {BLOCK}", lines[1]), lines
    assert "allocate_it" in functions_after(lines, r"this block was allocated by thread \d+ at")[0]
    if freed:
        assert "free_it" in functions_after(lines, r"this block was freed by thread \d+ at")[0]
    assert any("this block was freed" in line for line in lines) == freed, lines
    assert lines[-1] == FAULT_END, lines
    assert functions_after(lines, "thread: ")[0] in (f"{access}_it", "read_it"), lines


def test_the_threads_are_named(start: Start) -> None:
    _, _, lines = start("freed_by_another_thread")
    threads = re.findall(r"this block was (?:allocated|freed) by thread (\d+)", "\n".join(lines))
    assert len(set(threads)) == 2, lines


@pytest.mark.parametrize(
    ("case", "what"),
    [("overrun", OVERRUN), ("underrun", UNDERRUN), ("twice", FREE), ("inside", INSIDE)],
)
def test_a_wrong_free_is_reported_with_the_stacks(start: Start, case: str, what: str) -> None:
    status, _, lines = start(case)
    assert status == -signal.SIGABRT, lines
    assert re.fullmatch(rf"free\({HEX}\): {re.escape(what)}", lines[0]), lines
    assert BLOCK.split(" at ")[0] in lines[1], lines
    assert "allocate_it" in functions_after(lines, "this block was allocated")[0]
    if case != "inside":
        assert "free_it" in functions_after(lines, "this block was freed")[0]


def test_a_shrunk_block_is_watched_from_its_new_end(start: Start) -> None:
    status, output, lines = start("shrunk_and_overrun")
    assert (status, "moved" in output) == (-signal.SIGABRT, False), lines
    assert re.fullmatch(rf"free\({HEX}\): {re.escape(OVERRUN)}", lines[0]), lines
    assert "a guarded block of 40 bytes" in lines[1], lines
    status, output, lines = start("freed_with_less_when_shrunk", check_sizes="on")
    assert (status, output.endswith("end\n"), lines) == (0, True, [])


def test_realloc_sees_what_was_written_beyond_the_end(start: Start) -> None:
    status, _, lines = start("overrun_and_shrunk")
    assert status == -signal.SIGABRT, lines
    assert re.fullmatch(rf"realloc\({HEX}\): {re.escape(OVERRUN)}", lines[0]), lines


def test_realloc_after_free(start: Start) -> None:
    status, _, lines = start("realloc_after_free")
    assert status == -signal.SIGABRT, lines
    assert re.fullmatch(rf"realloc\({HEX}\): {re.escape(FREE)}", lines[0]), lines


@pytest.mark.parametrize(("case", "size"), [("freed_with_more", 78), ("freed_with_less", 76)])
def test_a_wrong_size_in_a_free(start: Start, case: str, size: int) -> None:
    status, _, lines = start(case, check_sizes="on")
    assert status == -signal.SIGABRT, lines
    assert re.fullmatch(rf"sized free\({HEX}, {size}\): {re.escape(SIZE)}", lines[0]), lines
    assert re.fullmatch(f"address: the start of {BLOCK}", lines[2]), lines
    for passes, checks in ((case, "off"), ("freed_with_its_size", "on")):
        status, output, lines = start(passes, check_sizes=checks)
        assert (status, output.endswith("end\n"), lines) == (0, True, []), passes


@pytest.mark.parametrize("case", [fault[0] for fault in FAULTS])
def test_the_program_may_go_on(start: Start, case: str) -> None:
    status, output, lines = start(case, abort_on_misuse="off")
    assert (status, output.endswith("end\n")) == (0, True), lines
    assert lines[-1] == GOES_ON, lines


def test_many_threads_at_once(start: Start) -> None:
    status, output, lines = start("in_many_threads", abort_on_misuse="off")
    assert (status, output.endswith("end\n")) == (0, True), lines
    assert 1 <= lines.count(GOES_ON) <= 16, lines
    status, _, lines = start("in_many_threads")
    assert status == -signal.SIGSEGV, lines


def test_a_child_reports_and_the_parent_lives(start: Start) -> None:
    status, output, lines = start("in_a_child")
    assert status == 0, lines
    assert f"child {int(signal.SIGSEGV)}\n" in output and "end" in output, output
    assert lines.count(FAULT_END) == 1, lines


def test_the_programs_own_handler_is_called_after(start: Start) -> None:
    for status, output, lines in (
        start("read_after_free", "--handle", guards_a_second="0"),
        start("with_a_handler_that_stays"),
    ):
        assert (status, "handled" in output) == (3, True), output
        assert lines and lines[-1] == FAULT_END, output


def test_a_later_handler_replaces_ours(start: Start) -> None:
    status, output, lines = start("with_a_later_handler")
    assert (status, "handled" in output, lines) == (3, True, []), output


@pytest.mark.parametrize("case", ["wild_pointer", "signal_sent"])
def test_other_faults_are_not_ours(start: Start, case: str) -> None:
    """What the program handles or not is as without hakmem."""
    status, _, lines = start(case)
    assert (status, lines) == (-signal.SIGSEGV, [])
