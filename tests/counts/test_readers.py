"""The readers of traces and profiles find what is there, and refuse what they do not know."""

from collections import Counter

import pytest

from hakmem.callgrind import Entry, Misread, entries
from tests.counts.callgrind import Cost, calls_from
from tests.counts.trace import between_markers

BEGIN = '7 write(1, "\\ncounts: begin\\n", 15) = 15\n'
END = '7 write(1, "counts: end\\n", 12) = 12\n'
BRK = "7 brk(NULL) = 0x1000\n"

PROFILE = """\
events: Ir Bc Bcm

fn=loop
0 100 20 5
cfi=a.c
cfn=malloc
calls=3 0
0 60 9
cfn=free
calls=2 0
0 30

fn=malloc
0 40 9
cfn=slow
calls=1 0
0 20

fn=slow
0 20

fn=free
0 30

totals: 190 29 5
"""


def test_only_what_stands_between_the_markers() -> None:
    assert between_markers(BRK + BEGIN + END + BRK) == []
    assert between_markers(BEGIN + BRK + "8 madvise(1, 2, 3) = 0\n" + END) == [
        BRK.rstrip(),
        "8 madvise(1, 2, 3) = 0",
    ]


@pytest.mark.parametrize("trace", ["", BEGIN, END, BEGIN + BEGIN + END])
def test_a_marker_must_be_there_once(trace: str) -> None:
    with pytest.raises(AssertionError, match="system calls write"):
        between_markers(trace)


def test_calls_cost_what_they_include() -> None:
    assert calls_from(PROFILE, "loop") == Cost(calls=5, instructions=90, branches=9)
    assert calls_from(PROFILE, "free") == Cost(0, 0, 0)


@pytest.mark.parametrize("profile", ["", PROFILE.replace("190", "191")])
def test_a_profile_must_add_up(profile: str) -> None:
    with pytest.raises(Misread, match="add up"):
        calls_from(profile, "loop")


def test_costs_belong_to_the_file_last_named() -> None:
    profile = (
        "events: Ir\nob=/a\nfn=f\n1 2\ncob=/b\ncfn=g\ncalls=4 0\n1 3\nob=/b\nfn=g\n9 3\ntotals: 5"
    )
    assert list(entries(profile)) == [
        Entry("/a", "f", None, Counter(Ir=2)),
        Entry("/a", "f", 4, Counter(Ir=3)),
        Entry("/b", "g", None, Counter(Ir=3)),
    ]
