"""The page that summary.py writes: what joins it later, and whose version a row names."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.programs import results, summary
from tests.programs.catalog import catalog
from tests.programs.results import Measure, Result

MACHINE = {
    "date": "2030-01-02", "hakmem": "9.8.7", "libc": "glibc 2", "system": "S", "processor": "P",
    "processors": 2, "memory": 4.0,
}  # fmt: skip


def result(program: str, group: str, **more: object) -> Result:
    kept = Result(program, group, "work", "", "digest", {}, verdict=results.SAME)
    kept.system = [Measure(1.0, 1.0, 1024)]
    kept.preloaded = [Measure(0.5, 1.0, 2048)]
    for name, value in more.items():
        setattr(kept, name, value)
    return kept


def write(folder: Path, *found: Result) -> None:
    for one in found:
        one.write(folder)
    (folder / results.MACHINE).write_text(json.dumps(MACHINE))


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["summary.py", *map(str, words)])
    return summary.main()


def test_later_ones_join_the_page_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    write(tmp_path / "all", result("old", "tools"))
    assert run(monkeypatch, tmp_path / "all", page) == 0
    whole = page.read_text()
    assert "1 of 1 programs" in whole
    failed = result("bad", "tools", verdict=results.FAILED, message="they differ")
    write(tmp_path / "new", failed, result("good", "languages"))
    for _ in range(2):
        assert run(monkeypatch, tmp_path / "new", page, "--add", "on a busy machine") == 0
        text = page.read_text()
        assert text.startswith(whole)
        assert text.count("| good |") == text.count("1 of 2 programs") == 1
        assert "**failed**: they differ" in text
        assert text.index("| good |") < text.index("| bad |")
        assert "on a busy machine" in text
    assert run(monkeypatch, tmp_path / "all", page) == 0
    assert page.read_text() == whole


def test_results_of_two_builds_make_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "r", result("one", "tools"), result("two", "tools", library="another"))
    assert run(monkeypatch, tmp_path / "r", tmp_path / "page.md") == 2
    assert not (tmp_path / "page.md").exists()


def test_a_row_names_the_version_of_its_program() -> None:
    first = {"nginx-light": "1.22.1-9+deb12u2", "apache2-utils": "2.4.68-1"}
    assert summary.version(result("nginx", "tools", versions=first)) == "1.22.1"
    named = {"numpy": "2.4.6", "pandas": "3.1.1"}
    assert summary.version(result("pandas", "tools", versions=named)) == "3.1.1"
    assert summary.version(result("none", "tools")) == "not of Debian"


def test_groups_of_all_cases_have_their_place() -> None:
    assert {case.group for case in catalog().values()} <= set(summary.GROUPS)
