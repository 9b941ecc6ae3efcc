"""Options of hakmem for the runs with it: who gets them, and what is kept of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.programs import results, summary
from tests.programs.harness import Case, Failure, Run
from tests.programs.results import Measure, Result
from tests.programs.run import Different, compare, pair
from tests.programs.test_page import write

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


def result(program: str, options: list[str], cpu: float, **more: str) -> Result:
    kept = Result(program, "tools", "work", "", "digest", {}, results.SAME, options=options)
    kept.system, kept.preloaded = [Measure(1.0, 1.0, 1024)], [Measure(1.0, cpu, 2048)]
    for name, value in more.items():
        setattr(kept, name, value)
    return kept


def test_a_pass_counts_for_its_options_only(tmp_path: Path) -> None:
    write(tmp_path, result("one", HARDENED, 1.0))
    assert results.done_with(tmp_path, "one", "digest", HARDENED)
    assert not results.done_with(tmp_path, "one", "digest", GUARDED)
    assert not results.done_with(tmp_path, "one", "digest", [])


def test_the_page_names_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    both, alone = tmp_path / "both", tmp_path / "alone"
    write(both, *(result(f"p{cpu}", GUARDED, cpu) for cpu in (1.0, 1.5, 4.0)))
    failed = result("bad", HARDENED, 9.0, verdict=results.FAILED, message="they differ")
    write(alone, result("good", HARDENED, 1.25), failed)
    monkeypatch.setattr(sys, "argv", ["summary.py", str(both), str(page), "--beside", str(alone)])
    monkeypatch.setattr(summary, "catalog", lambda: {"p1.0": CASE, "good": CASE, "late": CASE})
    assert summary.main() == 0
    text = page.read_text()
    assert text.startswith("# Real programs with `preset=hardened` and `guards_a_second=1000`\n")
    assert "3 of 3 programs" in text
    assert "| processor time | 1.50 | 1.82 | 4.00 (p4.0) |" in text
    assert "1 of 2 programs" in text
    assert "**bad** failed: they differ" in text
    assert "| processor time | 1.25 | 1.25 | 1.25 (good) |" in text
    assert "Not run with these options: good, late." in text
    assert "| p1.5 |" in text
    assert "| good |" not in text


def test_results_with_several_options_make_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, result("one", HARDENED, 1.0), result("two", GUARDED, 1.0))
    monkeypatch.setattr(sys, "argv", ["summary.py", str(tmp_path), str(tmp_path / "page.md")])
    assert summary.main() == 2
    assert not (tmp_path / "page.md").exists()
