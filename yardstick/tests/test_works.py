"""The table of works is read as written, and tells what grew by more than it may."""

from hakmem_yardstick.counts import MEASURES, WORKS
from yardstick.tools.golden_counts import GUARDED, TOLERANCES, changes, table_of, table_read

PAIR = {
    "instructions": 18.0,
    "branches": 2.0,
    "mispredicts": 0.0,
    "data-refs": 10.5,
    "d1-misses": 0.5,
    "ll-misses": 0.001,
}


def test_table_is_read_as_written() -> None:
    assert table_read(table_of("gcc 12", {"pair-64": PAIR})) == ("gcc 12", {"pair-64": PAIR})
    assert table_read("") == ("", {})


def test_what_is_guarded_is_counted() -> None:
    assert set(GUARDED) <= {work.row for work in WORKS}
    assert list(TOLERANCES) == [measure.name for measure in MEASURES] == list(PAIR)


def test_an_instruction_more_in_one_of_the_two_calls_is_too_much() -> None:
    now = {"pair-64": {**PAIR, "instructions": 18.5}}
    assert changes({"pair-64": PAIR}, now) == (
        ["pair-64: instructions 18.000 -> 18.500 (+2.8%)"],
        [],
    )


def test_rounding_and_random_places_are_none() -> None:
    now = {"pair-64": {**PAIR, "instructions": 18.0004, "d1-misses": 0.529}}
    assert changes({"pair-64": PAIR}, now) == ([], [])


def test_fewer_are_told_and_fail_nothing() -> None:
    now = {"pair-64": {**PAIR, "branches": 1.5}}
    assert changes({"pair-64": PAIR}, now) == ([], ["pair-64: branches 2.000 -> 1.500 (-25.0%)"])


def test_the_table_and_the_works_are_the_same() -> None:
    assert changes({}, {"pair-64": PAIR})[0] == ["pair-64: not in the table yet"]
    assert changes({"pair-64": PAIR}, {})[0] == ["pair-64: not counted any more"]
