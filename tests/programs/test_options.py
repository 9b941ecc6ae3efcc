"""Options of hakmem for the runs with it: who gets them, what is kept of them; rows of pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import results, summary
from tests.programs.catalog import catalog
from tests.programs.harness import Case, Failure, Run
from tests.programs.results import Result
from tests.programs.run import Different, compare, pair

HARDENED = ["preset=hardened"]
GUARDED = [*HARDENED, "guards_a_second=1000"]
CASE = Case("none", (), lambda _: None, lambda _: None, (), ())


def test_only_the_runs_with_the_library_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HAKMEM_PRESET", raising=False)
    library = Path("/lib/libhakmem.so")
    given = Run(CASE, tmp_path / "a", "preloaded", library, GUARDED).env()
    assert given["HAKMEM_PRESET"] == "hardened"
    assert given["HAKMEM_GUARDS_A_SECOND"] == "1000"
    system = Run(CASE, tmp_path / "b", "system", None, GUARDED).env()
    assert not [name for name in system if name.startswith("HAKMEM_") or name == "LD_PRELOAD"]


def test_a_report_that_no_exit_status_shows_is_a_failure(tmp_path: Path) -> None:
    for side in ("system", "preloaded"):
        for part in ("outputs", "files", "logs"):
            (tmp_path / side / part).mkdir(parents=True)
    compare(CASE, tmp_path)
    log = tmp_path / "preloaded" / "logs" / "server.log"
    log.write_text("started\nhakmem: free(0x10): freed twice\n")
    with pytest.raises(Failure, match="freed twice"):
        compare(CASE, tmp_path)


def test_data_may_differ_where_addresses_order_them(tmp_path: Path) -> None:
    def steps(run: Run) -> None:
        (run.work / "data").write_text(run.name)

    for name, why, options, verdict in (
        ("one", "", GUARDED, None),
        ("two", "sorts addresses", [], None),
        ("three", "sorts addresses", GUARDED, "sorts addresses"),
    ):
        case = Case(name, (), lambda _: None, steps, (), (), by_address=why)
        kept = Result(name, "", "", "", "digest", {}, options=options)
        (tmp_path / name).mkdir()
        if verdict:
            pair(case, tmp_path / name, Path("/lib/none.so"), kept)
            assert kept.message == verdict
        else:
            with pytest.raises(Different):
                pair(case, tmp_path / name, Path("/lib/none.so"), kept)


def test_known_misuse_is_no_pass(tmp_path: Path) -> None:
    got: list[str] = []

    def steps(run: Run) -> None:
        got.append(run.env().get("HAKMEM_CHECK_SIZES", "as the preset"))

    case = Case(
        "one",
        (),
        lambda _: None,
        steps,
        (),
        (),
        misuse="a wrong size",
        without=("check_sizes=off",),
    )
    for options, seen, message in (
        ([], "as the preset", ""),
        (HARDENED, "off", "a wrong size"),
    ):
        kept = Result("one", "", "", "", "digest", {}, options=options)
        pair(case, tmp_path, Path("/lib/none.so"), kept)
        assert (got[-1], kept.message) == (seen, message)


def test_a_pass_counts_for_its_options_only(tmp_path: Path) -> None:
    Result("one", "tools", "work", "", "digest", {}, results.SAME, options=HARDENED).write(tmp_path)
    assert results.done_with(tmp_path, "one", "digest", HARDENED)
    assert not results.done_with(tmp_path, "one", "digest", GUARDED)
    assert not results.done_with(tmp_path, "one", "digest", [])


def test_a_row_names_the_version_of_its_program() -> None:
    def version(program: str, **versions: str) -> str:
        return summary.version(Result(program, "tools", "work", "", "digest", versions))

    first = {"nginx-light": "1.22.1-9+deb12u2", "apache2-utils": "2.4.68-1"}
    assert version("nginx", **first) == "1.22.1"
    assert version("pandas", numpy="2.4.6", pandas="3.1.1") == "3.1.1"
    assert version("none") == "not of Debian"


def test_groups_of_all_cases_have_their_place() -> None:
    assert {case.group for case in catalog().values()} <= set(summary.GROUPS)
