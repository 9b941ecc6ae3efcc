"""Each misuse gets one report that says what, where, which thread and what to do, and ends the
program."""

import re
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.misuse.runs import (
    ADVICE_FOREIGN,
    ADVICE_MOVED,
    ADVICE_TWICE,
    END,
    FORMS,
    IGNORED,
    INSIDES,
    LATE,
    Programs,
    Run,
)
from tests.nightly import points
from tests.ran import ran

FOREIGN = "no block begins at this address"
UNALIGNED = "no block can begin at this address: it is not a multiple of 16"
INSIDE = "this address is inside a block, not at its start"
GONE = (
    "no block is in use here; most likely it is free already "
    "(freed twice, or used after it was freed)"
)
FREE = "this block is free already (freed twice, or used after it was freed)"

OF_MODULE = (
    r"not in a block of hakmem's; code or static memory of a module:(?: \S+)? \(.*misuse_.*\)"
)
HEX = "0x[0-9a-f]+"
VACANT = "in hakmem's memory, where no block is in use now"
UNMAPPED = (
    "where hakmem's memory may lie, but there is none at it now: wild, or given back meanwhile"
)
KEPT = "in memory of a large block that was freed"


def block(size: int, offset: int = 0) -> str:
    where = f"{offset} bytes into" if offset else "the start of"
    return f"{where} a block of class {size} bytes at {HEX}, in the slab at {HEX}"


def large(size: int, offset: int) -> str:
    return f"{offset} bytes into a large block of {size} bytes at {HEX}"


@dataclass
class Case:
    name: str
    number: int
    what: str
    address: str  # a regular expression
    advice: str
    function: str = "free"
    late: bool = False
    goes_on: str = ""  # what the program prints where the policy lets it go on
    reports: int = 1  # then
    forms: tuple[str, ...] = tuple(FORMS)
    keeps: bool = False  # freed memory stays

    def __str__(self) -> str:
        number = f"-{self.number:#x}" if self.number else ""
        return self.name + number + ("-kept" if self.keeps else "")

    @property
    def options(self) -> dict[str, str]:
        return {"HAKMEM_KEEP_BYTES": "1G"} if self.keeps else {}


NULL_EINVAL = r"realloc \(nil\), errno EINVAL"
NO_MEMORY = "not in a block of hakmem's; there is no memory at it"
MAPPED = "not in a block of hakmem's; the memory there is rw-p.*"

CASES = [
    Case("foreign_static", 0, FOREIGN, OF_MODULE, ADVICE_FOREIGN),
    Case("foreign_static", 1, UNALIGNED, OF_MODULE, ADVICE_FOREIGN),
    Case("foreign_stack", 0, FOREIGN, MAPPED + r"\[stack\]", ADVICE_FOREIGN),
    Case("foreign_mapping", 0, FOREIGN, MAPPED, ADVICE_FOREIGN),
    Case("metadata", 64, FOREIGN, MAPPED, ADVICE_FOREIGN, forms=tuple(INSIDES)),
    Case("metadata", 4000, FOREIGN, MAPPED, ADVICE_FOREIGN, forms=tuple(INSIDES)),
    Case("free_slice", 0, GONE, VACANT, ADVICE_TWICE),
    Case("foreign_number", 0x280000000000, FOREIGN, UNMAPPED, ADVICE_TWICE),
    Case("foreign_number", 0x2801FFFFFFF0, FOREIGN, UNMAPPED, ADVICE_TWICE),
    *(
        Case(name, number, FOREIGN, NO_MEMORY, ADVICE_FOREIGN)
        for name, numbers in (
            ("foreign_number", (0x10, 1 << 47, 0xDEAD0000BEEF0000, 0xFFFFFFFFFFFFFFF0)),
            ("foreign_number_warm", (0x10000, 1 << 48, 0xFFFF800000000000, 0xFFFFFFFFFFFFFFF0)),
        )
        for number in numbers
    ),
    Case("foreign_number", 0xFFFFFFFFFFFFFFFF, UNALIGNED, NO_MEMORY, ADVICE_FOREIGN),
    *(
        Case("inside", n, INSIDE, block(size, offset), ADVICE_MOVED)
        for n, size, offset in ((32, 32, 16), (100, 112, 48), (1000, 1024, 496), (8000, 8192, 4000))
    ),
    *(
        Case("inside", n, INSIDE, large(size, n // 2), ADVICE_MOVED)
        for n, size in ((40000, 40960), (100000, 102400), (131072, 131072), (262144, 262144))
    ),
    *(
        Case("inside", n, INSIDE, large(n, n // 2), ADVICE_MOVED)
        for n in (1048576, 2097152, 8388608, 1 << 27)
    ),
    *(
        Case("unaligned", n, UNALIGNED, block(size, 8), ADVICE_MOVED)
        for n, size in ((16, 16), (100, 112), (30000, 30720))
    ),
    *(
        Case("unaligned", n, UNALIGNED, large(n, 8), ADVICE_MOVED)
        for n in (131072, 1048576, 8388608)
    ),
    Case(
        "behind_the_last_block",
        112,
        INSIDE,
        f"behind the last block of the slab at {HEX}",
        ADVICE_MOVED,
    ),
    *(
        Case("realloc_inside", n, INSIDE, where, ADVICE_MOVED, "realloc", goes_on=NULL_EINVAL)
        for n, where in ((100, block(112, 48)), (1048576, large(1048576, 524288)))
    ),
    Case(
        "realloc_foreign", 100, FOREIGN, OF_MODULE, ADVICE_FOREIGN, "realloc", goes_on=NULL_EINVAL
    ),
    Case("realloc_foreign", 0, FOREIGN, OF_MODULE, ADVICE_FOREIGN, "realloc", goes_on=NULL_EINVAL),
    *(
        Case(
            "usable_inside",
            n,
            INSIDE,
            where,
            ADVICE_MOVED,
            "malloc_usable_size",
            goes_on="usable 0",
        )
        for n, where in ((100, block(112, 48)), (131072, large(131072, 65536)))
    ),
    Case(
        "usable_foreign",
        0,
        FOREIGN,
        OF_MODULE,
        ADVICE_FOREIGN,
        "malloc_usable_size",
        goes_on="usable 0",
    ),
    *(
        Case("twice", n, FREE, block(size), ADVICE_TWICE)
        for n, size in (
            (0, 16),
            (16, 16),
            (100, 112),
            (8192, 8192),
            (32768, 32768),
        )
    ),
    *(
        Case("twice", n, FREE, KEPT, ADVICE_TWICE)
        for n in (65536, 100000, 262144, 1048576, 2097152)
    ),
    Case("twice", 8388608, FREE, KEPT, ADVICE_TWICE, keeps=True),
    # Its memory went back at once.
    Case("twice", 8388608, FOREIGN, NO_MEMORY, ADVICE_FOREIGN),
    Case(
        "realloc_after_free",
        100,
        FREE,
        block(112),
        ADVICE_TWICE,
        "realloc",
        goes_on=NULL_EINVAL,
    ),
    *(
        Case(
            "realloc_after_free",
            n,
            FREE,
            KEPT,
            ADVICE_TWICE,
            "realloc",
            goes_on=NULL_EINVAL,
            keeps=n > 2 << 20,
        )
        for n in (100000, 8388608)
    ),
    Case(
        "realloc_after_free",
        8388608,
        FOREIGN,
        NO_MEMORY,
        ADVICE_FOREIGN,
        "realloc",
        goes_on=NULL_EINVAL,
    ),
    *(
        Case(name, n, FREE, block(size), ADVICE_TWICE)
        for name in ("twice_with_one_between", "twice_with_a_flush_between")
        for n, size in ((16, 16), (100, 112), (1000, 1024))
    ),
    *(
        Case("twice_after_a_trim", n, FREE, block(size), ADVICE_TWICE)
        for n, size in ((4096, 4096), (20000, 20480))
    ),
    # A flush may give its page back to the kernel, and what tells that it is free with it.
    Case("twice_with_one_between", 30000, FREE, block(30720), ADVICE_TWICE),
    *(
        Case("twice_with_one_between", n, FREE, KEPT, ADVICE_TWICE)
        for n in (40000, 100000, 262144, 1 << 20, 8 << 20)
    ),
    *(
        Case(name, n, FREE, block(size), ADVICE_TWICE, late=True)
        for name in (
            "written_between_found_by_flush",
            "written_between_found_at_thread_end",
            "written_between_found_by_trim",
        )
        for n, size in ((100, 112), (1000, 1024), (30000, 30720))
    ),
    Case("written_between_found_by_flush", 16, FREE, block(16), ADVICE_TWICE, late=True),
    # The first small blocks that a thread frees go straight to their slabs.
    Case("written_between_found_at_thread_end", 16, FREE, block(16), ADVICE_TWICE),
    Case("twice_among_others", 1048576, GONE, VACANT, ADVICE_TWICE),
]

FIRST = {case.name: case for case in reversed(CASES)}


def always(form: str, case: Case) -> bool:
    """Each case in one form; in the others one of each name."""
    return form == case.forms[0] or FIRST[case.name] is case


BY_FORM = points(((form, case) for case in CASES for form in case.forms), always)


@pytest.fixture
def programs(programs: Path, library: Path) -> Programs:
    return Programs(programs, library)


def expect_line(run: Run, index: int, pattern: str) -> None:
    lines = run.lines
    assert len(lines) > index, f"expected line {index}: {pattern}\nfound {run}"
    assert re.fullmatch(pattern, lines[index]), (
        f"line {index}: expected {pattern}\nfound {lines[index]}\nin {run.error}"
    )


def expect_report(run: Run, case: Case, end: str) -> None:
    """One report and nothing else on standard error."""
    expect_line(run, 0, rf"{case.function}\({run.culprit}\): {re.escape(case.what)}")
    expect_line(run, 1, f"address: {case.address}")
    expect_line(run, 2, r"thread: \d+ \(misuse_.*\)")
    lines = run.lines
    if run.form == "static":
        assert "no backtrace in this build; a debugger shows who called" in lines
    else:
        assert run.frames, f"expected frames, found {run.error}"
    assert (LATE in lines) == case.late, f"expected late: {case.late}, found {run.error}"
    assert lines[-2] == f"what to do: {case.advice}", run.error
    assert lines[-1] == end, run.error
    assert sum(line.startswith("what to do") for line in lines) == 1, run.error


@pytest.mark.parametrize("case", points(CASES, lambda case: FIRST[case.name] is case), ids=str)
def test_one_report_then_the_end(programs: Programs, case: Case) -> None:
    run = programs.run(case.forms[0], case.name, str(case.number), **case.options)
    assert run.status == -signal.SIGABRT, f"expected SIGABRT, found {run}"
    expect_report(run, case, END)


@pytest.mark.parametrize(("form", "case"), BY_FORM, ids=str)
def test_one_report_then_on(programs: Programs, form: str, case: Case) -> None:
    run = programs.run(form, "--go-on", case.name, str(case.number), **case.options)
    assert run.status == 0, f"expected an end with 0, found {run}"
    assert "the heap is whole\nend\n" in run.output, run
    expect_report(run, case, IGNORED)
    if case.goes_on:
        assert re.search(case.goes_on, run.output), f"expected {case.goes_on}, found {run.output}"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "size", "class_size"),
    [
        ("written_between_found_by_exit", 100, 112),
        ("written_between_found_by_exit", 30000, 30720),
        ("never_handed_out_found_by_exit", 100, 112),
    ],
)
@pytest.mark.parametrize("goes_on", [False, True])
def test_found_when_the_program_calls_exit(
    programs: Programs, form: str, name: str, size: int, class_size: int, goes_on: bool
) -> None:
    run = programs.run(form, *["--go-on"] * goes_on, name, str(size))
    assert run.status == (0 if goes_on else -signal.SIGABRT), run
    assert run.output.endswith("end\n"), run
    case = Case(name, size, FREE, block(class_size), ADVICE_TWICE, late=True)
    expect_report(run, case, IGNORED if goes_on else END)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", ["64", "3000", "32768"])
def test_a_block_whose_slab_is_gone(programs: Programs, form: str, size: str) -> None:
    """With every free checked the first one gives the slab's memory back at once."""
    run = programs.run(form, "twice", size, HAKMEM_CHECK_FREES="on")
    case = Case("twice", int(size), GONE, VACANT, ADVICE_TWICE)
    assert run.status == -signal.SIGABRT, run
    expect_report(run, case, END)


@pytest.mark.parametrize("form", FORMS)
def test_a_hundred_reports_are_enough(programs: Programs, form: str) -> None:
    run = programs.run(form, "--go-on", "times", "150")
    lines = run.lines
    assert run.status == 0, run
    assert lines.count(IGNORED) == 100
    assert lines[-1] == "further misuse is ignored, and not reported any more"
    assert sum(FOREIGN in line for line in lines) == 100


@pytest.mark.parametrize("form", FORMS)
def test_wrong_calls_leave_right_ones_alone(programs: Programs, form: str) -> None:
    run = programs.run(form, "--go-on", "among_right_calls", "4")
    assert run.status == 0, run
    assert "the heap is whole\nend\n" in run.output, run
    assert run.lines.count(IGNORED) == 100, run.error


@pytest.mark.parametrize("form", ["preload", "names"])
def test_frames_begin_with_the_caller(programs: Programs, form: str) -> None:
    """hakmem's own are left out (debug builds show free); each has its number."""
    for name, first in (
        ("foreign_static", "watched_free"),
        ("unaligned", "watched_free"),
        ("in_a_handler", "watched_free"),
    ):
        run = programs.run(form, name, "100")
        frames = run.frames
        assert run.caller[2] == first, f"expected {first} in front, found {run.error}"
        assert [int(frame[1]) for frame in frames] == list(range(len(frames)))
    assert "main" in run.functions(), f"expected main, found {run.error}"


@pytest.mark.parametrize(
    ("form", "name", "first"),
    [
        ("preload", "written_between_found_at_thread_end", "libc"),
        ("names", "written_between_found_at_thread_end", "libc"),
        ("preload", "written_between_found_by_trim", "misuse_preload"),
    ],
)
def test_what_is_found_late_shows_no_frame_of_ours(
    programs: Programs, form: str, name: str, first: str
) -> None:
    """No call of the program is to blame then, but hakmem's own frames tell nobody anything."""
    run = programs.run(form, name, "1000")
    assert run.status == -signal.SIGABRT and LATE in run.lines, run
    assert f"free({run.culprit}): {FREE}" == run.lines[0]
    modules = [Path(frame[3]).name for frame in run.frames]
    assert modules and modules[0].startswith(first), f"expected {first} in front: {run.error}"
    assert not any(module.startswith("libhakmem") for module in modules), run.error


@pytest.mark.parametrize("form", ["preload", "names"])
def test_addr2line_names_the_line_of_a_frame(programs: Programs, form: str) -> None:
    run = programs.run(form, "foreign_static")
    frame = run.caller
    tool = ran("addr2line", "-Cfpie", frame[3], frame[4], check=True)
    assert re.search(r"watched_free at .*cases\.c:\d+", tool.stdout), f"{frame[0]}: {tool.stdout}"


def test_deep_stacks_are_cut(programs: Programs) -> None:
    run = programs.run("preload", "deep", "1000")
    assert len(run.frames) == 32, run.error
    assert any("further frames are left out" in line for line in run.lines), run.error
    assert run.lines[-1] == END


# What the program must print besides, the reports, the lines that stand without a report.
SITUATIONS: list[tuple[str, int, str, int, int]] = [
    ("in_a_thread", 0, "", 1, 0),
    ("in_a_thread", 16384, "", 1, 0),
    ("in_many_threads", 2, "", 1, 0),
    ("in_many_threads", 64, "", 1, 0),
    ("in_a_cancelled_thread", 0, "", 1, 0),
    ("in_a_handler", 0, "", 1, 0),
    ("on_a_small_signal_stack", 0, "", 1, 0),
    ("with_an_abort_handler", 1, "handled", 1, 0),
    ("with_an_abort_handler", 8, "handled", 1, 0),
    ("with_a_wrong_abort_handler", 0, "handled", 1, 1),
    ("with_an_abort_handler_that_jumps", 0, "jumped", 1, 1),
    ("with_abort_ignored_and_blocked", 0, "", 1, 0),
    ("with_stderr_closed", 0, "", 0, 0),
    ("with_nobody_reading_stderr", 0, "", 0, 0),
    ("in_a_child_of_an_abort_handler", 0, "child aborted", 2, 0),
    ("damage_return", 0, "", 1, 0),
    ("damage_callers_frame", 0, "", 1, 0),
    ("while_a_library_loads", 0, "", 1, 0),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("name", "number", "says", "reports", "brief"), SITUATIONS)
def test_wherever_it_happens(
    programs: Programs, form: str, name: str, number: int, says: str, reports: int, brief: int
) -> None:
    run = programs.run(form, name, str(number))
    assert run.status == -signal.SIGABRT, f"expected SIGABRT, found {run}"
    assert says in run.output, f"expected {says!r}, found {run}"
    lines = run.lines
    assert lines.count(END) == reports, f"expected {reports} reports, found {run.error}"
    firsts = [line for line in lines if re.match(r"free\(0x", line)]
    assert len(firsts) == reports + brief, f"expected {reports} + {brief}, found {run.error}"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["in_a_child", "in_a_child_of_a_thread"])
def test_a_child_reports_and_the_parent_lives(programs: Programs, form: str, name: str) -> None:
    run = programs.run(form, name)
    assert run.status == 0, run
    assert "child aborted" in run.output, run
    assert run.lines.count(END) == 1, run.error


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "name", ["in_many_threads", "in_a_handler", "with_nobody_reading_stderr", "in_a_thread"]
)
def test_wherever_it_happens_the_program_goes_on(programs: Programs, form: str, name: str) -> None:
    run = programs.run(form, "--go-on", name, "64" if name == "in_many_threads" else "0")
    assert run.status == 0, run
    assert "the heap is whole\nend\n" in run.output, run
    expected = {"in_many_threads": 64, "with_nobody_reading_stderr": 0}.get(name, 1)
    assert run.lines.count(IGNORED) == expected, f"expected {expected}, found {run.error}"


@pytest.mark.parametrize("form", ["preload", "names"])
def test_a_damaged_stack_is_said_to_be(programs: Programs, form: str) -> None:
    run = programs.run(form, "damage_callers_frame")
    assert "the backtrace ends here: the stack is damaged" in run.lines, run.error


def test_the_thread_is_named(programs: Programs) -> None:
    expect_line(programs.run("preload", "in_a_thread"), 2, r"thread: \d+ \(wrong-doer\)")
